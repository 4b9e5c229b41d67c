"""Plans on the terminal and as JSON."""

from collections.abc import Sequence

from rich.text import Text

from relaunch.adapters.definition_file.ad_hoc_request import NAME
from relaunch.adapters.definition_file.values import write_duration
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.snapshot import SnapshotPart
from relaunch.core.selection.rows import explain_rows
from relaunch.core.selection.selection import explain_rejection
from relaunch.usecases.plan_jobs import Plan
from relaunch_cli.definition_files import remark_notices
from relaunch_cli.plan_basis import Ground
from relaunch_cli.views.definitions import describe_accelerator
from relaunch_cli.views.json_output import Shape, dump, plan_shape
from relaunch_cli.views.price_ages import describe_prices, price_shapes, stale_prices
from relaunch_cli.views.screen import out, remark, say, show
from relaunch_cli.views.selection import render_selection
from relaunch_cli.views.type_explanation import render_type, type_shape


def print_json(plans: Sequence[Plan], ground: Ground, machine: InstanceType | None) -> None:
    """Print plans for machines; `machine` is the type to be explained."""
    if ground.remark:
        remark(ground.remark)
    prices = price_shapes(ground.offerings.price_origins(ground.at), ground.at)
    shapes = [_shape(each, machine) for each in plans]
    say(dump({"plans": shapes, "prices": prices, "is_offline": ground.deps is None}))


def _shape(plan: Plan, machine: InstanceType | None) -> Shape:
    shape = plan_shape(plan)
    if plan.definition.name == NAME:
        shape |= {"definition": None, "task_definition": None}
    if machine is not None and plan.selection is not None:
        shape["explained"] = type_shape(explain_rows(plan.selection), machine.name)
    return shape


def show_plans(
    plans: Sequence[Plan], ground: Ground, machine: InstanceType | None, *, limit: int, is_full: bool
) -> None:
    """Print plans: tables, or with `machine` why this type is not chosen; and where the prices are from."""
    if ground.remark:
        remark(ground.remark)
    for index, plan in enumerate(plans):
        show(*((Text(),) if index else ()), _title(plan, ground))
        _show_plan(plan, ground, machine, limit=limit, is_full=is_full)
    if ground.deps is None and any(plan.revision is None for plan in plans):
        remark("task definitions are not read offline: what they reserve is not held against machines")
    _remark_prices(ground)
    for plan in plans:
        remark_notices(plan, name="" if plan.definition.name == NAME else plan.definition.name)


def _show_plan(plan: Plan, ground: Ground, machine: InstanceType | None, *, limit: int, is_full: bool) -> None:
    if plan.selection is not None:
        rows = explain_rows(plan.selection)
        if machine is not None:
            show(render_type(machine, rows, _absence(ground)))
        else:
            counts = plan.selection.filter_counts
            show(render_selection(rows, counts, out().width, is_full=is_full, limit=limit))
        nothing = explain_rejection(plan.selection)
        if nothing and nothing != plan.problem:
            show(Text(f"\n{nothing}", style="yellow"))
    if plan.problem:
        show(Text(f"\n{plan.problem}" if plan.selection else plan.problem, style="red"))


def _absence(ground: Ground) -> str:
    """Say that a type is not on offer."""
    if ground.has_all_types:
        return f"it is in none of the zones that are looked at ({ground.name})"
    return "no capacity provider of the stack has it; --all-types looks at all of the region"


def _title(plan: Plan, ground: Ground) -> Text:
    definition = plan.definition
    if definition.name == NAME:
        name, after = _describe(definition), ground.name
    else:
        revision = plan.revision
        shown = f"{revision.family}:{revision.revision}" if revision else definition.task_definition
        name, after = definition.name, f"{shown}  {ground.name}"
    return Text(name, style="bold").append(f"  {after}  {plan.at:%H:%M} UTC", style="dim")


def _describe(definition: JobDefinition) -> str:
    """Say in short what was asked for."""
    parts = [describe_accelerator(definition.accelerator), str(definition.purchase)]
    if definition.estimated_duration is not None:
        parts.append(write_duration(definition.estimated_duration))
    return ", ".join(parts)


def _remark_prices(ground: Ground) -> None:
    """Say where the prices are from and how old they are, and warn of stale ones."""
    origins = ground.offerings.price_origins(ground.at)
    told = describe_prices(origins, ground.at)
    parts = {each.part for each in origins}
    if told and SnapshotPart.SPOT_PRICES not in parts and ground.has_all_types:
        told += "; spot prices are not known: they are at most those (<=)"
    if unknown := " and ".join(part.label for part in ground.refreshed_parts if part not in parts):
        told += f"; {unknown} are not known: refresh_offerings has not brought them lately"
    warning = stale_prices(origins, ground.at) if ground.deps is not None else ""
    for text in (told, warning):
        if text:
            remark(text)
