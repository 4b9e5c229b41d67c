"""Find out what events did not tell: look at every job that is due."""

from collections.abc import Callable, Mapping, Sequence

from relaunch.core.job import Job, JobState, WaitReason
from relaunch.core.job_events import ImageArrived, JobEvent, TaskMissing, TimePassed
from relaunch.core.launch import TaskObservation
from relaunch.core.lifecycle import is_news
from relaunch.ports import PermanentError, TransientError, World
from relaunch.usecases.advance_job import advance_job
from relaunch.usecases.observe_task import task_seen

# As many as one call has time for, with room to spare.
_MOST = 2_000
# DescribeTasks takes a hundred.
_DESCRIBED_AT_ONCE = 100
_WITH_TASK = frozenset({JobState.LAUNCHING, JobState.RUNNING, JobState.STOPPING})


def reconcile_jobs(world: World, has_time: Callable[[], bool] = lambda: True) -> int:
    """Look at every job that is due, most overdue first, while there is time; return how many were looked at.

    One job's trouble does not keep the others waiting, however many have it: it stays due and comes again with the
    next call.
    """
    due = world.jobs.load_due(world.clock.now(), _MOST)
    looked_at = 0
    while looked_at < len(due) and has_time():
        chunk = due[looked_at : looked_at + _DESCRIBED_AT_ONCE]
        _look_at(chunk, world)
        looked_at += len(chunk)
    return looked_at


def _look_at(job_ids: Sequence[str], world: World) -> None:
    jobs = [job for job_id in job_ids if (job := world.jobs.load_job(job_id)) is not None]
    seen = _describe(jobs, world)
    for job in jobs:
        try:
            _look(job.job_id, seen, world)
        except (TransientError, PermanentError) as error:
            world.log.decided("postponed", job_id=job.job_id, reason=str(error))


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
    told = advance_job(job_id, lambda job: _news(job, seen, world) or _time_passed(job, world), world)
    if told is not None and _time_passed(told, world):
        # The news moved nothing that was due.
        advance_job(job_id, lambda job: _time_passed(job, world), world)


def _time_passed(job: Job, world: World) -> TimePassed | None:
    return TimePassed() if job.wake_at is not None and job.wake_at <= world.clock.now() else None


def _news(job: Job, seen: Mapping[str, TaskObservation | None], world: World) -> JobEvent | None:
    waiting = job.waiting
    if waiting is not None and waiting.reason is WaitReason.IMAGE and job.image is not None:
        found = world.images.find_image(*job.image)
        return ImageArrived(*job.image, found) if found is not None else None
    arn = job.attempt.task_arn if job.attempt is not None and job.state in _WITH_TASK else None
    if arn is None or arn not in seen:
        return None
    observation = seen[arn]
    if observation is None:
        return TaskMissing(arn)
    event = task_seen(observation, job, world)
    return event if is_news(job, event) else None
