"""Whether a job that asked for an on-demand instance now would get one, as the simulated region knows."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.jobs.job import Job
from relaunch.core.machines.decision import MachineTotals
from relaunch.core.offerings.capacity_memory import find_failures, with_job_failures
from relaunch.core.offerings.offering import CapacityFailure, CapacityMemory, Offering, OfferingKey
from relaunch_local.ecs import EcsSimulator, Purchase
from relaunch_local.ecs.engine.instances import LaunchSpecification, subnet_of
from relaunch_local.ecs.engine.model import CapacityProvider
from relaunch_local.ecs.engine.pools import Place
from relaunch_local.ecs.engine.settings import DEFAULT_IMAGE_ID
from relaunch_local.simulation.aws.template import CLUSTER
from relaunch_local.simulation.checks.constraints import constraints_of, find_violated
from relaunch_local.simulation.scenario import Scenario, TrueSpeed

KNOWN_AFTER = timedelta(minutes=10)
"""After this time a job knows that on-demand is back.

A pool that refused is avoided for three minutes, a job that waits looks again every five, and the schedule runs every
minute.
"""
_LOOKS_AGAIN = timedelta(minutes=7)
"""After this time a job knows that what several offerings share is avoided no more: it looks every five, and one look
may fail."""


class SeesTotals(Protocol):
    """The counters of machines in the table, without delays and faults."""

    def load_totals(self) -> MachineTotals:
        """Return the counters."""
        ...


class SeesFailures(Protocol):
    """The capacity memory in the table, without delays and faults."""

    def load_capacity_memory(self, now: datetime) -> CapacityMemory:
        """Return the failures."""
        ...


@dataclass(slots=True)
class OnDemand:
    """The on-demand instances of the region, and since when each pool of them has had capacity."""

    _scenario: Scenario
    _simulator: EcsSimulator
    _totals: SeesTotals
    _memory: SeesFailures
    _there_since: dict[tuple[OfferingKey, str], datetime] = field(default_factory=dict)
    _known: tuple[Offering, ...] = ()
    """All on-demand offerings, which are the same throughout a run."""
    _placed: dict[tuple[str, tuple[str, ...], str], bool] = field(default_factory=dict)
    """By instance type, zones and constraints: whether ECS places such tasks on such an instance."""

    def look(self, now: datetime) -> None:
        """Note which pools have capacity now; to be called every minute."""
        for offering in self._offerings():
            if self._has_capacity(offering):
                self._there_since.setdefault(_pool_of(offering), now)
            else:
                self._there_since.pop(_pool_of(offering), None)

    def is_sold_to(self, definition: JobDefinition) -> bool:
        """Return whether any on-demand instance satisfies a definition, whether it has capacity or not."""
        return any(self._satisfies(each, definition) for each in self._offerings())

    def speed(self, definition: JobDefinition) -> float:
        """Return how fast its trainings are at best on what it may have on demand."""
        return self._most([each.true for each in self._speeds(definition)])

    def least_speed(self, definition: JobDefinition) -> float:
        """Return how fast they are at least on the best of that, as published peaks say."""
        return self._most([each.least for each in self._speeds(definition)])

    @staticmethod
    def _most(speeds: list[float]) -> float:
        return max(speeds, default=1.0)

    def _speeds(self, definition: JobDefinition) -> list[TrueSpeed]:
        if definition.name not in self._scenario.speeds:
            return []
        kept = (each for each in self._offerings() if self._satisfies(each, definition))
        return [self._scenario.speed(definition.name, each.instance_type.name) for each in kept]

    def may_be_had(self, job: Job, now: datetime) -> bool:
        """Return whether the job would get an on-demand instance, and could know it."""
        return self.known_speed(job, now) is not None

    def known_speed(self, job: Job, now: datetime) -> float | None:
        """Return how fast the job is at least, by published peaks, on the best on-demand instance that it would get.

        None if it would get none, or could not know it.
        A pool of machines of our own is there again KNOWN_AFTER its last refusal and the return of its capacity. What
        several offerings share (a quota, a subnet, a permission) and what capacity providers failed to start is avoided
        for as long as for all jobs, and until it looks again, and so are what the job itself was kept from
        (docs/deadlines.md).
        """
        self.look(now)
        memory = self._memory.load_capacity_memory(now - _LOOKS_AGAIN)
        own = with_job_failures({}, job.faults.own_failures)
        speeds = (
            self._least_speed(each, job.definition)
            for each in self._offerings()
            if self._satisfies(each, job.definition)
            and self._there_since.get(_pool_of(each), now) <= now - KNOWN_AFTER
            and not any(_keeps_off(failure, each, now) for failure in find_failures(each, memory))
            and not any(failure.until > now for failure in find_failures(each, own))
            and self._has_room(each)
        )
        return max(speeds, default=None)

    def _least_speed(self, offering: Offering, definition: JobDefinition) -> float:
        if definition.name not in self._scenario.speeds:
            return 1.0
        return self._scenario.speed(definition.name, offering.instance_type.name).least

    def _offerings(self) -> tuple[Offering, ...]:
        self._known = self._known or tuple(self._list_offerings())
        return self._known

    def _list_offerings(self) -> Iterator[Offering]:
        catalogue = load_catalogue()
        prices = self._scenario.on_demand_usd_per_hour
        machines = self._scenario.machines
        for name in machines.types:
            for zone in machines.zones:
                price = prices.get(name)
                yield Offering(catalogue[name], PurchaseOption.ON_DEMAND, zone, price, is_own_machine=True)
        for each in self._scenario.providers:
            if each.purchase is PurchaseOption.ON_DEMAND:
                yield Offering(
                    catalogue[each.instance_type],
                    PurchaseOption.ON_DEMAND,
                    price_usd_per_hour=prices.get(each.instance_type),
                    capacity_provider=each.name,
                )

    def _satisfies(self, offering: Offering, definition: JobDefinition) -> bool:
        cap = definition.max_price_usd_per_hour
        price = offering.price_usd_per_hour
        is_allowed = cap is None or (price is not None and price <= cap)
        # What has no price is chosen last, or not at all.
        is_sold = is_allowed and price is not None and PurchaseOption.ON_DEMAND in definition.purchase.options
        return is_sold and self._is_placed_on(offering, definition)

    def _is_placed_on(self, offering: Offering, definition: JobDefinition) -> bool:
        """Return whether ECS places tasks of a definition on an instance of an offering, in one of its zones."""
        provider = offering.capacity_provider
        zones = (offering.zone,) if offering.zone else self._provider(provider or "").group.spec.zones
        constraints = str(constraints_of(self._simulator, definition.task_definition))
        key = (offering.instance_type.name, zones, constraints)
        if key not in self._placed:
            self._placed[key] = self._has_host(offering, zones, definition.task_definition)
        return self._placed[key]

    def _has_host(self, offering: Offering, zones: tuple[str, ...], family: str) -> bool:
        name = offering.instance_type.name
        cluster = self._simulator.clusters.get(CLUSTER)
        specs = (LaunchSpecification(name, Purchase.ON_DEMAND, zone, cluster, DEFAULT_IMAGE_ID) for zone in zones)
        hosts = (self._simulator.instances.describe_new(spec) for spec in specs)
        return any(not find_violated(self._simulator, family, host) for host in hosts)

    def _provider(self, name: str) -> CapacityProvider:
        return self._simulator.clusters.get(CLUSTER).providers[name]

    def _has_capacity(self, offering: Offering) -> bool:
        name = offering.instance_type.name
        if offering.zone is not None:
            place = Place(name, offering.zone, subnet_of(offering.zone), Purchase.ON_DEMAND)
            return self._simulator.fleets.pools.refusal_of(place) is None
        provider = self._provider(offering.capacity_provider or "")
        group = provider.group
        zones = provider.group.spec.zones
        is_scaled = provider.settings.get("managedScaling", {}).get("status") != "DISABLED"
        has_place = len(group.instances) < group.spec.max_size and self._simulator.scheduler.provisioning_quota > 0
        has_stock = any(self._simulator.instances.has_capacity(name, Purchase.ON_DEMAND, zone) for zone in zones)
        return is_scaled and has_place and has_stock

    def _has_room(self, offering: Offering) -> bool:
        """Return whether the limits of the stack allow one more machine of our own."""
        if offering.zone is None:
            return True
        limits = self._scenario.limits.machines.totals(is_handover=False)
        totals = self._totals.load_totals()
        price = round((offering.price_usd_per_hour or 0.0) * 1_000_000)
        is_in_number = not limits.machines or totals.machines < limits.machines
        is_in_price = not limits.micro_usd_per_hour or totals.micro_usd_per_hour + price <= limits.micro_usd_per_hour
        return is_in_number and is_in_price


def _pool_of(offering: Offering) -> tuple[OfferingKey, str]:
    return offering.key, offering.capacity_provider or ""


def _keeps_off(failure: CapacityFailure, offering: Offering, now: datetime) -> bool:
    """Return whether a failure is reason enough for a job with a deadline to avoid an offering."""
    is_pool = offering.is_own_machine and failure.offering == offering.key
    return now - failure.at < KNOWN_AFTER if is_pool else failure.until > now - _LOOKS_AGAIN
