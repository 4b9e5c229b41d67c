"""Checks what is bought for a job: it is on sale, fits the job, and nothing that fits is much cheaper.

What is on sale and at which price is what the simulated region says. The first choice for a job without a limit on its
time is compared: later ones depend on what became of the first.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import PlacementState
from relaunch.core.jobs.effects import RememberCapacity
from relaunch.core.jobs.job import Job
from relaunch.core.machines.machine import Machine
from relaunch.core.offerings.capacity_memory import find_failures, refused_placements, with_job_failures
from relaunch.core.offerings.offering import CapacityMemory, Offering
from relaunch.core.selection.selection import Selection
from relaunch_local.ecs import Clock, EcsSimulator, Purchase, SpotPrice
from relaunch_local.ecs.engine.instances import LaunchSpecification
from relaunch_local.ecs.engine.settings import DEFAULT_IMAGE_ID
from relaunch_local.simulation.aws.template import CLUSTER
from relaunch_local.simulation.checks.constraints import find_violated
from relaunch_local.simulation.checks.on_demand import SeesFailures
from relaunch_local.simulation.checks.reservations import ReservedStock
from relaunch_local.simulation.scenario import ZONES, Scenario

# For so long a function may keep a price, with the skew of its clock.
_PRICES_KEPT = timedelta(minutes=12)
# A launch that succeeds ends a failure, which a slow function may have read before.
_FORGOTTEN_AFTER = timedelta(hours=1)
_LONGEST_FUNCTION = timedelta(seconds=67)
# The prices and the memory of a plan that took longer are not those of its end.
_LONGEST_PLAN = timedelta(minutes=5)
# What lacked capacity a while ago is chosen after others that cost up to a quarter more.
_COMPARABLE = 1.26


@dataclass(frozen=True, slots=True)
class OnSale:
    """What the region sells: by a capacity provider, or as a machine of our own in a zone."""

    instance_type: str
    purchase: PurchaseOption
    zone: str | None
    capacity_provider: str | None

    def __str__(self) -> str:
        """Return it in a few words."""
        return f"{self.instance_type} {self.purchase} {self.zone or self.capacity_provider}"


@dataclass(slots=True)
class Choices:
    """Looks at each machine that is requested, and at each placement by a capacity provider."""

    _clock: Clock
    _check: Callable[[str, bool, str], None]
    _scenario: Scenario
    _simulator: EcsSimulator
    _memory: SeesFailures
    _failed_at: Mapping[str, Sequence[datetime]]
    """When the calls of each action failed for good."""
    _effects: Mapping[tuple[type, str], datetime]
    """When each effect was done last."""
    _is_held_back: Callable[[str, str, str], bool]
    """Whether no other machine is bought in a pool, of a type, a purchase option and a zone, as some were useless."""
    _paused_until: Callable[[str, datetime], datetime]
    """Returns until when no machine is bought for a family, for which several were useless."""

    reserved: ReservedStock | None = None
    """What is reserved; None: nothing."""

    def job_saved(self, before: Job | None, job: Job) -> None:
        """Check a new placement by a capacity provider."""
        attempt = job.attempt
        if attempt is None or attempt.placement.state is not PlacementState.PENDING:
            return
        known = before.attempt if before is not None else None
        placement = attempt.placement
        if known is not None and (known.number, known.placement.number) == (attempt.number, placement.number):
            return
        if not placement.capacity_provider:
            return
        bought = OnSale(
            placement.offering.instance_type, placement.offering.purchase, None, placement.capacity_provider
        )
        is_first = known is None and not attempt.closed_placements
        self._check_choice(job, bought, is_first=is_first)

    def machine_requested(self, machine: Machine, jobs: Mapping[str, Job]) -> None:
        """Check a machine of our own that is requested; `jobs` are the jobs as they were saved last."""
        keys = [each.offering for each in machine.request.overrides]
        for job in (jobs[each.job_id] for each in machine.claims):
            is_first = job.attempt is None and job.machines.requested <= 1
            for place, key in enumerate(keys):
                bought = OnSale(key.instance_type, key.purchase, key.zone, None)
                self._check_choice(job, bought, is_first=is_first and place == 0)

    def check_plan(self, definition: JobDefinition, revision: str, selection: Selection | None, at: datetime) -> None:
        """Check that a plan of `relaunch plan` keeps what is on sale, fits, and is not avoided, and nothing else."""
        if selection is None or not self._may_compare(definition) or self._clock.now() - at > _LONGEST_PLAN:
            return
        now = self._clock.now()
        kept = {
            OnSale(each.instance_type.name, each.purchase, each.zone, each.capacity_provider) for each in selection.kept
        }
        wrong = [each for each in kept if not (self._is_sold(each, definition) and self._fits(each, definition))]
        message = f"{definition.name}: {', '.join(map(str, wrong))}"
        self._check("what a plan keeps is on sale and fits the job", not wrong, message)
        left_out = [each for each in self._open_to(definition, revision, now) if each not in kept]
        message = f"{definition.name}: {', '.join(map(str, left_out))}"
        self._check("a plan keeps whatever fits the job and may be bought", not left_out, message)
        first = selection.kept[0] if selection.kept else None
        if first is not None:
            chosen = OnSale(first.instance_type.name, first.purchase, first.zone, first.capacity_provider)
            self._check_cheapest(definition, revision, chosen, f"the plan of {definition.name}")

    def find_open(self, job: Job) -> str:
        """Return what a job may be launched on now, empty if there is nothing, or if it must not be compared."""
        if not self._may_compare(job.definition) or job.faults.own_failures or self._scenario.machines.has_close_quota:
            return ""
        return ", ".join(map(str, self._open_to(job.definition, job.revision.arn, self._clock.now())))

    def _may_compare(self, definition: JobDefinition) -> bool:
        """Return whether jobs of a definition are to have what is cheapest."""
        has_limit = definition.deadline is not None or definition.patience is not None
        is_by_price = not has_limit and definition.target is Target.ECS
        return is_by_price and not (self._scenario.has_refreshes or self._scenario.limits.machines.max_usd_per_hour)

    def _is_sold(self, offered: OnSale, definition: JobDefinition) -> bool:
        return offered.purchase in definition.purchase.options and offered in self._on_sale()

    def _open_to(self, definition: JobDefinition, revision: str, now: datetime) -> Iterator[OnSale]:
        """Yield what jobs of a definition and its revision may be launched on, at a price that is known."""
        # A function decides on what it read up to a minute ago.
        memory = self._memory.load_capacity_memory(now - _LONGEST_FUNCTION)
        memory = with_job_failures(memory, refused_placements(revision, memory))
        cap = definition.max_price_usd_per_hour
        for each in self._on_sale():
            prices = self._prices(each, now)
            is_sold = each.purchase in definition.purchase.options and prices and (cap is None or max(prices) <= cap)
            if each.purchase is PurchaseOption.RESERVED and not self._has_free(each, definition, now):
                continue
            if (
                is_sold
                and self._is_worth_it(each, prices)
                and not self._is_avoided(each, memory, now)
                and self._fits(each, definition)
            ):
                yield each

    def _has_free(self, offered: OnSale, definition: JobDefinition, now: datetime) -> bool:
        """Return whether a free instance is reserved, and every function knows."""
        reserved = self.reserved
        # Who has waited for them goes on without reservations that cannot be read.
        unread = self._failed_at["ec2:describe_capacity_reservations"]
        if any(at > now - _LONGEST_FUNCTION for at in unread):
            return False
        return reserved is not None and reserved.is_open(offered.instance_type, offered.zone, definition, now)

    def _is_worth_it(self, offered: OnSale, prices: Sequence[float]) -> bool:
        """Return whether spot saves as much as the stack demands (MaxSpotRatio)."""
        on_demand = self._scenario.on_demand_usd_per_hour.get(offered.instance_type)
        is_compared = offered.purchase is PurchaseOption.SPOT and on_demand is not None
        return not is_compared or max(prices) <= self._scenario.limits.selection.max_spot_ratio * (on_demand or 0.0)

    def _check_cheapest(self, definition: JobDefinition, revision: str, bought: OnSale, what: str) -> None:
        now = self._clock.now()
        paid = self._prices(bought, now)
        # A capacity provider may be asked meanwhile. What a function does it read a minute ago.
        is_paused = self._paused_until(definition.task_definition, now - _LONGEST_FUNCTION) > now - _LONGEST_FUNCTION
        if paid:
            cheaper = [
                each
                for each in self._open_to(definition, revision, now)
                if not (is_paused and each.capacity_provider is None)
                and _is_comparable(each, bought, definition)
                and max(self._prices(each, now)) * _COMPARABLE < min(paid)
                and not (each.zone and self._is_held_back(each.instance_type, each.purchase.value, each.zone))
            ]
            message = f"{what}: {bought} for {min(paid)}, beside {', '.join(map(str, cheaper))}"
            self._check("nothing that fits a job is much cheaper than its first choice", not cheaper, message)

    def _check_choice(self, job: Job, bought: OnSale, *, is_first: bool) -> None:
        if self._scenario.has_refreshes:
            return  # until the first refresh the offerings are the bundled ones of the region, which sells others here
        is_sold = self._is_sold(bought, job.definition) and self._fits(bought, job.definition)
        self._check("what is bought is on sale and fits the job", is_sold, f"{job.job_id}: {bought}")
        if is_first and self._may_compare(job.definition) and not job.faults.own_failures:
            self._check_cheapest(job.definition, job.revision.arn, bought, job.job_id)

    def _on_sale(self) -> Iterator[OnSale]:
        machines = self._scenario.machines
        for name in machines.types:
            for zone in machines.zones:
                for purchase in (PurchaseOption.SPOT, PurchaseOption.ON_DEMAND):
                    yield OnSale(name, purchase, zone, None)
        for name, reserved_zone in self.reserved.every() if self.reserved is not None else ():
            yield OnSale(name, PurchaseOption.RESERVED, reserved_zone, None)
        for each in self._scenario.providers:
            yield OnSale(each.instance_type, each.purchase, None, each.name)

    def _prices(self, offered: OnSale, now: datetime) -> Sequence[float]:
        """Return the prices that a function may know, those of the dearest zone for a provider; none if unread."""
        on_demand = self._scenario.on_demand_usd_per_hour.get(offered.instance_type)
        if offered.purchase is PurchaseOption.RESERVED:
            return [0.0]
        if offered.purchase is PurchaseOption.ON_DEMAND:
            return [on_demand] if on_demand is not None else []
        if any(at > now - _PRICES_KEPT for at in self._failed_at["ec2:describe_spot_price_history"]):
            return []
        zones = (offered.zone,) if offered.zone else ZONES
        known = [self._spot_prices(offered.instance_type, zone, now) for zone in zones]
        return [max(min(each) for each in known), max(max(each) for each in known)] if all(known) else []

    def _spot_prices(self, name: str, zone: str, now: datetime) -> list[float]:
        """Return the spot prices of a zone that EC2 has answered since a function may have read them."""
        since = now - _PRICES_KEPT
        known: list[SpotPrice] = [
            each for each in self._scenario.spot_prices if (each.instance_type, each.zone) == (name, zone)
        ]
        earlier = [each for each in known if each.since is None or each.since <= since]
        later = [each for each in known if each.since is not None and since < each.since <= now]
        return [each.price_usd_per_hour for each in (*earlier[-1:], *later)]

    def _is_avoided(self, offered: OnSale, memory: CapacityMemory, now: datetime) -> bool:
        """Return whether the stack remembers that a launch of this failed, or did when the function read it."""
        offering = Offering(
            load_catalogue()[offered.instance_type],
            offered.purchase,
            offered.zone,
            capacity_provider=offered.capacity_provider,
            is_own_machine=offered.capacity_provider is None,
        )
        remembered_at = self._effects.get((RememberCapacity, str(offering.key)))
        is_fresh = remembered_at is not None and now - remembered_at < _FORGOTTEN_AFTER
        return is_fresh or bool(find_failures(offering, memory))

    def _fits(self, offered: OnSale, definition: JobDefinition) -> bool:
        """Return whether the machine has the GPUs of a definition, and ECS places its tasks there."""
        gpu = definition.accelerator.gpu
        machine = load_catalogue()[offered.instance_type]
        if gpu is not None:
            has_gpus = machine.gpu_count >= (gpu.count or 1)
            has_memory = gpu.memory_mib is None or (machine.accelerator_memory_mib or 0) >= gpu.memory_mib
            if not (has_gpus and has_memory):
                return False
        cluster = self._simulator.clusters.get(CLUSTER)
        # EC2 describes what is reserved as on-demand.
        is_reserved = offered.purchase is PurchaseOption.RESERVED
        bought = Purchase.ON_DEMAND if is_reserved else Purchase(offered.purchase.value)
        zones = (offered.zone,) if offered.zone else ZONES
        specs = [LaunchSpecification(offered.instance_type, bought, zone, cluster, DEFAULT_IMAGE_ID) for zone in zones]
        hosts = [self._simulator.instances.describe_new(spec) for spec in specs]
        return any(not find_violated(self._simulator, definition.task_definition, host) for host in hosts)


def _is_comparable(offered: OnSale, bought: OnSale, definition: JobDefinition) -> bool:
    """Return whether the price per hour says which of two is cheaper.

    With an estimated duration the time until the job has finished counts too, in which spot may be interrupted as often
    as it has been, and a capacity provider's instance is paid for beyond it. What is reserved costs nothing more. Where
    speeds are known, or learned, the time is not the same on another model.
    """
    models = {load_catalogue()[each.instance_type].accelerator_model for each in (offered, bought)}
    is_by_speed = definition.estimated_on is not None or definition.total_steps is not None
    if is_by_speed and len(models) > 1:
        return False
    if definition.estimated_duration is None or offered.purchase is PurchaseOption.RESERVED:
        return True
    of_provider = bool(offered.capacity_provider), bool(bought.capacity_provider)
    return offered.purchase is bought.purchase is PurchaseOption.ON_DEMAND and len(set(of_provider)) == 1
