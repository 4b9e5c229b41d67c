"""Checks what is noted about trainings, by what lies in S3: no step that is not there, and no stall of one that saves.

Each stall is said once: the next one is of a newer step.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.s3 import ObjectStore
from relaunch_local.simulation.aws.trainings import Trainings
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.checks.facts import AccountFacts

# What docs/checkpoints.md promises.
_LEAST = timedelta(minutes=30)
# Between the listing and the save a function may be paused, and its clock is another one.
_LATE = timedelta(minutes=3)
# Each is looked at every ten minutes, by a run of the schedule that may be missed.
_KNOWN_WITHIN = timedelta(minutes=25)


@dataclass(slots=True)
class StallChecks:
    """Knows the step of the latest stall of each job."""

    _clock: Clock
    _objects: ObjectStore
    _check: Callable[[str, bool, str], None]
    _trainings: Callable[[], Trainings]
    _chance: Chance
    _facts: AccountFacts
    _page_size: int | None = None
    """How small the pages of lists are; None: as large as AWS gives them."""
    _said: dict[str, int] = field(default_factory=dict)
    _calm_since: datetime | None = None
    """Since when nothing is injected any more, as far as a save shows."""

    def job_saved(self, before: Job | None, job: Job) -> None:
        """Check what a save notes about the training of a job."""
        self._check_known(job)
        noted = job.noted
        if noted is None or (before is not None and before.noted == noted):
            return
        saved = self._objects.steps_of(job.definition.checkpoint_uri or "", job.job_id)
        is_there = any((attempt, step) == (noted.attempt, noted.step) for attempt, step, _ in saved)
        self._check("what is noted of a training is saved", is_there, f"{job.job_id}: step {noted.step}")
        was_stalled = before is not None and before.noted is not None and before.noted.stalled_since is not None
        if noted.stalled_since is None or was_stalled:
            return
        now = self._clock.now()
        newer = [step for _, step, at in saved if step > noted.step and at < now - _LATE]
        is_late = now - noted.at >= _LEAST - _LATE and job.state is JobState.RUNNING
        self._check(
            "only a training that saves nothing has stalled",
            is_late and not newer,
            f"{job.job_id}: {noted}, {newer[:3]}",
        )
        detail = f"{job.job_id}: {noted}"
        self._check("a job that trains is not said to be stalled", not self._trains(job, now), detail)
        is_first = noted.step > self._said.get(job.job_id, -1)
        self._check("a stall is said once", is_first, f"{job.job_id}: step {noted.step}")
        self._said[job.job_id] = noted.step

    def _check_known(self, job: Job) -> None:
        """Check that it is known how far a training is, once nothing keeps anybody from looking."""
        now = self._clock.now()
        # Of pages with a few keys a pass has no time for all that a training has saved in hours.
        if not self._chance.is_calm or self._page_size is not None:
            return
        self._calm_since = self._calm_since or now
        attempt = job.attempt
        is_watched = job.state is JobState.RUNNING and job.definition.target is Target.ECS
        if attempt is None or not is_watched or now - self._calm_since < _KNOWN_WITHIN:
            return
        saved = self._objects.steps_of(job.definition.checkpoint_uri or "", job.job_id)
        since = now - _KNOWN_WITHIN
        known_since = max(attempt.started_at or now, job.state_since or now)
        if attempt.started_at is None or known_since > since:
            return  # what it saved, or an earlier task of the attempt, is known once it is looked at
        task_id = attempt.task_id or ""
        ended_at = self._facts.ran_until(task_id)
        if ended_at is not None and self._facts.is_unknown(task_id, ended_at):
            return  # that it ran is known by its events alone, which may be late
        steps = [step for number, step, at in saved if number == attempt.number and at <= since]
        # A task that ECS denied for too long trains beside the one that replaced it, and may be further.
        noted = job.noted
        is_newest = noted is not None and (noted.attempt == attempt.number or noted.at > attempt.started_at)
        known = noted.step if noted is not None and is_newest else -1
        message = f"{job.job_id}/{attempt.number}: {known}, and {max(steps, default=-1)} is saved"
        self._check("how far a training is, is known in time", known >= max(steps, default=-1), message)

    def _trains(self, job: Job, now: datetime) -> bool:
        """Return whether the training of a job works towards its next checkpoint, which is not due yet."""
        task_id = job.attempt.task_id if job.attempt is not None else None
        training = self._trainings().running.get(task_id or "")
        if training is None or training.resumed_at is None or training.recipe.checkpoint_seconds is None:
            return False
        gains = training.stalls_at is None or training.done_at(now) < training.stalls_at
        return gains and now - training.resumed_at < timedelta(
            seconds=training.recipe.checkpoint_seconds / training.speed
        )
