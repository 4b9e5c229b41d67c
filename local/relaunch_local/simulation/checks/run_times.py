"""How long tasks ran, by ECS and EC2, and how much of that nobody could know when their stop was recorded.

Several tasks of one placement run together from when all of them run until all have stopped.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from relaunch.core.jobs.attempt import Stop
from relaunch.core.jobs.job import Job
from relaunch_local.ecs import Clock
from relaunch_local.simulation.checks.facts import GIVEN_UP_AFTER, AccountFacts
from relaunch_local.simulation.checks.invariants import Invariants
from relaunch_local.simulation.checks.members import peers_of
from relaunch_local.simulation.checks.times import CLOCK_SKEW, Times, timestamp

Task = Mapping[str, object]

ENDED = "no record of a run ends while ECS shows that it runs"

# EC2's events have whole seconds.
_SECOND = timedelta(seconds=1)
# A function that saves began a minute ago at most, and by a clock of its own.
_LONGEST_FUNCTION = timedelta(minutes=1) + CLOCK_SKEW


@dataclass(frozen=True, slots=True)
class RunTimes:
    """Says what the tasks of jobs ran, and checks that no record of it ends before them."""

    _clock: Clock
    _check: Callable[[str, bool, str], None]
    _invariants: Invariants
    _facts: AccountFacts
    _times: Times

    def whole(self, job: Job, arn: str) -> Task:
        """Return a task; of several that were launched together from when all ran until all had stopped."""
        peers = dict(self._peers(job, arn))
        if len(peers) < 2:
            return self._invariants.tasks[job.job_id].get(arn, {})
        names = [name for name in ("startedAt", "stoppedAt") if all(name in each for each in peers.values())]
        return {name: max(str(each[name]) for each in peers.values()) for name in names}

    def unknown_time(self, job: Job, arn: str) -> timedelta:
        """Return by how much the recorded run time may differ from what the task ran, or those that ran together.

        The end of one that ECS did not describe may have been any time until its stop was recorded, or is later than
        that; where its host had ended so long before that nothing ran there any more, any time after that.
        """
        began_at = timestamp(self.whole(job, arn), "startedAt")
        if began_at is None:
            return timedelta(0)
        given_up = set(self._facts.unconfirmed_stops(GIVEN_UP_AFTER))
        recorded_at = self._invariants.recorded_at[arn]
        peers = dict(self._peers(job, arn))
        until = max([recorded_at, *(timestamp(each, "stoppedAt") or self._clock.now() for each in peers.values())])
        if any(each in given_up or self._times.is_end_unknown(each, task) for each, task in peers.items()):
            return max(until - began_at, timedelta(0))
        gone_at = [at for each, task in peers.items() if (at := self._gone_at(each, task, recorded_at)) is not None]
        return until - max(min(gone_at), began_at) + _SECOND if gone_at else timedelta(0)

    def check_end(self, job: Job, arn: str, stop: Stop) -> None:
        """Check that the record of a stop is not of a time at which ECS still showed its tasks."""
        recorded_at = self._invariants.recorded_at[arn]
        for each, task in self._peers(job, arn):
            seen_at = self._facts.last_seen_live(each, recorded_at)
            ends = (timestamp(task, "stoppedAt"), self._facts.ended_at.get(self._facts.host_of(each)))
            if seen_at is None:
                continue
            ran_until = min([seen_at, *(at for at in ends if at is not None)])
            is_later = stop.at >= ran_until - _LONGEST_FUNCTION
            message = f"{job.job_id}: {each[-6:]} ran at {ran_until:%H:%M:%S}, the stop is of {stop.at:%H:%M:%S}"
            self._check(ENDED, is_later, message)

    def _gone_at(self, arn: str, task: Task, recorded_at: datetime) -> datetime | None:
        """Return when the host of a task ended, if nothing ran there any more by then: the record may be of that end.

        Of one whose stop was known ECS said that it stopped so long after.
        """
        heard_at = self._facts.stop_told_at(arn)
        is_heard = heard_at is not None and heard_at <= recorded_at
        until = timestamp(task, "stoppedAt") if is_heard else recorded_at
        return self._facts.host_gone_at(arn, until) if until is not None else None

    def _peers(self, job: Job, arn: str) -> Iterator[tuple[str, Task]]:
        """Return the tasks that were launched together, but those of which nobody could know, or knew."""
        tasks = self._invariants.tasks[job.job_id]
        for each in peers_of(tasks, arn):
            if each in tasks and (each in self._invariants.recorded_at or not self._facts.is_unplaced(each)):
                yield each, tasks[each]
