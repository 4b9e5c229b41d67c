"""Checks of capacity providers whose groups are at their maximum size: they are queues, and no missing capacity.

What a group has and asks EC2 for, and which tasks run there, is what the simulated region knows. Of the application
only its claim is read: that a job waits for capacity, and that a spot pool has none.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.offerings.offering import OfferingKey
from relaunch.core.offerings.spot_runs import SpotPool, pool_hours
from relaunch_local.ecs import Clock, EcsSimulator
from relaunch_local.ecs.engine.model import CapacityProvider, ContainerInstanceStatus, Instance
from relaunch_local.simulation.aws.template import CLUSTER
from relaunch_local.simulation.checks.constraints import find_violated
from relaunch_local.simulation.checks.facts import AccountFacts
from relaunch_local.simulation.checks.times import timestamp
from relaunch_local.simulation.scenario import Scenario

_EVERY_SECONDS = 60.0
LONGEST_BESIDE_FREE_MACHINE = timedelta(minutes=6)
"""Until the jobs that wait for a machine of a full group are told that one is free: by an event, or by the next sweep
that ECS answers."""
_OTHER_CAUSE = timedelta(hours=1)
"""For so long jobs may avoid a provider that was not ACTIVE, or of which EC2 refused an instance."""
_MOST_LOOKED_AT = 100
"""With more tasks the application does not look at all of them (docs/operations.md)."""
_OWN_CAUSE = timedelta(minutes=20)
"""For so long a job may avoid where its task did not start, blamed its machine, or got none but those it avoids."""


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
    _tasks: Mapping[str, Mapping[str, Mapping[str, object]]]
    """By job and task: ECS's latest state."""
    _pools: SeesPools
    longest: timedelta = timedelta(0)
    """The longest time for which a job waited for capacity beside a machine that was free for it all the time."""
    _beside_since: dict[tuple[str, str], datetime] = field(default_factory=dict)
    """By waiting job and instance."""
    _waiting: set[str] = field(default_factory=set)
    """The jobs that waited for capacity at the last look."""
    _full_since: dict[str, datetime] = field(default_factory=dict)
    """By provider."""
    _troubled_at: dict[str, datetime] = field(default_factory=dict)
    """By provider: when it was last not ACTIVE, or got no instance."""
    _learned_at: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Look every minute from now on."""
        if self._scenario.providers:
            self._clock.call_later(_EVERY_SECONDS, self._look)

    def _look(self) -> None:
        self._clock.call_later(_EVERY_SECONDS, self._look)
        providers = self._simulator.clusters.get(CLUSTER).providers.values()
        now = self._clock.now()
        for provider in providers:
            if not provider.is_active or provider.refusal:
                self._troubled_at[provider.name] = now
        self._check_waits()
        for provider in providers:
            self._check_lesson(provider)

    def _check_waits(self) -> None:
        now = self._clock.now()
        before = self._beside_since
        waiting = [
            each
            for each in self._jobs.values()
            if each.state is JobState.WAITING and each.waiting and each.waiting.reason is WaitReason.CAPACITY
        ]
        self._beside_since = {pair: before.get(pair, now) for pair in self._pairs(waiting)}
        self._waiting = {each.job_id for each in waiting}
        for (job_id, instance_id), since in self._beside_since.items():
            self.longest = max(self.longest, now - since)
            message = f"{job_id} beside {instance_id} since {since}"
            in_time = now - since <= LONGEST_BESIDE_FREE_MACHINE + self._facts.outage_time(since, now)
            self._check("no job waits for capacity beside a machine of a full group that is free", in_time, message)

    def _pairs(self, waiting: Sequence[Job]) -> Iterator[tuple[str, str]]:
        """Yield the jobs that wait, and the free machines that ECS would place their task on.

        A pair begins while a group is full for which the job has waited, and goes on until either is over.
        """
        free = [each for each in self._simulator.instances.by_id.values() if self._is_free(each)] if waiting else []
        for job in waiting:
            for host in free:
                pair = (job.job_id, host.instance_id)
                provider = host.provider.name if host.provider else ""
                is_known = pair in self._beside_since
                begins = provider in self._full_since and job.job_id in self._waiting
                if (is_known or begins) and self._is_for(job, host) and not self._avoids_for_itself(job, provider):
                    yield pair

    def _avoids_for_itself(self, job: Job, provider: str) -> bool:
        """Return whether a task of the job ended lately that had an instance, or waited for one and got none.

        The latter counts only for a job that is kept from instances, as its tasks did not start there: that it gets
        none is about the job alone, so that no machine that is free ends it.
        """
        now = self._clock.now()
        tasks = self._tasks[job.job_id].values()
        started_at = max((at for each in tasks if (at := timestamp(each, "startedAt"))), default=None)
        is_kept = False
        for each in sorted(tasks, key=lambda each: str(each.get("createdAt", ""))):
            ended_at = timestamp(each, "stoppedAt")
            if ended_at is None:
                continue
            has_instance = bool(each.get("containerInstanceArn"))
            got_none = is_kept and each.get("capacityProviderName") == provider
            if (has_instance or got_none) and now - ended_at <= _OWN_CAUSE:
                return True
            has_failed_to_start = has_instance and "startedAt" not in each
            is_kept |= has_failed_to_start and (started_at is None or ended_at > started_at)
        return False

    def _is_free(self, host: Instance) -> bool:
        provider = host.provider
        troubled_at = self._troubled_at.get(provider.name) if provider is not None else None
        is_open = troubled_at is None or self._clock.now() - troubled_at > _OTHER_CAUSE
        is_up = host.is_alive and host.status is ContainerInstanceStatus.ACTIVE and host.agent_connected
        is_sound = not host.start_error and len(host.gpu_ids) == host.shape.gpus
        is_left = self._facts.was_threatened(host.instance_id)
        return provider is not None and is_open and is_up and is_sound and not host.tasks and not is_left

    def _is_for(self, job: Job, host: Instance) -> bool:
        definition = job.definition
        on_demand = self._scenario.on_demand_usd_per_hour.get(host.instance_type)
        cap = definition.max_price_usd_per_hour
        # On demand it costs as much as on spot at most.
        is_cheap = cap is None or (on_demand is not None and on_demand <= cap)
        is_bought = PurchaseOption(host.purchase.value) in definition.purchase.options
        return is_cheap and is_bought and not find_violated(self._simulator, definition.task_definition, host)

    def _check_lesson(self, provider: CapacityProvider) -> None:
        now = self._clock.now()
        group = provider.group
        hosts = list(group.instances.values())
        is_busy = all(each.is_registered and self._has_shown_task(each) for each in hosts)
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
        # For so long a launch waited before it was given up: a group that was full all the time asked EC2 for nothing.
        waited = self._scenario.limits.provisioning_deadline(is_managed=False)
        was_full = pool_hours(since) + waited / timedelta(hours=1) <= record.seen_at
        was_full &= len(self._simulator.clusters.get(CLUSTER).tasks) <= _MOST_LOOKED_AT
        message = f"{provider.name}: no capacity at {now}, full since {since}"
        self._check("a full group is no lesson on spot", not was_full, message)

    def _has_shown_task(self, host: Instance) -> bool:
        """Return whether an instance has a task that ECS never denied: one that it denies is over for everybody."""
        tasks = self._simulator.clusters.get(CLUSTER).tasks
        return any(self._facts.hidden_span(tasks[each].arn) is None for each in host.tasks)
