"""Find out what events did not tell: look at every job that is due."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from relaunch.core.jobs.job import Job, JobState, WaitReason
from relaunch.core.launches.launch import TaskObservation
from relaunch.core.lifecycle.events import ImageArrived, JobEvent, TaskMissing, TimePassed
from relaunch.core.lifecycle.metrics import Metric, MetricDatum
from relaunch.core.lifecycle.table import is_new_observation
from relaunch.ports import PortError, ReconcileDependencies, TransientError
from relaunch.usecases.advance_job import advance_job
from relaunch.usecases.observe_task import task_seen

# As many as one call has time for, with room to spare.
_MOST = 2_000
# DescribeTasks takes a hundred.
_DESCRIBED_AT_ONCE = 100
_WITH_TASK = frozenset({JobState.LAUNCHING, JobState.RUNNING, JobState.STOPPING})


def reconcile_jobs(deps: ReconcileDependencies, has_time: Callable[[], bool] = lambda: True) -> int:
    """Look at every job that is due, most overdue first, while there is time; return how many were looked at.

    One job's trouble does not keep the others waiting, however many have it: it stays due and comes again with the
    next call.
    """
    due = deps.jobs.load_due(deps.clock.now(), _MOST)
    seen: Mapping[str, TaskObservation | None] = {}
    looked_at = postponed = 0
    for job_id in due:
        if not has_time():
            break
        if looked_at % _DESCRIBED_AT_ONCE == 0:
            seen = _describe(due[looked_at : looked_at + _DESCRIBED_AT_ONCE], deps)
        looked_at += 1
        try:
            _look(job_id, seen, deps)
        except PortError as error:
            postponed += 1
            deps.log.decided("postponed", job_id=job_id, reason=str(error))
    deps.metrics.record(MetricDatum(Metric.JOBS_OVERDUE, len(due) - looked_at + postponed))
    return looked_at


def _describe(job_ids: Sequence[str], deps: ReconcileDependencies) -> Mapping[str, TaskObservation | None]:
    """Describe the jobs' tasks; without an answer there is no news of them, but time passes all the same."""
    jobs = (_load(job_id, deps) for job_id in job_ids)
    try:
        return deps.tasks.describe([arn for job in jobs if job is not None and (arn := _task_arn(job)) is not None])
    except PortError as error:
        deps.log.decided("tasks not described", reason=str(error))
        return {}


def _load(job_id: str, deps: ReconcileDependencies) -> Job | None:
    """Load a job; why one cannot be loaded is said when it is looked at."""
    try:
        return deps.jobs.load_job(job_id)
    except PortError:
        return None


def _task_arn(job: Job) -> str | None:
    return job.attempt.task_arn if job.attempt is not None and job.state in _WITH_TASK else None


def _look(job_id: str, seen: Mapping[str, TaskObservation | None], deps: ReconcileDependencies) -> None:
    told = advance_job(job_id, lambda job: _news(job, seen, deps) or _time_passed(job, deps), deps)
    if told is not None and _time_passed(told, deps):
        # The news moved nothing that was due.
        advance_job(job_id, lambda job: _time_passed(job, deps), deps)


def _time_passed(job: Job, deps: ReconcileDependencies) -> TimePassed | None:
    return TimePassed() if job.wake_at is not None and job.wake_at <= deps.clock.now() else None


def _news(job: Job, seen: Mapping[str, TaskObservation | None], deps: ReconcileDependencies) -> JobEvent | None:
    if job.waiting is not None and job.waiting.reason is WaitReason.IMAGE and job.image is not None:
        return _look_for_image(job, job.image, job.waiting.until, deps)
    arn = _task_arn(job)
    if arn is None or arn not in seen:
        return None
    observation = seen[arn]
    if observation is None:
        return TaskMissing(arn)
    event = task_seen(observation, job, deps)
    return event if is_new_observation(job, event) else None


def _look_for_image(
    job: Job, image: tuple[str, str], until: datetime | None, deps: ReconcileDependencies
) -> ImageArrived | None:
    """Look for the image a job waits for; without an answer time passes, and the wait may end.

    Raises:
        TransientError: the wait is over, and ECR cannot say for now whether it was in vain.
    """
    try:
        found = deps.images.find_image(*image)
    except PortError as error:
        if isinstance(error, TransientError) and until is not None and until <= deps.clock.now():
            raise
        deps.log.decided("image not looked up", job_id=job.job_id, reason=str(error))
        return None
    return ImageArrived(*image, found) if found is not None else None
