"""Checks at the end of a run that nothing took longer than it may, by ECS's timestamps."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState
from relaunch_local.ecs import Clock
from relaunch_local.ecs.engine.model import Instance
from relaunch_local.simulation.checks.facts import GIVEN_UP_AFTER, AccountFacts
from relaunch_local.simulation.checks.invariants import Invariants
from relaunch_local.simulation.checks.members import placement_of

# The clocks of two functions differ by up to six seconds.
CLOCK_SKEW = timedelta(seconds=7)
# A function may be late by its minute, StopTask by its repetition (3 minutes) for as long as calls fail or an agent is
# cut off (15 minutes), the program by its stop time-out.
RUNTIME_OVERSHOOT = timedelta(minutes=45)
STOP_OVERSHOOT = timedelta(minutes=30)
# A cancelled job whose RunTask was not answered waits until ECS certainly lists its task (6 minutes); a job past its
# deadline is looked at when its task had to start (8 minutes, or 30). Then the task has to stop.
CANCEL_OVERSHOOT = timedelta(minutes=45)
_LONG_UNCONFIRMED = timedelta(minutes=30)
DEADLINE_OVERSHOOT = timedelta(minutes=65)
# A job past its deadline waits for RunTask's answer until the try is too old.
UNANSWERED = timedelta(minutes=56)
# The job's check may be late by some runs of the schedule, whose calls fail.
LOOK_OVERSHOOT = timedelta(minutes=15)
START_LIMIT = timedelta(minutes=30)
# Only a sweep repeats the stop of an orphaned task: every ten minutes, but with many faults most sweeps fail.
SWEEP_OVERSHOOT = timedelta(minutes=60)


@dataclass(frozen=True, slots=True)
class Times:
    """Checks how long jobs and their tasks took."""

    _clock: Clock
    _invariants: Invariants
    _facts: AccountFacts
    _limits: StackLimits
    _cancellations: Mapping[str, datetime]
    """By job: when a request to cancel it was answered."""
    _own_hosts: Mapping[str, Instance]
    """The instances that EC2 Fleet launched."""

    def check(self, job: Job) -> None:
        """Check a job in which nothing happens any more."""
        self._check_runtime(job)
        self._check_cancelled(job)
        self._check_deadline(job)
        self._check_starts(job)
        self._check_orphans(job)

    def check_stopped_in_time(self, job: Job, arn: str, task: Mapping[str, object]) -> None:
        meant_at = self._invariants.intents.get(arn)
        stopped_at = timestamp(task, "stoppedAt")
        if meant_at is None or stopped_at is None:
            return
        # While ECS hides a task it knows none to stop, and what was given up is left to sweeps.
        shown_at = self._facts.shown_at(arn)
        since = max(meant_at, shown_at or meant_at)
        until = self._facts.host_gone_at(arn, stopped_at) or stopped_at
        if self._facts.was_cut_off(self._facts.host_of(arn)) and arn in set(self._facts.unconfirmed_stops()):
            # The application can do no more than ask in time; what follows is the verdict's to check.
            since = meant_at
            until = self._facts.stop_asked_at[arn]
        took = until - since
        allowed = STOP_OVERSHOOT + (SWEEP_OVERSHOOT if shown_at else timedelta(0))
        allowed += self._facts.outage_time(meant_at, until)
        self._invariants.check(
            "what is meant to stop does stop", took <= allowed, f"{job.job_id}: {arn[-6:]} after {took}"
        )

    def _check_cancelled(self, job: Job) -> None:
        asked_at = self._cancellations.get(job.job_id)
        if asked_at is None or job.ended_at is None or job.ended_at <= asked_at + CLOCK_SKEW:
            return
        took = job.ended_at - asked_at
        allowed = CANCEL_OVERSHOOT + self._silent_time(job, asked_at, job.ended_at)
        allowed += self._facts.outage_time(asked_at, job.ended_at)
        self._invariants.check("what is cancelled ends in time", took <= allowed, f"{job.job_id} after {took}")
        was_late = self.was_late(job, asked_at + CLOCK_SKEW)
        is_kept = job.state in (JobState.CANCELLED, JobState.SUCCEEDED) or (
            job.state is JobState.TIMED_OUT and was_late
        )
        self._invariants.check(
            "what is cancelled ends as cancelled", is_kept, f"{job.job_id} is {job.state}: {job.reason}"
        )

    def _silent_time(self, job: Job, since: datetime, until: datetime) -> timedelta:
        """Return for how long a task that was to stop was on a host of others whose agent ECS had lost meanwhile."""
        silent = self._on_silent_hosts().intersection(self._invariants.tasks[job.job_id])
        away = [self._facts.away_time(self._facts.host_of(arn), since, until) for arn in silent]
        return min(max(away, default=timedelta(0)), GIVEN_UP_AFTER)

    def _on_silent_hosts(self) -> frozenset[str]:
        """Return the tasks that were to stop on hosts of others whose agents ECS has lost.

        A machine of our own is terminated long before the bound.
        """
        hosts = {arn: self._facts.host_of(arn) for arn in self._facts.unconfirmed_stops(_LONG_UNCONFIRMED)}
        return frozenset(
            arn for arn, host in hosts.items() if host not in self._own_hosts and self._facts.was_cut_off(host)
        )

    def is_end_unknown(self, arn: str, task: Mapping[str, object]) -> bool:
        """Return whether ECS did not describe a task when its stop was recorded."""
        recorded_at = self._invariants.recorded_at.get(arn)
        stopped_at = timestamp(task, "stoppedAt")
        return recorded_at is not None and self._facts.may_be_lost(arn, stopped_at, recorded_at + CLOCK_SKEW)

    def was_late(self, job: Job, at: datetime) -> bool:
        """Return whether the time of a job was over at `at`: its deadline, or `max_runtime` of its tasks.

        As far as anybody knows a task of whose end ECS does not tell runs until it is given up.
        """
        deadline = job.definition.deadline
        ran = timedelta(0)
        for arn, task in self._invariants.tasks[job.job_id].items():
            started_at = timestamp(task, "startedAt")
            stopped_at = timestamp(task, "stoppedAt")
            if self.is_end_unknown(arn, task):
                stopped_at = self._invariants.recorded_at[arn]
            if started_at is not None and started_at < at:
                ran += min(stopped_at or at, at) - started_at
        is_late = deadline is not None and job.accepted_at + deadline <= at
        return is_late or ran >= job.definition.max_runtime - CLOCK_SKEW

    def _check_deadline(self, job: Job) -> None:
        if job.definition.deadline is None:
            return
        latest = job.accepted_at + job.definition.deadline
        is_unanswered = job.job_id in self._facts.unanswered_jobs
        allowed = DEADLINE_OVERSHOOT + (UNANSWERED if is_unanswered else timedelta(0))
        silent = self._silent_time(job, latest, job.ended_at or self._clock.now())
        self._check_end_after(job, "it", job.ended_at, latest, allowed + silent)
        unconfirmed = set(self._facts.unconfirmed_stops(timedelta(hours=1)))
        for arn, task in self._invariants.tasks[job.job_id].items():
            stopped_at = timestamp(task, "stoppedAt")
            shown_at = self._facts.shown_at(arn)
            if stopped_at is None:
                continue
            if arn in unconfirmed:
                # Its host confirmed no stop: what can be done is to ask for it in time.
                stopped_at = self._facts.stop_asked_at[arn]
            if shown_at is None:
                self._check_end_after(job, arn[-6:], stopped_at, latest, allowed)
            else:
                # What ECS hides cannot be stopped, and what was given up is left to sweeps.
                self._check_end_after(job, arn[-6:], stopped_at, max(latest, shown_at), allowed + SWEEP_OVERSHOOT)

    def _check_end_after(
        self, job: Job, name: str, ended_at: datetime | None, latest: datetime, allowed: timedelta
    ) -> None:
        late = (ended_at or self._clock.now()) - latest
        allowed += self._facts.outage_time(latest, latest + late)
        self._invariants.check(
            "nothing lives long after its deadline", late <= allowed, f"{job.job_id}: {name} {late} later"
        )

    def _check_starts(self, job: Job) -> None:
        """Check that a task without an instance, and one that does not start, is stopped in time."""
        # The same for all: the scenario sets it.
        allowed = self._limits.provisioning_deadline(is_managed=False)
        for arn, task in self._invariants.tasks[job.job_id].items():
            placed_at = self._facts.known_at.get(arn)
            stopped_at = timestamp(task, "stoppedAt")
            if placed_at is None or stopped_at is None:
                continue
            if self._facts.shown_at(arn) is not None:
                # What ECS hides cannot be stopped, and what was given up is left to sweeps.
                placed_at += self._facts.hidden_for(arn) + SWEEP_OVERSHOOT
            # One that fails to start is ended by ECS, whose agent may be away then.
            ends_at = timestamp(task, "stoppingAt") or stopped_at
            given_up_at = min(self._facts.stop_asked_at.get(arn, stopped_at), ends_at)
            machine_at = timestamp(task, "connectivityAt") or given_up_at
            started_at = timestamp(task, "startedAt") or given_up_at
            for until, limit, name in (
                (min(machine_at, given_up_at), allowed, "a task without a machine is withdrawn in time"),
                (min(started_at, given_up_at), START_LIMIT, "a task that does not start is withdrawn in time"),
            ):
                waited = until - placed_at
                is_in_time = waited <= limit + LOOK_OVERSHOOT + self._facts.outage_time(placed_at, until)
                self._invariants.check(name, is_in_time, f"{job.job_id}: {arn[-6:]} waited {waited}")

    def _check_orphans(self, job: Job) -> None:
        silent = self._on_silent_hosts()
        for arn in self._invariants.tasks[job.job_id]:
            # EC2 leaves some instances in `shutting-down` for hours: ECS reports their tasks STOPPED long afterwards.
            stopped_at = self._facts.ran_until(arn)
            if arn in silent:
                # The application can do no more than ask until ECS wants it stopped.
                stopped_at = self._facts.stop_wanted_at.get(arn, stopped_at)
            orphan_at = self._invariants.orphans.get(arn)
            if stopped_at is not None and orphan_at is not None:
                took = stopped_at - orphan_at
                allowed = self._facts.outage_time(orphan_at, stopped_at)
                in_time = took <= STOP_OVERSHOOT + SWEEP_OVERSHOOT + allowed
                self._invariants.check("an orphaned task stops in time", in_time, f"{job.job_id}: {arn[-6:]} {took}")

    def _check_runtime(self, job: Job) -> None:
        # What a task ran after ECS had hidden it is not known; of one on a silent host, a stop is asked for in time.
        silent = self._on_silent_hosts()
        tasks = self._invariants.tasks[job.job_id]
        # Of several that ran together the one that ran longest: they are one attempt.
        longest: dict[str, timedelta] = {}
        for arn, task in tasks.items():
            span = self._facts.hidden_span(arn)
            started_at = timestamp(task, "startedAt")
            ends = [*([span[0]] if span else []), *([self._facts.stop_asked_at[arn]] if arn in silent else [])]
            known = max(min(ends) - started_at, timedelta(0)) if ends and started_at else timedelta.max
            placement = placement_of(task)
            seconds = min(timedelta(seconds=run_seconds(task)), known)
            longest[placement] = max(longest.get(placement, timedelta(0)), seconds)
        ran = sum(longest.values(), timedelta(0))
        is_kept = ran <= job.definition.max_runtime + RUNTIME_OVERSHOOT
        self._invariants.check(
            "max_runtime is kept", is_kept, f"{job.job_id} ran {ran} of {job.definition.max_runtime}"
        )


def timestamp(task: Mapping[str, object], name: str) -> datetime | None:
    """Return a timestamp of a task."""
    value = task.get(name)
    return datetime.fromisoformat(str(value)) if value else None


def run_seconds(task: Mapping[str, object]) -> float:
    """Return how long a task ran, by ECS's timestamps."""
    started = timestamp(task, "startedAt")
    stopped = timestamp(task, "stoppedAt")
    return (stopped - started).total_seconds() if started and stopped else 0.0
