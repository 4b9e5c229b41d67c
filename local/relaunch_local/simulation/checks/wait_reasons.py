"""Checks that what a job says that it waits for is so, when it begins to wait for it.

A function decides on what it read up to a minute ago; what changed meanwhile excuses it.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.machines.groups import first_id_of
from relaunch.core.machines.settings import MACHINE_TAG
from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.s3 import ObjectStore
from relaunch_local.simulation.checks.choices import Choices
from relaunch_local.simulation.checks.facts import AccountFacts
from relaunch_local.simulation.checks.groups import is_group_wait
from relaunch_local.simulation.checks.machines import MachineInvariants

_LONGEST_FUNCTION = timedelta(seconds=67)
_STACK = ""
_LONGEST_UNKNOWN = timedelta(minutes=20)
# Codes of EC2 about one pool alone.
_LACKS = frozenset({"InsufficientInstanceCapacity", "UnfulfillableCapacity"})


@dataclass(slots=True)
class WaitReasons:
    """Looks at each job that begins to wait for something."""

    _clock: Clock
    _check: Callable[[str, bool, str], None]
    _choices: Choices
    _objects: ObjectStore
    _failed_at: Mapping[str, Sequence[datetime]]
    """When the calls of each action failed for good."""
    _max_running_jobs: int
    _machines: MachineInvariants
    _facts: AccountFacts
    _holders: dict[str, str] = field(default_factory=dict)
    """The definitions of the jobs that hold a slot."""
    _full_at: dict[str, datetime] = field(default_factory=dict)
    """When all slots of a definition, and of the stack, were taken last."""

    def job_saved(self, before: Job | None, job: Job) -> None:
        """Check what a job waits for."""
        self._note_slots(job)
        waiting = job.waiting
        was_waiting = before.waiting if before is not None else None
        if job.state is not JobState.WAITING or waiting is None:
            return
        if was_waiting is not None and (was_waiting.reason, was_waiting.slot) == (waiting.reason, waiting.slot):
            return
        now = self._clock.now()
        match waiting.reason:
            case WaitReason.SLOT if not is_group_wait(job):
                is_full = any(
                    now - self._full_at.get(slot, datetime.min.replace(tzinfo=now.tzinfo)) <= _LONGEST_FUNCTION
                    for slot in (job.definition.name, _STACK)
                )
                self._check("a job waits for a slot only while all are taken", is_full, job.job_id)
            case WaitReason.CAPACITY | WaitReason.PRICE:
                found = self._choices.find_open(job)
                message = f"{job.job_id} waits for {waiting.reason}, beside {found}"
                self._check("a job waits for capacity or a price only while nothing is open to it", not found, message)
            case WaitReason.BACKOFF:
                has_stopped = job.attempt is not None and job.attempt.stop is not None
                has_failed = (
                    has_stopped or job.machines.requested > 0 or (before is not None and bool(before.machine_id))
                )
                self._check("a job pauses only after a stop, or a machine that was refused", has_failed, job.job_id)
            case WaitReason.REFUSED:
                self._check_grant(before, job)
            case WaitReason.CHECKPOINT:
                self._check("a job waits for its checkpoints only while they cannot be read", self._is_unread(now), "")
            case _:
                pass

    def _check_grant(self, before: Job | None, job: Job) -> None:
        """Check that nobody has to grant anything to a job for whose machine EC2 had no capacity, as a function knows.

        One that dies of the answer leaves a request of which nobody knows what became of it.
        """
        machine_id = before.machine_id if before is not None and not job.machine_id else None
        codes = {code for _, code in self._machines.refused.get(machine_id or "", ())}
        is_told = first_id_of(machine_id or "") in self._facts.refusals_told
        is_lack = is_told and bool(codes) and codes <= _LACKS and not self._is_launched(machine_id or "")
        # Whoever has no answer asks again for minutes, and takes the machine for a useless one then.
        since = self._clock.now() - _LONGEST_UNKNOWN
        unanswered = (*self._failed_at["ec2:create_fleet"], *self._failed_at["ec2:run_instances"])
        is_lack = is_lack and not any(at >= since for at in unanswered)
        message = f"{job.job_id} after {', '.join(sorted(codes))}: {job.reason}"
        self._check("a job waits for somebody to grant something only after a refusal", not is_lack, message)

    def _is_launched(self, machine_id: str) -> bool:
        """Return whether EC2 launched an instance for a request, whatever it said."""
        return any(each.tags.get(MACHINE_TAG) == first_id_of(machine_id) for each in self._machines.hosts.values())

    def _note_slots(self, job: Job) -> None:
        if job.has_slot:
            self._holders[job.job_id] = job.definition.name
        else:
            self._holders.pop(job.job_id, None)
        of = Counter(self._holders.values())
        now = self._clock.now()
        # A slot that was given back just now may have been taken when the waiting job asked for it.
        if of[job.definition.name] + (not job.has_slot) >= job.definition.max_running_jobs:
            self._full_at[job.definition.name] = now
        if len(self._holders) + (not job.has_slot) >= self._max_running_jobs:
            self._full_at[_STACK] = now

    def _is_unread(self, now: datetime) -> bool:
        was_closed = self._objects.closed_since is not None or self._objects.is_locked
        return was_closed or any(
            now - at <= _LONGEST_FUNCTION
            for action, times in self._failed_at.items()
            if action.startswith("s3:")
            for at in times
        )
