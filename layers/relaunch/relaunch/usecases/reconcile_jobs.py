"""Find out what events did not tell: look at every job that is due."""

from collections.abc import Mapping, Sequence

from relaunch.core.job import Job, JobState, WaitReason
from relaunch.core.job_events import ImageArrived, JobEvent, TaskMissing, TimePassed
from relaunch.core.launch import TaskObservation
from relaunch.core.lifecycle import is_news
from relaunch.ports import PermanentError, TransientError, World
from relaunch.usecases.advance_job import advance_job
from relaunch.usecases.observe_task import task_seen

_WITH_TASK = frozenset({JobState.LAUNCHING, JobState.RUNNING, JobState.STOPPING})


def reconcile_jobs(world: World, limit: int = 200) -> int:
    """Look at up to `limit` due jobs, most overdue first, their tasks described by hundreds; return their number.

    One job's trouble does not keep the others waiting: it stays due and comes again with the next call.
    """
    due = world.jobs.load_due(world.clock.now(), limit)
    jobs = [job for job_id in due if (job := world.jobs.load_job(job_id)) is not None]
    seen = _describe(jobs, world)
    for job in jobs:
        try:
            _look(job.job_id, seen, world)
        except (TransientError, PermanentError) as error:
            world.log.decided("postponed", job_id=job.job_id, reason=str(error))
    return len(due)


def _describe(jobs: Sequence[Job], world: World) -> Mapping[str, TaskObservation | None]:
    """Describe the jobs' tasks; without an answer there is no news of them, but time passes all the same."""
    try:
        return world.tasks.describe(_task_arns(jobs))
    except (TransientError, PermanentError) as error:
        world.log.decided("tasks not described", reason=str(error))
        return {}


def _task_arns(jobs: Sequence[Job]) -> list[str]:
    return [
        job.attempt.task_arn
        for job in jobs
        if job.state in _WITH_TASK and job.attempt is not None and job.attempt.task_arn is not None
    ]


def _look(job_id: str, seen: Mapping[str, TaskObservation | None], world: World) -> None:
    told = advance_job(job_id, lambda job: _news(job, seen, world), world)
    if told is None or told.wake_at is None or told.wake_at > world.clock.now():
        return
    advance_job(job_id, lambda _job: TimePassed(), world)


def _news(job: Job, seen: Mapping[str, TaskObservation | None], world: World) -> JobEvent | None:
    waiting = job.waiting
    if waiting is not None and waiting.reason is WaitReason.IMAGE and job.image is not None:
        digest = world.images.digest(*job.image)
        return ImageArrived(*job.image, digest) if digest is not None else None
    arn = job.attempt.task_arn if job.attempt is not None and job.state in _WITH_TASK else None
    if arn is None or arn not in seen:
        return None
    observation = seen[arn]
    if observation is None:
        return TaskMissing(arn)
    event = task_seen(observation, job, world)
    return event if is_news(job, event) else None
