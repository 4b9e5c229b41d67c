"""Checks that a job knows what the events of its task say, once a function has handled them without an error."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from relaunch.core.jobs.job import Job
from relaunch_local.ecs import Clock
from relaunch_local.simulation.checks.facts import AccountFacts
from relaunch_local.simulation.checks.record import Check


@dataclass(slots=True)
class TaskEvents:
    """Compares what events of tasks say with the jobs that the table has."""

    _check: Check
    _clock: Clock
    _facts: AccountFacts
    _jobs: Mapping[str, Job]
    """The jobs as the table has them."""
    _denied: Collection[str]
    """The tasks that may be given up."""
    _named_at: dict[str, datetime] = field(default_factory=dict)
    """By task: when the table first had it as that of its job."""

    def job_saved(self, job: Job) -> None:
        """Note the task of a job that was saved."""
        if job.attempt is not None and job.attempt.task_id is not None:
            self._named_at.setdefault(job.attempt.task_id, self._clock.now())

    def handled(self, detail: Mapping[str, Any], began_at: datetime) -> None:
        """Check that the job of a task that was not given up knows what an event said that a function began then."""
        arn = detail["taskArn"]
        job = self._jobs.get(str(detail.get("startedBy", "")).rpartition("/")[0])
        attempt = job.attempt if job and not job.state.is_final and arn not in self._denied else None
        if job is None or attempt is None or attempt.task_id != arn or attempt.stop or attempt.placement.is_lost:
            return
        # Of several tasks nothing is kept before the table has them all, nor by a function to which ECS does not
        # describe one of them: the next look makes up for it. Who began before may have read the job as it was.
        is_early = job.definition.nodes > 1 and began_at < self._named_at[arn]
        others = (each for each in attempt.placement.task_ids if each != arn)
        is_early = is_early or any(self._facts.was_missing(each, began_at) for each in others)
        is_known = is_early or attempt.task_version >= detail["version"]
        self._check("what ECS told is known", is_known, f"{arn[-6:]} {detail['lastStatus']}")
