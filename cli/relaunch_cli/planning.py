"""Planning for `relaunch plan`: on the offerings of a stack, or offline on those of the bundled catalogue.

Whatever can be checked without AWS is checked before AWS is called.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from relaunch.adapters.acs_driver_list import load_acs_drivers
from relaunch.adapters.offerings.bundled import (
    UnknownRegionError,
    bundled_snapshot,
    check_region,
    load_catalogue,
    load_on_demand_prices,
    load_peaks,
)
from relaunch.adapters.offerings.regional import RegionalOfferings
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.targets import WITH_PODS
from relaunch.core.kubernetes.node_labels import NodeLabels
from relaunch.core.offerings.offering import Offering
from relaunch.core.offerings.snapshot import SnapshotPart
from relaunch.core.selection.offering_filters import SelectionLimits
from relaunch.ports import Dependencies, OfferingSource
from relaunch.usecases.load_offerings import AvailableOfferings, load_offerings
from relaunch.usecases.plan_jobs import (
    Plan,
    in_zones,
    plan_jobs,
    plan_on,
    plan_on_kubernetes,
    refuse_unmeasured_deadlines,
    with_fit,
    with_request,
)
from relaunch_cli import exit_codes
from relaunch_cli.aws.configuration import configured_region
from relaunch_cli.aws.connected import Connection
from relaunch_cli.deployment.defaults import DEFAULTS
from relaunch_cli.errors import CommandError, NotConnectedError, did_you_mean
from relaunch_cli.first_quotas import with_first_quotas
from relaunch_cli.lookup import load_definition
from relaunch_cli.save_advice import with_save_advice
from relaunch_cli.terminal import echo
from relaunch_cli.views.plan import PlanBasis
from relaunch_cli.views.screen import print_note, progress

if TYPE_CHECKING:
    from relaunch.adapters.definition_file.ad_hoc_request import AdHocRequest, Value

# The region whose on-demand prices are bundled, and the one with the most types.
_OFFLINE_REGION = "us-east-1"
_CONSEQUENCE = "nothing was planned"
_DISK_GIB = int(DEFAULTS["DiskGiB"])


def find_fits(plans: Sequence[Plan], labels: NodeLabels | None) -> list[Plan]:
    """Return plans with what the nodes of the cluster of the caller's kubeconfig say of their pods.

    `labels` are those that the stack names, None if they are not known.

    Raises:
        CommandError: no plan is for Kubernetes.
        KubeconfigError, ForbiddenError: the nodes cannot be read.
    """
    if not any(plan.definition.target.capabilities.runs_pods for plan in plans):
        hint = f"plan a definition with target {', '.join(WITH_PODS[:-1])} or {WITH_PODS[-1]}"
        raise CommandError("--fit is about the nodes of a cluster", hint)
    from relaunch.adapters.kubernetes.inspection import ClusterInspection  # noqa: PLC0415 - with --fit only
    from relaunch_cli.own_cluster import open_cluster  # noqa: PLC0415 - as above

    with open_cluster(None, "") as cluster, progress("reading the nodes"):
        nodes = ClusterInspection(cluster).gpu_nodes()
    fitted = [with_fit(plan, nodes, labels) for plan in plans]
    unknown = (each.definition for each in fitted if each.fits is None and not each.problem)
    if any(definition.target.capabilities.has_compute_classes for definition in unknown):
        print_note("class gpu of ACS has what is in stock when a pod is made: no node tells whether it fits")
    return fitted


@dataclass(frozen=True)
class Planner:
    """Plans jobs in some zones, or in all if `zones` is empty; `deps` and `connection` are None offline.

    The other attributes are those of PlanBasis.
    """

    at: datetime
    offerings: OfferingSource
    deps: Dependencies | None
    zones: Sequence[str]
    has_all_types: bool
    name: str
    note: str = ""
    connection: Connection | None = None

    def plan_definitions(self, definitions: Sequence[JobDefinition]) -> list[Plan]:
        """Plan jobs of definitions; offline their task definitions are not read."""
        if self.deps is not None:
            plans = self._with_quotas(plan_jobs(definitions, self.deps, self.zones))
            return plans if self.connection is None else with_save_advice(plans, self.connection.jobs)
        available = in_zones(self._bundled_offerings(), self.zones)
        return [
            plan_on(available, each, None)
            if each.target.capabilities.offers_instance_types
            else plan_on_kubernetes(each, self.at, load_acs_drivers())
            for each in definitions
        ]

    def plan_request(self, request: "AdHocRequest") -> list[Plan]:
        """Plan a job that options describe."""
        options = request.definition.purchase.options
        available = self._bundled_offerings() if self.deps is None else load_offerings(self.deps, options=options)
        scores = None if self.deps is None else self.deps.zone_scores
        plan = plan_on(in_zones(available, self.zones), request.definition, request.revision, scores)
        return [plan] if self.deps is None else self._with_quotas([with_request(plan, self.deps)])

    def _with_quotas(self, plans: Sequence[Plan]) -> list[Plan]:
        if self.deps is None or self.connection is None:
            return list(plans)
        return with_first_quotas(plans, self.deps, self.connection)

    def basis(self) -> PlanBasis:
        """Return what the plans are based on."""
        origins = self.offerings.price_origins(self.at)
        known = {each.part for each in origins}
        offerings = self.offerings.offerings(self.at)
        missing = tuple(part for part in self._refreshed_parts(offerings) if part not in known)
        has_own = any(each.is_own_machine for each in offerings)
        ways = ["machines of its own"] if has_own else []
        if not all(each.is_own_machine for each in offerings) or not has_own:
            ways.append(self.name)
        on_demand = next((each.origin for each in origins if each.part is SnapshotPart.ON_DEMAND_PRICES), None)
        bundled_region = load_on_demand_prices().region
        is_elsewhere = self.offerings.snapshot(self.at).region != bundled_region
        has_spot = any(each.purchase is PurchaseOption.SPOT for each in offerings)
        return PlanBasis(
            at=self.at,
            name=", ".join(ways),
            note=self.note,
            is_offline=self.deps is None,
            has_all_types=self.has_all_types,
            origins=origins,
            missing=missing,
            has_own_machines=has_own,
            price_tolerance=self.deps.limits.machines.price_tolerance if self.deps else 0.0,
            price_region=bundled_region if on_demand and on_demand.is_bundled and is_elsewhere else "",
            lacks_spot_prices=has_spot and SnapshotPart.SPOT_PRICES not in known,
            node_labels=self.deps.limits.pods.nodes if self.deps else None,
        )

    def _refreshed_parts(self, offerings: Iterable[Offering]) -> tuple[SnapshotPart, ...]:
        """Return what the stack refreshes for plans, apart from types, zones and prices.

        Placement scores are those of what its capacity providers and machines of its own have on spot.
        """
        if self.deps is None:
            return ()
        if not self.has_all_types and any(each.purchase is PurchaseOption.SPOT for each in offerings):
            return SnapshotPart.PLACEMENT_SCORES, SnapshotPart.QUOTAS
        return (SnapshotPart.QUOTAS,)

    def _bundled_offerings(self) -> AvailableOfferings:
        # What a stack has whose owner names no limits: its price cap, and the root volume of its machines.
        offerings = (replace(each, disk_gib=_DISK_GIB) for each in self.offerings.offerings(self.at))
        return AvailableOfferings(self.at, tuple(offerings), {}, SelectionLimits(peaks=load_peaks()))


def find_planner(
    connection: Connection,
    region: str,
    zones: Sequence[str],
    *,
    is_offline: bool,
    has_all_types: bool,
    is_stack_named: bool,
) -> Planner:
    """Return the planner of the stack, or the offline one if that is wanted or there is no stack to connect to.

    Raises:
        CommandError: there is no such region or zone, or the stack cannot be used, or is not there though it was named.
    """
    if is_offline:
        planner = _offline_planner(region, zones, "--offline")
    else:
        try:
            planner = _stack_planner(connection, zones, has_all_types=has_all_types)
        except NotConnectedError as error:
            if is_stack_named:
                raise
            # It is looked up by CloudFormation, so that there are a region and credentials.
            has_account = error.exit_code == exit_codes.NOT_FOUND
            find = partial(_planner_of_region, connection) if has_account else partial(_offline_planner, region)
            planner = find(zones, str(error))
    _check_zones(planner)
    return planner


def _stack_planner(connection: Connection, zones: Sequence[str], *, has_all_types: bool) -> Planner:
    deps = connection.all_types if has_all_types else connection.deps
    name = "all types of the region" if has_all_types else "capacity providers"
    return Planner(deps.clock.now(), deps.offerings, deps, zones, has_all_types, name, connection=connection)


def _offline_planner(region: str, zones: Sequence[str], reason: str) -> Planner:
    chosen = region or configured_region() or _OFFLINE_REGION
    try:
        check_region(chosen)
    except UnknownRegionError as error:
        raise CommandError(str(error)) from error
    note = f"{reason}: planned offline, for {chosen}, from the bundled catalogue"
    offerings = RegionalOfferings(bundled_snapshot(chosen))
    return Planner(datetime.now(UTC), offerings, None, zones, has_all_types=True, name=f"{chosen}, bundled", note=note)


def _planner_of_region(connection: Connection, zones: Sequence[str], reason: str) -> Planner:
    """Return the planner of an account without the stack: its region, with the spot prices that EC2 tells now."""
    offerings = connection.without_stack
    now = connection.now()
    region = offerings.snapshot(now).region
    note = f"{reason}: planned without a stack, for {region}, from the bundled catalogue and EC2's spot prices"
    return Planner(now, offerings, None, zones, has_all_types=True, name=f"{region}, without a stack", note=note)


def _check_zones(planner: Planner) -> None:
    if not planner.zones:
        return
    known = sorted({each.zone for each in planner.offerings.offerings(planner.at) if each.zone is not None})
    if not known:
        raise CommandError("the stack's capacity providers choose their zones", "--zone needs --all-types here")
    for zone in planner.zones:
        if zone not in known:
            hint = did_you_mean(zone, known) or f"known zones: {', '.join(known)}"
            raise CommandError(f"nothing is offered in zone {zone!r}", hint)


def plan_options(options: "Mapping[str, Value]", find: Callable[[], Planner]) -> tuple[PlanBasis, list[Plan]]:
    """Plan a job that options describe.

    Raises:
        CommandError: the options are invalid; all problems but the last are printed.
    """
    from relaunch.adapters.definition_file.ad_hoc_request import AdHocRequestError, parse_request  # noqa: PLC0415 - with options only

    try:
        request = parse_request(options, load_catalogue())
    except AdHocRequestError as error:
        for problem in error.problems[:-1]:
            echo(f"relaunch: {problem}", err=True, fg="red")
        raise CommandError(error.problems[-1]) from error
    if not request.definition.target.capabilities.offers_instance_types:
        return _plan_on_kubernetes(request.definition)
    planner = find()
    with progress("reading prices"):
        plans = planner.plan_request(request)
        return planner.basis(), plans


def _plan_on_kubernetes(definition: JobDefinition) -> tuple[PlanBasis, list[Plan]]:
    """Plan a job on a Kubernetes cluster, for which neither AWS nor the cluster is called."""
    at = datetime.now(UTC)
    basis = PlanBasis(
        at,
        f"{definition.target}, whose cluster is not asked",
        note="",
        is_offline=True,
        has_all_types=False,
        origins=(),
        missing=(),
    )
    return basis, [plan_on_kubernetes(definition, at, load_acs_drivers())]


def plan_file(file: Path, find: Callable[[], Planner]) -> tuple[PlanBasis, list[Plan]]:
    """Plan the jobs of a file's definitions, as if it were applied.

    Raises:
        CommandError: the file has problems.
    """
    from relaunch_cli.definition_files import parse_file, read_file  # noqa: PLC0415 - of files only

    text = read_file(file)
    definitions = parse_file(text, file, consequence=_CONSEQUENCE)
    planner = find()
    with progress("reading prices and revisions"):
        if planner.deps is not None:
            registered = planner.deps.definitions.list_definitions()
            definitions = parse_file(text, file, registered, consequence=_CONSEQUENCE)
        plans = refuse_unmeasured_deadlines(planner.plan_definitions(definitions))
        return planner.basis(), plans


def plan_registered(name: str, connection: Connection, find: Callable[[], Planner]) -> tuple[PlanBasis, list[Plan]]:
    """Plan a job of a registered definition.

    Raises:
        CommandError: there is no such definition, or no stack.
    """
    definition = load_definition(connection.deps, name)
    planner = find()
    with progress("reading prices and revisions"):
        plans = planner.plan_definitions([definition])
        return planner.basis(), plans
