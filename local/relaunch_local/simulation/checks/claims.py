"""Checks that jobs and machines of our own agree on which job claims which machine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from relaunch.core.jobs.effects import ReleaseMachine
from relaunch.core.jobs.job import Job, claimed_machines
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.machines.decision import MachineTotals
from relaunch.core.machines.groups import first_id_of
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import NOTHING, Machine, MachineState
from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.s3 import ObjectStore
from relaunch_local.simulation.checks.facts import AccountFacts
from relaunch_local.simulation.checks.record import Check

# What a function read, it read at most its time-out ago.
_LONGEST_FUNCTION = timedelta(seconds=60)
# What the design says, written down here once more.
_KEPT_FOR_BACKOFF = timedelta(seconds=60)
_KEPT_FOR_OTHERS = timedelta(minutes=10)
# Messages are late, and looks fail.
_LATE = timedelta(minutes=20)
# A function decides on what it read up to its time-out ago, from an index that lags behind by as much again.
_KNOWN_AFTER = 2 * _LONGEST_FUNCTION
# So many machines with room a function looks at.
_MOST_LOOKED_AT = 10
KEPT = "a job keeps no machines for others that do not come"
JOINED = "no machine is requested beside a ready one like it that has room"


class SeesMachines(Protocol):
    """The table's content, without delays and faults."""

    def load_machine(self, machine_id: str) -> Machine | None:
        """Load a machine."""
        ...

    def load_totals(self) -> MachineTotals:
        """Return the counters."""
        ...


@dataclass(slots=True)
class Claims:
    """Checks the claims of each job and each machine that is saved."""

    _clock: Clock
    _check: Check
    _jobs: Mapping[str, Job]
    """The jobs as they were saved last."""
    _objects: ObjectStore
    _facts: AccountFacts
    _limits: MachineLimits
    store: SeesMachines = field(init=False)
    _kept: set[tuple[str, ...]] = field(default_factory=set)
    """The machines of jobs that keep some for others, which are looked at once they have kept them for long enough."""
    _usable: dict[str, tuple[Machine, datetime]] = field(default_factory=dict)
    """The machines that may be claimed, and since when each has had its state and its claims."""

    def job_saved(self, before: Job | None, job: Job) -> None:
        """Check a job that was created or saved with its machines."""
        waits = job.waiting is not None and job.waiting.reason is WaitReason.MACHINE
        self._check("a job that waits for a machine has one", not waits or bool(job.machine_id), job.job_id)
        is_idle = job.state is JobState.WAITING and not waits and not _is_launched_soon(job)
        holds = f"{job.job_id} waits for {job.waiting.reason if job.waiting else 'nothing'} with {job.machine_id}"
        self._check("a job that waits for something else holds no machine", not (is_idle and job.machine_id), holds)
        needed = claimed_machines(job)
        for machine_id in needed:
            machine = self.store.load_machine(machine_id)
            self._check("a job's machine exists", machine is not None, f"{job.job_id}: {machine_id}")
            if (
                machine is not None
                and machine.state.is_usable
                and before
                and machine_id not in claimed_machines(before)
            ):
                has_claim = machine.claim_of(job.job_id) is not None
                self._check("a job's claim is on its machine", has_claim, f"{job.job_id}: {machine_id}")
        for machine_id in (claimed_machines(before) if before else frozenset()) - needed:
            is_released = any(
                isinstance(each, ReleaseMachine) and each.machine_id == machine_id for each in job.pending
            )
            self._check("a job releases what it does not need", is_released, f"{job.job_id}: {machine_id}")

        self._watch_kept(job)

    def _watch_kept(self, job: Job) -> None:
        """Look at a job that keeps machines for others, requested later, when it must have given them back."""
        requests = {first_id_of(each) for each in job.next_machines}
        if len(requests) < 2 or job.next_machines in self._kept:
            return
        self._kept.add(job.next_machines)
        machines = [self.store.load_machine(each) for each in job.next_machines]
        newest = max((each for each in machines if each), key=lambda each: each.created_at)
        own = self._limits.registration_deadline_of(newest.request.overrides[0].offering.instance_type)
        until = newest.created_at + min(own, _KEPT_FOR_OTHERS) + _LATE
        self._look_at_kept(job.job_id, job.next_machines, newest.created_at, until)

    def _look_at_kept(self, job_id: str, machine_ids: tuple[str, ...], since: datetime, until: datetime) -> None:
        now = self._clock.now()
        due = until + self._facts.outage_time(since, now)
        if now < due:
            seconds = (due - now).total_seconds()
            self._clock.call_later(seconds, lambda: self._look_at_kept(job_id, machine_ids, since, until))
            return
        job = self._jobs.get(job_id)
        waits = job is not None and job.state is JobState.WAITING and job.next_machines == machine_ids
        machines = [self.store.load_machine(each) for each in machine_ids]
        late = [each.machine_id for each in machines if each is not None and each.state is not MachineState.READY]
        self._check(KEPT, not (waits and late), f"{job_id}: {', '.join(late)} for {now - since}")

    def _watch_room(self, before: Machine | None, machine: Machine) -> None:
        """Note since when a machine is as it is; of one that is requested, check that no other one has room instead."""
        now = self._clock.now()
        if machine.state.is_usable:
            known, since = self._usable.get(machine.machine_id, (None, now))
            is_same = known is not None and (known.state, known.claims) == (machine.state, machine.claims)
            self._usable[machine.machine_id] = (machine, since if is_same else now)
        else:
            self._usable.pop(machine.machine_id, None)
        if before is None and machine.request.size == 1 and len(self._usable) <= _MOST_LOOKED_AT:
            for claim in machine.claims:
                job = self._jobs.get(claim.job_id)
                others = [
                    each.machine_id
                    for each, since in self._usable.values()
                    if since <= now - _KNOWN_AFTER and job is not None and self._may_join(job, each, machine)
                ]
                self._check(JOINED, not others, f"{claim.job_id}: {machine.machine_id} beside {', '.join(others)}")

    def _may_join(self, job: Job, ready: Machine, requested: Machine) -> bool:
        """Return whether a job that requests a machine may take room on a ready one.

        What it fits on is not judged here again: the ready one is of a type, a market and a zone that it requests.
        """
        keys = [each.offering for each in requested.request.overrides]
        is_alike = ready.offering in keys and not ready.request.reservation_id
        is_threatened = self._facts.was_threatened(ready.instance_id or "")
        if ready.state is not MachineState.READY or not is_alike or is_threatened:
            return False
        cap = job.definition.max_price_usd_per_hour
        is_affordable = cap is None or ready.usd_per_hour <= cap
        return job.definition.nodes == 1 and is_affordable and ready.accepts(requested.claims[0].resources)

    def is_released(self, job_id: str, machine_id: str) -> bool:
        """Return whether a machine has no claim of the job."""
        machine = self.store.load_machine(machine_id)
        return machine is None or machine.claim_of(job_id) is None

    def machine_saved(self, before: Machine | None, machine: Machine) -> None:
        """Check the claims on a machine that was created or saved, after the jobs that were saved with it."""
        taken = sum((each.resources for each in machine.claims), NOTHING)
        fits = machine.capacity.holds(taken)
        self._check("what claims a machine fits on it", fits, f"{machine.machine_id}: {len(machine.claims)} claims")
        self._watch_room(before, machine)
        if not machine.state.is_usable:
            self._check("a machine that ends has no claims", not machine.claims, machine.machine_id)
        known = {each.job_id for each in before.claims} if before else set()
        for claim in machine.claims:
            if claim.job_id in known:
                continue
            is_warned = machine.warned_at is not None or self._facts.was_warned(machine.instance_id or "")
            is_closed = is_warned or machine.is_unusable
            self._check("a machine that was warned takes no claims", not is_closed, machine.machine_id)
            job = self._jobs.get(claim.job_id)
            is_its = job is not None and machine.machine_id in claimed_machines(job)
            self._check("a claim is saved with its job", is_its, f"{machine.machine_id}: {claim.job_id}")
            if before is None and job is not None and job.state is JobState.WAITING and job.definition.checkpoint_uri:
                closed_since = self._objects.closed_since
                is_readable = closed_since is None or self._clock.now() - closed_since < _LONGEST_FUNCTION
                self._check("no machine is requested for unreadable checkpoints", is_readable, claim.job_id)


def _is_launched_soon(job: Job) -> bool:
    # For how long a refused job keeps its machine is a check of its own (checks.refusals).
    if job.waiting is not None and job.waiting.reason is WaitReason.BACKOFF and job.waiting.until is not None:
        # A program that failed soon after its start is started again on the machine that it had.
        is_same = job.attempt is not None and job.attempt.placement.machine_id == job.machine_id
        return is_same and job.waiting.until - job.waiting.since <= _KEPT_FOR_BACKOFF
    return job.waiting is None or job.waiting.reason in (WaitReason.LAUNCH, WaitReason.CHECKPOINT, WaitReason.REFUSED)
