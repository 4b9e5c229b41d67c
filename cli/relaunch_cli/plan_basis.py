"""What a plan is made on: a stack and its market, or nothing but the bundled catalogue."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from relaunch.adapters.definition_file.ad_hoc_request import AdHocRequest
from relaunch.adapters.offerings.bundled import UnknownRegionError, bundled_snapshot, check_region
from relaunch.adapters.offerings.regional import RegionalOfferings
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.instance_types import nearest_names
from relaunch.core.offerings.snapshot import SnapshotPart
from relaunch.core.selection.offering_filters import SelectionLimits
from relaunch.ports import Dependencies, OfferingSource
from relaunch.usecases.load_offerings import AvailableOfferings, load_offerings
from relaunch.usecases.plan_jobs import Plan, in_zones, plan_jobs, plan_on
from relaunch_cli.aws.configuration import configured_region
from relaunch_cli.aws.connection import Connection
from relaunch_cli.errors import CommandError, NotConnectedError

# The region whose on-demand prices are bundled, and the one with the most types.
_OFFLINE_REGION = "us-east-1"


@dataclass(frozen=True)
class Ground:
    """Where plans are made; `deps` is None offline.

    `has_all_types` tells that every type of the region is on offer, not only those of the stack's capacity providers.
    `name` says in a word or two which ground it is, `remark` why it is not the one that might be expected.
    """

    at: datetime
    offerings: OfferingSource
    deps: Dependencies | None
    has_all_types: bool
    name: str
    remark: str = ""

    @property
    def refreshed_parts(self) -> tuple[SnapshotPart, ...]:
        """Return what plans here also rest on, if the stack has refreshed it."""
        if self.deps is None:
            return ()
        has_spot = any(each.purchase is PurchaseOption.SPOT for each in self.offerings.offerings(self.at))
        odds = (SnapshotPart.PLACEMENT_SCORES,) if has_spot and not self.has_all_types else ()
        return (*odds, SnapshotPart.QUOTAS)

    def plan_definitions(self, definitions: Sequence[JobDefinition], zones: Sequence[str]) -> list[Plan]:
        """Plan jobs of definitions; offline nothing is known of their task definitions."""
        if self.deps is None:
            available = in_zones(self._offline_market(), zones)
            return [plan_on(available, definition, None) for definition in definitions]
        return plan_jobs(definitions, self.deps, zones)

    def plan_request(self, request: AdHocRequest, zones: Sequence[str]) -> Plan:
        """Plan a job that was described for once."""
        if self.deps is None:
            return plan_on(in_zones(self._offline_market(), zones), request.definition, request.revision)
        available = in_zones(load_offerings(self.deps), zones)
        return plan_on(available, request.definition, request.revision, self.deps.zone_scores)

    def check_zones(self, zones: Sequence[str]) -> None:
        """Refuse zones that nothing is offered in.

        Raises:
            CommandError: it names the nearest ones.
        """
        if not zones:
            return
        known = sorted({each.zone for each in self.offerings.offerings(self.at) if each.zone is not None})
        if not known:
            raise CommandError(
                "the stack's capacity providers choose their zones", "zones can be named with --all-types"
            )
        for zone in zones:
            if zone not in known:
                near = nearest_names(zone, known)
                hint = f"did you mean {' or '.join(near)}?" if near else f"known are {', '.join(known)}"
                raise CommandError(f"nothing is offered in a zone {zone!r}", hint)

    def _offline_market(self) -> AvailableOfferings:
        limits = SelectionLimits(max_price_usd_per_hour=math.inf)
        return AvailableOfferings(self.at, self.offerings.offerings(self.at), {}, limits)


def live_ground(connection: Connection, *, has_all_types: bool) -> Ground:
    """Return the ground of a stack.

    Raises:
        CommandError: the stack cannot be used.
        NotConnectedError: there is none to be asked.
    """
    deps = connection.all_types if has_all_types else connection.deps
    name = "all types of the region" if has_all_types else "capacity providers"
    return Ground(deps.clock.now(), deps.offerings, deps, has_all_types, name)


def offline_ground(region: str, reason: str) -> Ground:
    """Return the ground of the bundled catalogue, with `reason` why it is this one.

    Raises:
        CommandError: nothing is bundled of the region.
    """
    chosen = region or configured_region() or _OFFLINE_REGION
    try:
        check_region(chosen)
    except UnknownRegionError as error:
        raise CommandError(str(error)) from error
    remark = f"{reason}: planned offline, for {chosen}, from the bundled catalogue"
    offerings = RegionalOfferings(bundled_snapshot(chosen))
    return Ground(datetime.now(UTC), offerings, None, True, f"{chosen}, bundled", remark)


def find_ground(connection: Connection, region: str, *, is_offline: bool, has_all_types: bool) -> Ground:
    """Return the stack's ground, or the bundled catalogue's where that is asked for or nothing else is to be had.

    Raises:
        CommandError: there is no such region, or the stack cannot be used.
    """
    if is_offline:
        return offline_ground(region, "--offline")
    try:
        return live_ground(connection, has_all_types=has_all_types)
    except NotConnectedError as error:
        return offline_ground(region, str(error))
