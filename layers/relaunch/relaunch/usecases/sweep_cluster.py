"""Compare the jobs table with the live cluster: every task and every machine, by pages.

Reconciling looks from the jobs to their tasks; this looks the other way round, at what no job asks about: tasks of jobs
that are over or have another task by now, and machines on which nothing runs. Losses are not decided here: a task
that is missing is looked at twice, a grace apart, by its own job (core.lifecycle.running).

Why a sweep stops no task that is its job's current one, though a stray is stopped on the job's own record alone:
a task is seen first and its job read afterwards, strongly consistently; the try is saved before RunTask is sent; so
what was seen is in that record as the current task, as a try whose answer is not saved yet (which then adopts it), or
is a stray. The stop is saved on the condition that the record has not changed since. Tasks younger than a grace are
left to their own events, and a stray is looked at a second time before it is stopped, because it may just have ended.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from relaunch.core.jobs.job import Job
from relaunch.core.launches.launch import ContainerInstance, ContainerInstanceObservation, TaskObservation
from relaunch.core.lifecycle.events import TaskSeen
from relaunch.core.lifecycle.metrics import Metric, MetricDatum
from relaunch.core.lifecycle.orphans import is_orphaned
from relaunch.core.lifecycle.table import is_new_observation
from relaunch.ports import JobDependencies, PortError, TransientError
from relaunch.usecases.advance_job import advance_job
from relaunch.usecases.observe_task import job_of

# ECS's API is eventually consistent: the page of RunTask has callers look again for up to five minutes.
GRACE = timedelta(minutes=5)
# ECS's managed scaling takes a machine away after a quarter of an hour without a task; then the machine shuts down.
IDLE_GRACE = timedelta(minutes=30)
_EVERY_MINUTES = 10
_NAMED = 20


@dataclass
class Sweep:
    """What a sweep found; `is_complete` tells whether its time sufficed."""

    tasks: int = 0
    told: set[str] = field(default_factory=set)
    orphans: set[str] = field(default_factory=set)
    unknown: list[str] = field(default_factory=list)
    idle_machines: list[str] = field(default_factory=list)
    is_complete: bool = True


def is_sweep_due(now: datetime) -> bool:
    """Tell whether this minute's call sweeps; nothing is remembered between calls."""
    return now.minute % _EVERY_MINUTES == 0


def sweep_cluster(deps: JobDependencies, has_time: Callable[[], bool] = lambda: True) -> Sweep:
    """Look at the whole cluster once, until `has_time` says no; one job's trouble does not keep the others waiting.

    A cluster that cannot be listed now is left to the next sweep.
    """
    sweep = Sweep()
    try:
        _sweep(sweep, has_time, deps)
    except TransientError as error:
        sweep.is_complete = False
        deps.log.decided("postponed", reason=f"sweeping the cluster: {error}")
        return sweep
    _report(sweep, deps)
    return sweep


def _sweep(sweep: Sweep, has_time: Callable[[], bool], deps: JobDependencies) -> None:
    suspects: list[TaskObservation] = []
    machines = _look_at_machines(sweep, deps)
    for page in deps.tasks.list_tasks():
        suspects += _look_at_tasks(page, machines, sweep, has_time, deps)
        if not sweep.is_complete:
            break
    _stop_orphans(suspects, sweep, deps)


def _look_at_machines(sweep: Sweep, deps: JobDependencies) -> Mapping[str, ContainerInstance]:
    now = deps.clock.now()
    machines: dict[str, ContainerInstance] = {}
    for page in deps.tasks.list_machines():
        machines.update({seen.instance.arn: seen.instance for seen in page})
        sweep.idle_machines += [seen.instance.instance_id or seen.instance.arn for seen in page if _is_idle(seen, now)]
    return machines


def _is_idle(seen: ContainerInstanceObservation, now: datetime) -> bool:
    is_old = seen.registered_at is not None and now - seen.registered_at >= IDLE_GRACE
    return seen.status == "ACTIVE" and seen.task_count == 0 and is_old


def _look_at_tasks(
    tasks: Iterable[TaskObservation],
    machines: Mapping[str, ContainerInstance],
    sweep: Sweep,
    has_time: Callable[[], bool],
    deps: JobDependencies,
) -> list[TaskObservation]:
    """Carry news into their jobs; return those that look like strays."""
    suspects: list[TaskObservation] = []

    def news_of(task: TaskObservation, job: Job) -> TaskSeen | None:
        event = TaskSeen(task, _new_machine(task, job, machines))
        if is_new_observation(job, event):
            sweep.told.add(task.task_arn)
            return event
        suspects.extend([task] if is_orphaned(job, event) else [])
        return None

    now = deps.clock.now()
    for task in tasks:
        sweep.tasks += 1
        if task.created_at is None or now - task.created_at >= GRACE:
            _advance(task, news_of, sweep, deps)
        # Not page by page: a hundred jobs may take longer than what is spared for the end of a pass.
        if not has_time():
            sweep.is_complete = False
            break
    return suspects


def _new_machine(
    task: TaskObservation, job: Job, machines: Mapping[str, ContainerInstance]
) -> ContainerInstance | None:
    is_known = job.attempt is not None and job.attempt.instance_id is not None
    return None if is_known else machines.get(task.container_instance_arn or "")


def _advance(
    task: TaskObservation,
    event_for: Callable[[TaskObservation, Job], TaskSeen | None],
    sweep: Sweep,
    deps: JobDependencies,
) -> None:
    job_id = job_of(task)
    if job_id is None:
        return
    try:
        if advance_job(job_id, lambda job: event_for(task, job), deps) is None:
            sweep.unknown.append(task.task_arn)
    except PortError as error:
        deps.log.decided("postponed", job_id=job_id, reason=f"sweeping the cluster: {error}")


def _stop_orphans(suspects: Iterable[TaskObservation], sweep: Sweep, deps: JobDependencies) -> None:
    def stop(task: TaskObservation, job: Job) -> TaskSeen | None:
        event = TaskSeen(task)
        if not is_orphaned(job, event):
            return None
        sweep.orphans.add(task.task_arn)
        return event

    for seen in deps.tasks.describe([task.task_arn for task in suspects]).values():
        if seen is not None:
            _advance(seen, stop, sweep, deps)


def _report(sweep: Sweep, deps: JobDependencies) -> None:
    deps.metrics.record(
        MetricDatum(Metric.UNKNOWN_TASKS, len(sweep.unknown)),
        MetricDatum(Metric.IDLE_MACHINES, len(sweep.idle_machines)),
    )
    deps.log.decided(
        "swept",
        tasks=sweep.tasks,
        told=len(sweep.told),
        orphans=sorted(sweep.orphans)[:_NAMED] or None,
        unknown_tasks=sweep.unknown[:_NAMED] or None,
        idle_machines=sweep.idle_machines[:_NAMED] or None,
        reason=None if sweep.is_complete else "the time did not suffice for every task",
    )
