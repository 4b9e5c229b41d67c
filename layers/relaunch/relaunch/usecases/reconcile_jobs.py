"""Reconcile due jobs with ECS and ECR, in case events were lost."""

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

# More than one invocation has time for.
_MAX_JOBS = 2_000
# The maximum of DescribeTasks.
_MAX_DESCRIBED = 100
_WITH_TASK = frozenset({JobState.LAUNCHING, JobState.RUNNING, JobState.STOPPING})


def reconcile_jobs(deps: ReconcileDependencies, has_time: Callable[[], bool] = lambda: True) -> int:
    """Reconcile due jobs, most overdue first, while there is time; return their number.

    A job with an error stays due for the next call and does not delay the others.
    """
    due = deps.jobs.load_due(deps.clock.now(), _MAX_JOBS)
    seen: Mapping[str, TaskObservation | None] = {}
    looked_at = postponed = 0
    for job_id in due:
        if not has_time():
            break
        if looked_at % _MAX_DESCRIBED == 0:
            seen = _describe(due[looked_at : looked_at + _MAX_DESCRIBED], deps)
        looked_at += 1
        try:
            _look(job_id, seen, deps)
        except PortError as error:
            postponed += 1
            deps.log.decided("postponed", job_id=job_id, reason=str(error))
    deps.metrics.record(MetricDatum(Metric.JOBS_OVERDUE, len(due) - looked_at + postponed))
    return looked_at


def _describe(job_ids: Sequence[str], deps: ReconcileDependencies) -> Mapping[str, TaskObservation | None]:
    """Describe the tasks of the jobs; empty on an error, so that only `wake_at` of the jobs is handled."""
    jobs = (_load(job_id, deps) for job_id in job_ids)
    try:
        return deps.tasks.describe([arn for job in jobs if job is not None and (arn := _task_arn(job)) is not None])
    except PortError as error:
        deps.log.decided("tasks not described", reason=str(error))
        return {}


def _load(job_id: str, deps: ReconcileDependencies) -> Job | None:
    """Load a job; None on an error, which is logged when the job is reconciled."""
    try:
        return deps.jobs.load_job(job_id)
    except PortError:
        return None


def _task_arn(job: Job) -> str | None:
    return job.attempt.task_id if job.attempt is not None and job.state in _WITH_TASK else None


def _look(job_id: str, seen: Mapping[str, TaskObservation | None], deps: ReconcileDependencies) -> None:
    advanced = advance_job(job_id, lambda job: _observed(job, seen, deps) or _time_passed(job, deps), deps)
    if advanced is not None and _time_passed(advanced, deps):
        # The observation did not change `wake_at`.
        advance_job(job_id, lambda job: _time_passed(job, deps), deps)


def _time_passed(job: Job, deps: ReconcileDependencies) -> TimePassed | None:
    return TimePassed() if job.wake_at is not None and job.wake_at <= deps.clock.now() else None


def _observed(job: Job, seen: Mapping[str, TaskObservation | None], deps: ReconcileDependencies) -> JobEvent | None:
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
    """Look up the image that a job waits for; None on an error, so that the wait may end.

    Raises:
        TransientError: the wait is over and ECR is temporarily unavailable.
    """
    try:
        found = deps.images.find_image(*image)
    except PortError as error:
        if isinstance(error, TransientError) and until is not None and until <= deps.clock.now():
            raise
        deps.log.decided("image not looked up", job_id=job.job_id, reason=str(error))
        return None
    return ImageArrived(*image, found) if found is not None else None
