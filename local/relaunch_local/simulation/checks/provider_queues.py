"""Checks of capacity providers whose groups are at their maximum size: they are queues, and no missing capacity.

What a group has and asks EC2 for, and which tasks run there, is what the simulated region knows. Of the application
only its claim is read: that a job waits for capacity, and that a spot pool has none.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.offerings.offering import OfferingKey
from relaunch.core.offerings.pool_records import SpotPool, pool_hours
from relaunch_local.ecs import Clock, EcsSimulator
from relaunch_local.ecs.engine.model import CapacityProvider, ContainerInstanceStatus, Instance
from relaunch_local.simulation.aws.template import CLUSTER
from relaunch_local.simulation.checks.constraints import find_violated
from relaunch_local.simulation.checks.facts import AccountFacts
from relaunch_local.simulation.scenario import Scenario

_EVERY_SECONDS = 60.0
LONGEST_BESIDE_FREE_MACHINE = timedelta(minutes=25)
"""A full group is avoided for a quarter of an hour, after which a job looks within five minutes."""
FULL_FOR = timedelta(minutes=4)
"""No job gives up a launch earlier: a group that was full for so long before it did asked EC2 for nothing."""


class SeesPools(Protocol):
    """What is known of spot pools in the table, without delays and faults."""

    def load_pool(self, offering: OfferingKey) -> SpotPool:
        """Return what is known of one pool."""
        ...


@dataclass(slots=True)
class ProviderQueues:
    """Watches free machines of capacity providers beside waiting jobs, and full groups beside what is learned."""

    _clock: Clock
    _check: Callable[[str, bool, str], None]
    _simulator: EcsSimulator
    _scenario: Scenario
    _facts: AccountFacts
    _jobs: Mapping[str, Job]
    _pools: SeesPools
    longest: timedelta = timedelta(0)
    """The longest time for which a job waited for capacity beside a machine that was free for it all the time."""
    _beside_since: dict[tuple[str, str], datetime] = field(default_factory=dict)
    """By waiting job and instance."""
    _full_since: dict[str, datetime] = field(default_factory=dict)
    """By provider."""
    _learned_at: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Look every minute from now on."""
        if self._scenario.providers:
            self._clock.call_later(_EVERY_SECONDS, self._look)

    def _look(self) -> None:
        self._clock.call_later(_EVERY_SECONDS, self._look)
        self._check_waits()
        for provider in self._simulator.clusters.get(CLUSTER).providers.values():
            self._check_lesson(provider)

    def _check_waits(self) -> None:
        now, before = self._clock.now(), self._beside_since
        self._beside_since = {pair: before.get(pair, now) for pair in self._pairs()}
        for (job_id, instance_id), since in self._beside_since.items():
            self.longest = max(self.longest, now - since)
            message = f"{job_id} beside {instance_id} since {since}"
            in_time = now - since <= LONGEST_BESIDE_FREE_MACHINE
            self._check("no job waits for capacity beside a free machine", in_time, message)

    def _pairs(self) -> Iterator[tuple[str, str]]:
        """Yield the jobs that say they wait for capacity, and the free machines that ECS would place their task on."""
        waiting = [
            each
            for each in self._jobs.values()
            if each.state is JobState.WAITING and each.waiting and each.waiting.reason is WaitReason.CAPACITY
        ]
        free = [each for each in self._simulator.instances.by_id.values() if self._is_free(each)] if waiting else []
        for job in waiting:
            yield from ((job.job_id, each.instance_id) for each in free if self._is_for(job, each))

    def _is_free(self, host: Instance) -> bool:
        provider = host.provider
        is_open = provider is not None and provider.is_active and not provider.refusal
        is_up = host.is_alive and host.status is ContainerInstanceStatus.ACTIVE and host.agent_connected
        is_sound = not host.start_error and len(host.gpu_ids) == host.shape.gpus
        is_left = self._facts.was_threatened(host.instance_id)
        return is_open and is_up and is_sound and not host.tasks and not is_left

    def _is_for(self, job: Job, host: Instance) -> bool:
        definition, on_demand = job.definition, self._scenario.on_demand_usd_per_hour.get(host.instance_type)
        cap = definition.max_price_usd_per_hour
        # On demand it costs as much as on spot at most.
        is_cheap = cap is None or (on_demand is not None and on_demand <= cap)
        is_bought = PurchaseOption(host.purchase.value) in definition.purchase.options
        return is_cheap and is_bought and not find_violated(self._simulator, definition.task_definition, host)

    def _check_lesson(self, provider: CapacityProvider) -> None:
        now, group = self._clock.now(), provider.group
        hosts = list(group.instances.values())
        is_busy = all(each.is_registered and each.tasks for each in hosts)
        if hosts and is_busy and len(hosts) >= group.spec.max_size and provider.is_active and not provider.refusal:
            since = self._full_since.setdefault(provider.name, now)
        else:
            self._full_since.pop(provider.name, None)
            since = now
        if PurchaseOption(group.spec.purchase.value) is not PurchaseOption.SPOT:
            return
        record = self._pools.load_pool(OfferingKey(group.spec.instance_type, None, PurchaseOption.SPOT)).record
        if record.has_capacity is not False or record.seen_at <= self._learned_at.get(provider.name, -1.0):
            return
        self._learned_at[provider.name] = record.seen_at
        was_full = pool_hours(since) + FULL_FOR / timedelta(hours=1) <= record.seen_at
        message = f"{provider.name}: no capacity at {now}, full since {since}"
        self._check("a full group is no lesson on spot", not was_full, message)
