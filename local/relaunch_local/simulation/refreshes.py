"""The hourly refresh of the offerings beside everything else, and the snapshot that functions read meanwhile."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from relaunch.adapters.aws.ec2.instance_types import Ec2InstanceTypeOfferings, Ec2InstanceTypes
from relaunch.adapters.aws.ec2.placement_scores import Ec2RegionScores
from relaunch.adapters.aws.ec2.spot_prices import Ec2SpotPrices
from relaunch.adapters.aws.price_list import PriceList
from relaunch.adapters.aws.service_quotas import Ec2Quotas
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.snapshot import OfferingsSnapshot, SnapshotPart
from relaunch.ports import RefreshDependencies
from relaunch.usecases import refresh_offerings as refreshing
from relaunch_local.ecs import InProcessClient
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.aws.clients import CallingClient
from relaunch_local.simulation.aws.fleet import EC2_ERRORS
from relaunch_local.simulation.aws.pages import in_pages
from relaunch_local.simulation.aws.runtime import FunctionClock
from relaunch_local.simulation.aws.template import REGION
from relaunch_local.simulation.offerings import first_snapshot
from relaunch_local.simulation.region import ModelEc2, ModelPrices, zones_of

_HOUR = 3_600.0
# Three tries with one and two minutes between them, of five minutes each, and the pace of the schedule.
_LATE = timedelta(minutes=25)
_HOURLY = frozenset({SnapshotPart.QUOTAS, SnapshotPart.PLACEMENT_SCORES})


class Refreshes:
    """Refreshes the offerings every hour, in the seeds whose scenario says so."""

    def __init__(self, account: SimulatedAccount) -> None:
        """Start within an hour."""
        self._account = account
        if account.scenario.has_refreshes:
            self._age()
            account.snapshots.on_saved = self._check_saved
            self._deps = self._make_deps()
            account.clock.call_later(account.chance.stream("refreshes").uniform(0.0, _HOUR), self._tick)

    def _age(self) -> None:
        """Let the snapshot be hours old, and each part of another age, so that all are refreshed within the run."""
        account = self._account
        snapshot = first_snapshot(account.scenario)
        dice = account.chance.stream("refreshes/ages")
        for part, origin in snapshot.origins.items():
            at = account.started_at - timedelta(hours=dice.uniform(0.0, 26.0))
            snapshot = snapshot.with_part(part, getattr(snapshot, part.value), replace(origin, at=at))
        account.snapshots.begin_with(snapshot)

    def _tick(self) -> None:
        account = self._account
        account.clock.call_later(_HOUR, self._tick)
        account.lambdas.call_asynchronously("refresh_offerings", lambda: refreshing.refresh_offerings(self._deps))

    def _make_deps(self) -> RefreshDependencies:
        account = self._account
        scenario = account.scenario
        dice = account.chance.stream("placement-scores")
        simulated = InProcessClient(account.simulator, "ec2", validate=False)
        ec2 = in_pages(ModelEc2(scenario, simulated, account.authorization, dice), scenario.page_size)
        prices = in_pages(ModelPrices(scenario), scenario.page_size)

        def client(service: str) -> Any:
            # As the account's own clients.
            return CallingClient(service, account._authorized(service, prices), account.calls)  # noqa: SLF001

        clock = FunctionClock(account.runtime)
        ec2_client: Any = CallingClient("ec2", ec2, account.calls, EC2_ERRORS)
        return RefreshDependencies(
            region=REGION,
            catalogue=load_catalogue(),
            spot_types=frozenset(
                each.instance_type for each in scenario.providers if each.purchase is PurchaseOption.SPOT
            ),
            machine_settings=scenario.machines.settings,
            instance_types=Ec2InstanceTypes(ec2_client, account.trace),
            zones=Ec2InstanceTypeOfferings(ec2_client),
            price_list=PriceList(client("pricing"), REGION),
            spot_prices=Ec2SpotPrices(ec2_client, clock),
            region_scores=Ec2RegionScores(ec2_client, REGION),
            quotas=Ec2Quotas(client("service-quotas")),
            snapshots=account.snapshots.store,
            clock=clock,
            log=account.trace,
            metrics=account.endings,
        )

    def _check_saved(self, before: OfferingsSnapshot | None, after: OfferingsSnapshot) -> None:
        """Check that a refresh keeps what it could not read again, and stores what AWS says."""
        account = self._account
        check = account.invariants.check
        for part, origin in (before.origins if before is not None else {}).items():
            # Two that run at once each save what they read.
            is_kept = part in after.origins and after.origins[part].at >= origin.at - timedelta(minutes=1)
            check("a refresh keeps what it could not read again", is_kept, f"{part.label} of {origin.at}")
        zones = {name: sorted(zones) for name, zones in zones_of(account.scenario).items()}
        found = {name: sorted(zones) for name, zones in after.zones.items()}
        message = f"{after.instance_types}, {found}, not {zones}"
        check("a refresh stores what AWS says", not after.instance_types and found in ({}, zones), message)

    def check_end(self, calm_since: datetime) -> None:
        """Check that every part is as fresh as it should be, if the faults have stopped for long enough."""
        account = self._account
        now = account.clock.now()
        if not account.scenario.has_refreshes or now - calm_since < timedelta(seconds=_HOUR) + _LATE:
            return
        stored = account.snapshots.stored
        # AWS lists no price of these types in some seeds: that part cannot be read.
        has_prices = zones_of(account.scenario).keys() & account.scenario.on_demand_usd_per_hour.keys()
        for part in SnapshotPart:
            if part is SnapshotPart.ON_DEMAND_PRICES and not has_prices:
                continue
            limit = (timedelta(hours=1) if part in _HOURLY else timedelta(hours=24)) + timedelta(hours=1) + _LATE
            is_fresh = stored is not None and part in stored.origins and now - stored.origins[part].at < limit
            account.invariants.check("every part of the offerings is refreshed in time", is_fresh, part.label)
