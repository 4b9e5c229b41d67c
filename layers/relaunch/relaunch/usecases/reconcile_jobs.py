"""Reconcile due jobs with their targets and ECR: events may be lost, and some targets send none."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.launches.launch import TaskObservation
from relaunch.core.lifecycle.events import HostEnded, HostWarned, ImageArrived, JobEvent, TaskMissing, TimePassed
from relaunch.core.lifecycle.gangs import has_gang, miss_ranks, observe_gang
from relaunch.core.lifecycle.metrics import Metric, MetricDatum
from relaunch.core.lifecycle.table import is_news
from relaunch.core.machines.events import InstanceState
from relaunch.core.machines.machine import MachineState
from relaunch.ports import PortError, ReconcileDependencies, TransientError
from relaunch.usecases.advance_job import advance_job
from relaunch.usecases.observe_task import look_at_host, task_seen

# More than one invocation has time for.
_MAX_JOBS = 2_000
# The maximum of DescribeTasks.
_MAX_DESCRIBED = 100
_WITH_TASK = frozenset({JobState.LAUNCHING, JobState.RUNNING, JobState.STOPPING})

_Seen = Mapping[str, TaskObservation | None]


def reconcile_jobs(
    deps: ReconcileDependencies,
    has_time: Callable[[], bool] = lambda: True,
    on_looked_at: Callable[[Job], object] = lambda _job: None,
) -> int:
    """Reconcile due jobs, most overdue first, while there is time; return their number.

    A job with an error stays due for the next call and does not delay the others. `on_looked_at` is called with each
    of the others, as it is then.
    """
    due = deps.jobs.load_due(deps.clock.now(), _MAX_JOBS)
    tasks = _DueTasks(due, deps)
    seen: _Seen = {}
    looked_at = postponed = 0
    for job_id in due:
        if not has_time():
            break
        if looked_at % _MAX_DESCRIBED == 0:
            seen = tasks.describe_from(looked_at)
        looked_at += 1
        try:
            job = _look(job_id, seen, deps)
        except PortError as error:
            postponed += 1
            deps.log.decided("postponed", job_id=job_id, reason=str(error))
        else:
            if job is not None:
                on_looked_at(job)
    deps.metrics.record(MetricDatum(Metric.JOBS_OVERDUE, len(due) - looked_at + postponed))
    return looked_at


class _DueTasks:
    """What the targets say of the tasks of due jobs: of a hundred at a time, or of all in one answer.

    Every call costs some targets a list of all their tasks. A target that answers with an error is not asked again for
    this time, and only `wake_at` of its jobs is handled.
    """

    def __init__(self, due: Sequence[str], deps: ReconcileDependencies) -> None:
        self._due = due
        self._deps = deps
        self._listed: dict[Target, _Seen] = {}

    def describe_from(self, start: int) -> _Seen:
        """Describe the tasks of the next hundred jobs."""
        tasks = _tasks_by_target(self._due[start : start + _MAX_DESCRIBED], self._deps)
        seen: dict[str, TaskObservation | None] = {}
        for name, task_ids in tasks.items():
            if not name.capabilities.describes_by_listing:
                seen |= self._describe(name, task_ids)
            elif name not in self._listed:
                self._listed |= self._list(start)
        for listed in self._listed.values():
            seen |= listed
        return seen

    def _list(self, start: int) -> dict[Target, _Seen]:
        tasks = _tasks_by_target(self._due[start:], self._deps)
        listed = {name: task_ids for name, task_ids in tasks.items() if name.capabilities.describes_by_listing}
        return {name: self._describe(name, task_ids) for name, task_ids in listed.items()}

    def _describe(self, name: Target, task_ids: Sequence[str]) -> _Seen:
        try:
            return self._deps.targets.named(name).describe(task_ids)
        except PortError as error:
            self._deps.log.decided("tasks not described", target=name, reason=str(error))
            self._deps.metrics.record(MetricDatum(Metric.CLUSTERS_UNREADABLE))
            return {}


def _tasks_by_target(job_ids: Sequence[str], deps: ReconcileDependencies) -> dict[Target, list[str]]:
    tasks: dict[Target, list[str]] = {}
    for job_id in job_ids:
        job = _load(job_id, deps)
        if job is not None and (task_id := _task_id(job)) is not None:
            others = job.current_attempt.placement.task_ids[1:]
            tasks.setdefault(job.definition.target, []).extend((task_id, *others))
    return tasks


def _load(job_id: str, deps: ReconcileDependencies) -> Job | None:
    """Load a job; None on an error, which is logged when the job is reconciled."""
    try:
        return deps.jobs.load_job(job_id)
    except PortError:
        return None


def _task_id(job: Job) -> str | None:
    return job.attempt.task_id if job.attempt is not None and job.state in _WITH_TASK else None


def _look(job_id: str, seen: _Seen, deps: ReconcileDependencies) -> Job | None:
    advanced = advance_job(job_id, lambda job: _observed(job, seen, deps) or _time_passed(job, seen, deps), deps)
    if advanced is not None and _warned(advanced, seen):
        advanced = advance_job(job_id, lambda job: _warned(job, seen), deps)
    if advanced is not None and _time_passed(advanced, seen, deps):
        # The observation did not change `wake_at`.
        advanced = advance_job(job_id, lambda job: _time_passed(job, seen, deps), deps)
    return advanced


def _time_passed(job: Job, seen: _Seen, deps: ReconcileDependencies) -> TimePassed | None:
    if job.wake_at is None or job.wake_at > deps.clock.now():
        return None
    is_held = job.attempt is not None and job.attempt.held is not None
    host = look_at_host(job, deps) if is_held else None
    described = seen.get(_task_id(job) or "")
    is_partial = described is not None and bool(described.held_nodes)
    return TimePassed(is_described=described is not None, host=host, is_partial=is_partial)


def _warned(job: Job, seen: _Seen) -> HostWarned | None:
    """Return the warning that the target gave with the task, None if there is none or the job has it."""
    attempt = job.attempt
    observation = seen.get(_task_id(job) or "")
    if attempt is None or attempt.warned_at is not None or observation is None or observation.warned_at is None:
        return None
    cause = observation.warning or "notice that its pod is taken away"
    return HostWarned("", observation.warned_at, observation.task_id, cause=cause)


def _observed(job: Job, seen: _Seen, deps: ReconcileDependencies) -> JobEvent | None:
    if job.waiting is not None and job.waiting.reason is WaitReason.IMAGE and job.image is not None:
        return _look_for_image(job, job.image, job.waiting.until, deps)
    task_id = _task_id(job)
    if task_id is None or task_id not in seen:
        return None
    now = deps.clock.now()
    is_several = has_gang(job.current_attempt)
    observation = observe_gang(job, seen, now) if is_several else seen[task_id]
    if observation is None:
        # The target has reported the end of a task whose verdict waits.
        if job.current_attempt.held is not None:
            return None
        if is_several:
            return miss_ranks(job, seen, now)
        return TaskMissing(task_id, deps.targets.named(job.definition.target).identify())
    event = task_seen(observation, job, deps, seen if is_several else {})
    return event if is_news(job, event) else _host_end(job, deps)


def _host_end(job: Job, deps: ReconcileDependencies) -> HostEnded | None:
    """Return that the machine of our own is gone that the task is on; None if that is known, or it is not.

    EC2's events of the end, which the machine got, may be lost on their way to the job.
    """
    attempt = job.current_attempt
    if not attempt.placement.machine_id or (attempt.host_ended_at is not None and not has_gang(attempt)):
        return None
    for rank in attempt.placement.ranks:
        if rank.instance_id in attempt.lost_instances:
            continue
        machine = deps.machines.load_machine(rank.machine_id)
        if machine is not None and machine.state is MachineState.GONE:
            ended_at = machine.ended_at or machine.state_since or deps.clock.now()
            return HostEnded(rank.instance_id, InstanceState.TERMINATED, ended_at)
    return None


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
