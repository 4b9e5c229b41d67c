"""Plans of `relaunch plan`: tables, and notes on what they are based on."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from rich.console import Group, RenderableType
from rich.text import Text

from relaunch.adapters.definition_file.ad_hoc_name import NAME
from relaunch.adapters.kubernetes.manifest import preview_job
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.durations import write_duration
from relaunch.core.kubernetes.node_labels import NodeLabels
from relaunch.core.lifecycle.market_choice import MarketChoice
from relaunch.core.market.situation import Action
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.snapshot import PriceOrigin, SnapshotPart
from relaunch.core.revisions.revision import Revision
from relaunch.core.selection.offering_filters import DEFAULT_MAX_PRICE_USD_PER_HOUR
from relaunch.core.selection.selection import Selection, explain_rejection, explain_rows
from relaunch.usecases.plan_jobs import Plan
from relaunch_cli.deployment.defaults import DEFAULTS
from relaunch_cli.views.definitions import describe_gpus
from relaunch_cli.views.machines import describe_fleet_request
from relaunch_cli.views.node_fit import render_fits
from relaunch_cli.views.price_origins import describe_prices, stale_warning
from relaunch_cli.views.selection import SelectionOptions, describe_choice, render_selection, shows_other_region
from relaunch_cli.views.type_explanation import render_type

# Of a job that does not run yet; none stays where it is.
_OFFLINE_LIMITS = (
    f"limits are those of a stack without named ones: MaxPricePerHour={DEFAULT_MAX_PRICE_USD_PER_HOUR:g}, "
    f"DiskGiB={DEFAULTS['DiskGiB']}"
)
_WITHOUT_LABELS = (
    "node labels are those of a stack that names none: KubernetesSpotLabel and KubernetesOnDemandLabel are empty, and "
    f"KubernetesGpuModelLabel is {NodeLabels().gpu_model}"
)
_WOULD = {Action.TRY: "try spot", Action.ON_DEMAND: "take on-demand", Action.WAIT: "wait"}


@dataclass(frozen=True, slots=True)
class PlanBasis:
    """What plans are based on.

    `name` names the offerings in a few words, `note` says why they are not the stack's. `has_all_types`: they are those
    of all instance types of the region. `missing` are the parts of the stack's snapshot that are too old or not there.
    `price_region` is the region whose on-demand prices stand in for those of another one, which are not known; empty if
    the region's own are known. `lacks_spot_prices`: there are offerings on spot, and no spot prices.
    `has_own_machines`: the stack starts machines of its own; `price_tolerance` is that of their requests. `stack` is
    the name of the stack, which the Jobs of a Kubernetes cluster carry; `node_labels` are those that it names, None if
    they are not known.
    """

    at: datetime
    name: str
    note: str
    is_offline: bool
    has_all_types: bool
    origins: tuple[PriceOrigin, ...]
    missing: tuple[SnapshotPart, ...]
    has_own_machines: bool = False
    price_tolerance: float = 0.0
    stack: str = ""
    price_region: str = ""
    lacks_spot_prices: bool = False
    node_labels: NodeLabels | None = None


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """How plans are shown: `explained` is the instance type to explain."""

    explained: InstanceType | None
    selection: SelectionOptions


def render_plans(plans: Sequence[Plan], basis: PlanBasis, options: PlanOptions) -> RenderableType:
    """Return plans: what would be chosen, then the tables; or the explanation of one instance type."""
    parts: list[RenderableType] = []
    for plan in plans:
        parts += [*([Text()] if parts else []), _title(plan, basis)]
        if plan.problem:
            parts.append(Text(plan.problem, style="red"))
        if plan.market is not None and options.explained is None:
            parts.append(Text(_describe_market(plan.definition, plan.market)))
        if (manifest := find_manifest(plan, basis)) is not None:
            parts += [Text(), Text(write_manifest(manifest), no_wrap=True, overflow="ignore")]
        if plan.fits is not None:
            parts += [Text(), render_fits(plan.fits, plan.definition)]
        if plan.selection is not None:
            parts += _selection_parts(plan, plan.selection, basis, options)
        if plan.request is not None and options.explained is None:
            parts.append(Text(describe_fleet_request(plan.request, basis.price_tolerance), style="dim"))
    return Group(*parts)


def find_manifest(plan: Plan, basis: PlanBasis) -> Mapping[str, object] | None:
    """Return the manifest of a plan's job; None if it has a problem, or a target without manifests."""
    if plan.problem or not plan.definition.target.capabilities.runs_pods:
        return None
    return preview_job(plan.definition, basis.stack, basis.node_labels)


def write_manifest(manifest: Mapping[str, object]) -> str:
    """Return a manifest as YAML that `kubectl apply` reads."""
    import yaml  # noqa: PLC0415 - for jobs on Kubernetes only

    return yaml.safe_dump(manifest, sort_keys=False, width=math.inf).rstrip()


def plan_notes(plans: Sequence[Plan], basis: PlanBasis, options: PlanOptions) -> list[str]:
    """Return the notes on plans: what offline plans leave out, where prices come from, and each plan's notices."""
    notes = [f"{_name_prefix(plan)}{notice}" for plan in plans for notice in plan.notices]
    warning = "" if basis.is_offline else stale_warning(basis.origins, basis.at)
    shown = (_rows(plan.selection, basis) for plan in plans if plan.selection is not None)
    is_marked = options.explained is not None or any(shows_other_region(rows, options.selection) for rows in shown)
    notes[:0] = [note for note in (_describe_prices(basis, is_marked=is_marked), warning) if note]
    if basis.is_offline and basis.origins:
        notes.insert(0, _OFFLINE_LIMITS)
    if basis.is_offline and any(plan.revision is None for plan in plans):
        notes.insert(0, "task definitions are not read offline: their vCPUs, memory and ports are not checked")
    if basis.node_labels is None and any(plan.definition.target.capabilities.has_node_labels for plan in plans):
        notes.insert(0, _WITHOUT_LABELS)
    return notes


def _selection_parts(plan: Plan, selection: Selection, basis: PlanBasis, options: PlanOptions) -> list[RenderableType]:
    rows = _rows(selection, basis)
    if options.explained is not None:
        parts = [render_type(options.explained, rows, _absence(basis))]
    else:
        parts = [render_selection(rows, selection.filter_counts, options.selection)]
    rejection = explain_rejection(selection)
    if rejection and rejection != plan.problem:
        parts[:0] = [Text(rejection, style="yellow"), Text()]
    elif options.explained is None:
        parts[:0] = [*([Text(_would_run(plan, choice, basis))] if (choice := describe_choice(rows)) else []), Text()]
    return parts


def _rows(selection: Selection, basis: PlanBasis) -> Sequence[Mapping[str, object]]:
    rows = explain_rows(selection)
    return [_of_other_region(row, basis.price_region) for row in rows] if basis.price_region else rows


def _of_other_region(row: Mapping[str, object], region: str) -> Mapping[str, object]:
    """Return a row whose on-demand price is that of another region; a spot price that is known is its own."""
    has_own_price = row["purchase"] == PurchaseOption.SPOT and row["price_usd_per_hour"] is not None
    return {**row, "saving": None, "price_region": "" if has_own_price else region}


def _would_run(plan: Plan, choice: str, basis: PlanBasis) -> str:
    if plan.quota_problem:
        return f"would wait: {plan.quota_problem}. With a quota it would run on {choice}"
    if not (basis.lacks_spot_prices and PurchaseOption.SPOT in plan.definition.purchase.options):
        return f"would run on {choice}"
    if PurchaseOption.ON_DEMAND in plan.definition.purchase.options:
        return f"spot prices are not known, so where it would run is not either; without spot it is {choice}"
    return f"spot prices are not known, so where it would run is not either; by on-demand prices it is {choice}"


def _absence(basis: PlanBasis) -> str:
    """Return why a type has no offering."""
    if basis.has_all_types:
        return f"it is not offered in any zone that was considered ({basis.name})"
    unknown = "no capacity provider of the stack has it"
    if basis.has_own_machines:
        unknown += ", and EC2 offers it in no zone with a subnet for machines of the stack's own (MachineSubnets)"
    return f"{unknown}; --all-types considers all of the region"


def _title(plan: Plan, basis: PlanBasis) -> Text:
    definition = plan.definition
    revision = plan.revision
    if definition.name == NAME:
        name = _describe_request(definition, revision)
        rest = basis.name if plan.fits is None else str(definition.target)
    elif not definition.target.capabilities.takes_task_definition:
        name = definition.name
        rest = f"{definition.target}  {describe_gpus(definition)}"
    else:
        shown = f"{revision.family}:{revision.revision}" if revision else definition.task_definition
        name = definition.name
        rest = f"{shown}  {basis.name}"
    return Text(name, style="bold").append(f"  {rest}  {plan.at:%H:%M} UTC", style="dim")


def _describe_market(definition: JobDefinition, market: MarketChoice) -> str:
    return f"policy {definition.policy} would {_WOULD[market.choice.action]}: {market.reason}"


def _describe_request(definition: JobDefinition, revision: Revision | None) -> str:
    purchase = [str(definition.purchase)] if definition.target.capabilities.has_spot else []
    parts = [describe_gpus(definition), *purchase]
    if definition.estimated_duration is not None:
        on = f" on {definition.estimated_on}" if definition.estimated_on else ""
        parts.append(f"{write_duration(definition.estimated_duration)}{on}")
    # Of a pod they are in both.
    if revision is not None and revision.vcpus:
        parts.append(f"{revision.vcpus:g} vCPU")
    if revision is not None and revision.memory_mib:
        parts.append(f"memory {revision.memory_mib / 1024:g} GiB")
    if definition.disk_gib is not None:
        parts.append(f"disk {definition.disk_gib} GiB")
    if definition.max_price_usd_per_hour is not None:
        parts.append(f"at most ${definition.max_price_usd_per_hour:g}/h")
    return ", ".join(parts)


def _name_prefix(plan: Plan) -> str:
    return "" if plan.definition.name == NAME else f"{plan.definition.name}: "


def _describe_prices(basis: PlanBasis, *, is_marked: bool) -> str:
    """Describe where prices come from; `is_marked`: one of another region is shown."""
    text = describe_prices(basis.origins, basis.at)
    if basis.price_region:
        marks = f", and ~ marks those of {basis.price_region} in their place" if is_marked else ""
        text += f"; this region's own on-demand prices are not known{marks}"
    if text and basis.lacks_spot_prices:
        text += "; spot prices are not known" + ("" if basis.price_region else ": they are at most those (<=)")
    if missing := " and ".join(part.label for part in basis.missing):
        is_refreshed = not any(each.origin.is_bundled for each in basis.origins)
        why = "refresh_offerings has not refreshed them lately" if is_refreshed else "the stack reads them hourly"
        text += f"; {missing} are not known: {why}"
    return text
