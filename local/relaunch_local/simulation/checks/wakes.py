"""Checks that every open job is looked at again, and in time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from relaunch.core.jobs.attempt import StopKind
from relaunch.core.jobs.job import Job, claimed_machines
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.lifecycle.moves import stops_by
from relaunch_local.ecs import Clock
from relaunch_local.simulation.checks.facts import AccountFacts
from relaunch_local.simulation.checks.record import Check

# The longest interval between two wakes of a job: 15 minutes for a slot, 30 for the start of an instance.
WAKE_HORIZON = timedelta(minutes=31)
_PROBE_HORIZON = timedelta(days=1, minutes=1)
# The schedule runs every minute, but with many faults half of its runs are killed, and calls fail in others.
LONGEST_OVERDUE = timedelta(minutes=30)


@dataclass(slots=True)
class Wakes:
    """Checks the time for which each job is due."""

    _check: Check
    _clock: Clock
    _facts: AccountFacts
    _saved_at: Mapping[str, datetime]
    """By job: when it was last saved."""
    _failed_starts: Mapping[str, Sequence[str]]
    """By job: the machines that did not start it, since it last ran."""
    has_used_up: Callable[[str], bool] = lambda _job_id: False
    """Returns whether a job has had as many machines in a day that never ran its task as it may have."""
    _probes_at: dict[str, datetime | None] = field(default_factory=dict)
    """By job: until when it waits for the next machine after it gave one up because of a refusal."""

    def check_due(self, before: Job | None) -> None:
        """Check a job that is about to be saved, as it was saved before."""
        if before is None or before.wake_at is None:
            return
        # A job that was overdue already when it was saved is due since it was saved.
        now = self._clock.now()
        due_at = max(before.wake_at, self._saved_at[before.job_id])
        is_in_time = now - due_at <= LONGEST_OVERDUE + self._facts.outage_time(due_at, now)
        message = f"{before.job_id} {before.state}: {now - due_at}"
        self._check("what is due is looked at in time", is_in_time, message)

    def check_wake(self, before: Job | None, job: Job) -> None:
        """Check when a job that was saved is looked at next."""
        if job.state.is_final:
            self._check("what is over waits for nothing", bool(job.pending) == (job.wake_at is not None), job.job_id)
            return
        stop_by = stops_by(job)
        attempt = job.attempt
        if stop_by is not None and attempt is not None and attempt.host_ended_at is None:
            is_in_time = job.wake_at is not None and job.wake_at <= stop_by
            message = f"{job.job_id}: {job.wake_at}, not {stop_by}"
            self._check("a task that trains on is looked at at its last moment", is_in_time, message)
        horizon = _PROBE_HORIZON if self._waits_for_probe(before, job) else WAKE_HORIZON
        is_soon = job.wake_at is not None and job.wake_at - self._clock.now() <= horizon
        self._check("every open job is woken", is_soon, f"{job.job_id} is {job.state}, wake_at {job.wake_at}")

    def _waits_for_probe(self, before: Job | None, job: Job) -> bool:
        """Return whether a refused job gave a machine up, so that its next try, up to a day away, buys another one.

        A start that is refused had a machine, ours or a capacity provider's. One that had its six of a day may have
        run on another since.
        """
        if job.waiting is None or job.waiting.reason not in (WaitReason.REFUSED, WaitReason.CHECKPOINT):
            return False
        has_tried = before is not None and (claimed_machines(before) or self._failed_starts[job.job_id])
        stop = job.attempt.stop if job.attempt is not None else None
        is_refused = stop is not None and stop.kind is StopKind.START_REFUSED
        has_stopped = before is not None and before.state is not JobState.WAITING
        is_used_up = self.has_used_up(job.job_id)
        if (has_tried or is_used_up or (is_refused and has_stopped)) and not job.machine_id:
            self._probes_at[job.job_id] = job.waiting.until
        return not job.machine_id and job.waiting.until == self._probes_at.get(job.job_id)
