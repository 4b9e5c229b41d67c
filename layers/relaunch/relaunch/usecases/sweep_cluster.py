"""Compare the jobs table with all tasks and nodes of the targets.

Reconciling starts from the jobs; a sweep starts from the targets and finds orphaned tasks and idle instances. It does
not decide that a task is lost: its job does (core.lifecycle.running).

A sweep never stops the current task of a job: the task is listed first and its job is read afterwards, strongly
consistent, and a placement is saved before RunTask is called. So the task is the current one, or that of a pending
placement, which then gets it, or an orphan. The stop is saved on the condition that the job has not changed. Tasks
younger than a grace period are left to their events, and an orphan is described again before it is stopped, because it
may have ended.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.job import Job
from relaunch.core.launches.launch import Node, NodeObservation, TaskObservation, TaskPhase
from relaunch.core.lifecycle.events import TaskSeen
from relaunch.core.lifecycle.metrics import Metric, MetricDatum
from relaunch.core.lifecycle.orphans import is_orphaned
from relaunch.core.lifecycle.table import is_news
from relaunch.core.machines.events import InstanceObservation
from relaunch.core.machines.living import is_kept_warm
from relaunch.core.offerings.offering import CapacityFailure
from relaunch.ports import JobDependencies, PortError, TaskTarget, TransientError
from relaunch.usecases.advance_job import advance_job
from relaunch.usecases.look_at_agents import note_absent_agents
from relaunch.usecases.reopen_offerings import reopen_offerings

# The ECS API is eventually consistent: the documentation of RunTask tells callers to retry for up to five minutes.
GRACE = timedelta(minutes=5)
# Managed scaling terminates an instance after 15 minutes without a task.
IDLE_GRACE = timedelta(minutes=30)
# The user data of groups that `relaunch deploy Providers=...` makes switches an instance off 20 minutes after its boot:
# until then a sweep of every ten minutes sees it.
_LEAST_REGISTRATION = timedelta(minutes=10)
_INTERVAL_MINUTES = 10
_MAX_LOGGED = 20


@dataclass
class Sweep:
    """The result of a sweep; `is_complete`: there was time for every task.

    `away_nodes` are nodes that are no machines of our own and whose agents are disconnected; `unreachable` are the
    tasks that run there. Nothing that happens to those is told, and they are not ended. `service_tasks` are the numbers
    of tasks of each service, by node.
    """

    tasks: int = 0
    told: set[str] = field(default_factory=set)
    orphans: set[str] = field(default_factory=set)
    unknown: list[str] = field(default_factory=list)
    idle_machines: list[str] = field(default_factory=list)
    away_nodes: set[str] = field(default_factory=set)
    unreachable: list[str] = field(default_factory=list)
    service_tasks: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    is_complete: bool = True


def is_sweep_due(now: datetime) -> bool:
    """Return whether the call at this minute sweeps the cluster."""
    return now.minute % _INTERVAL_MINUTES == 0


def sweep_cluster(deps: JobDependencies, has_time: Callable[[], bool] = lambda: True) -> Sweep:
    """Sweep the targets while `has_time`; an error of a job, or of a target, does not affect the others.

    If a target cannot be listed, the next sweep does it. The numbers are reported if all targets could be.

    Raises:
        PermanentError: a target refuses to be listed; the others are swept.
    """
    sweep = Sweep()
    errors = list[PortError]()
    for name in deps.targets:
        try:
            _sweep(name, sweep, has_time, deps)
        except PortError as error:
            deps.log.decided("postponed", target=name, reason=f"sweeping the cluster: {error}")
            errors.append(error)
    for refusal in errors:
        if not isinstance(refusal, TransientError):
            raise refusal
    if errors:
        sweep.is_complete = False
    else:
        _report(sweep, deps)
    return sweep


def _sweep(name: Target, sweep: Sweep, has_time: Callable[[], bool], deps: JobDependencies) -> None:
    target = deps.targets.named(name)
    suspects: list[TaskObservation] = []
    # The nodes of other targets are nobody's spot instances, and are no expense of Relaunch.
    nodes: Sequence[NodeObservation] = ()
    if name.capabilities.runs_on_ec2:
        nodes = _look_at_machines(target, sweep, deps)
        _note_unregistered({seen.node.instance_id for seen in nodes}, deps)
    machines = {seen.node.name: seen.node for seen in nodes}
    for page in target.list_tasks():
        suspects += _look_at_tasks(page, machines, sweep, has_time, deps)
        if not sweep.is_complete:
            break
    _look_past_daemons(target, nodes, sweep, deps)
    _stop_orphans(target, suspects, sweep, deps)


def _look_at_machines(target: TaskTarget, sweep: Sweep, deps: JobDependencies) -> Sequence[NodeObservation]:
    nodes: list[NodeObservation] = []
    failures = _load_failures(deps.clock.now(), deps)
    for page in target.list_nodes():
        _reopen_offerings(failures, page, deps)
        sweep.away_nodes |= note_absent_agents(page, deps)
        nodes += page
        _note_idle(page, sweep, deps)
    return nodes


def _note_idle(nodes: Iterable[NodeObservation], sweep: Sweep, deps: JobDependencies) -> None:
    now = deps.clock.now()
    idle = (seen.node for seen in nodes if _is_idle(seen, now))
    sweep.idle_machines += [node.instance_id or node.name for node in idle if not _is_kept_warm(node, now, deps)]


def _look_past_daemons(
    target: TaskTarget, nodes: Iterable[NodeObservation], sweep: Sweep, deps: JobDependencies
) -> None:
    """Take the nodes that run DAEMON services alone for those without a task.

    A DAEMON service runs wherever there is a node, so that nobody needs a node for it; one of other services does what
    it is there for. Asked is only if a node has tasks of services alone. Without an answer such nodes count as busy.
    """
    served = [seen for seen in nodes if 0 < seen.task_count <= sweep.service_tasks[seen.node.name].total()]
    try:
        daemons = target.find_daemon_services() if served else frozenset[str]()
    except PortError as error:
        deps.log.decided("postponed", reason=f"looking for machines that run DAEMON services alone: {error}")
        return
    free = [replace(seen, task_count=0) for seen in served if not set(sweep.service_tasks[seen.node.name]) - daemons]
    _note_idle(free, sweep, deps)
    if free:
        _reopen_offerings(_load_failures(deps.clock.now(), deps), free, deps)


def _note_unregistered(instances_of_nodes: Collection[str], deps: JobDependencies) -> None:
    """Alert of instances in the groups of capacity providers that are no nodes in the time that their type may take.

    Nothing but an alert ends such an instance sooner: it is its group's, which may only start the next one. An error of
    EC2 is left to the next sweep.
    """
    try:
        found = [each for each in deps.hosts.running_in_groups() if each.instance_id not in instances_of_nodes]
    except PortError as error:
        deps.log.decided("postponed", reason=f"looking for instances that are not registered: {error}")
        return
    late = [each for each in found if _is_late(each, deps)]
    for seen in late:
        deps.log.decided("not registered", instance_id=seen.instance_id, is_alert=True)
    if late:
        deps.metrics.record(MetricDatum(Metric.MACHINE_ALERTS, len(late)))


def _is_late(seen: InstanceObservation, deps: JobDependencies) -> bool:
    instance_type = seen.offering.instance_type if seen.offering else ""
    bound = max(_LEAST_REGISTRATION, deps.limits.machines.registration_deadline_of(instance_type))
    return seen.launched_at is not None and deps.clock.now() - seen.launched_at >= bound


def _load_failures(now: datetime, deps: JobDependencies) -> Sequence[CapacityFailure]:
    try:
        return tuple(deps.capacity.load_capacity_memory(now).values())
    except PortError as error:
        deps.log.decided("postponed", reason=f"loading the capacity memory: {error}")
        return ()


def _reopen_offerings(
    failures: Sequence[CapacityFailure], machines: Sequence[NodeObservation], deps: JobDependencies
) -> None:
    """Reopen the offerings of instances that arrived late, in case their events were lost."""
    try:
        reopen_offerings(failures, machines, deps)
    except PortError as error:
        deps.log.decided("postponed", reason=f"reopening offerings: {error}")


def _is_idle(seen: NodeObservation, now: datetime) -> bool:
    is_old = seen.registered_at is not None and now - seen.registered_at >= IDLE_GRACE
    return seen.is_active and seen.task_count == 0 and is_old


def _is_kept_warm(node: Node, now: datetime, deps: JobDependencies) -> bool:
    """Return whether a node is a machine of our own in its warm time; not if that cannot be found out."""
    if node.instance_id is None or not deps.limits.machines.warm_time:
        return False
    try:
        machine_id = deps.machines.find_by_instance(node.instance_id)
        machine = deps.machines.load_machine(machine_id) if machine_id else None
    except PortError as error:
        deps.log.decided("postponed", instance_id=node.instance_id, reason=f"loading its machine: {error}")
        return False
    return machine is not None and is_kept_warm(machine, now, deps.limits.machines)


def _look_at_tasks(
    tasks: Iterable[TaskObservation],
    machines: Mapping[str, Node],
    sweep: Sweep,
    has_time: Callable[[], bool],
    deps: JobDependencies,
) -> list[TaskObservation]:
    """Apply new observations to their jobs; return the tasks that seem to be orphans."""
    suspects: list[TaskObservation] = []

    def new_observation(task: TaskObservation, job: Job) -> TaskSeen | None:
        event = TaskSeen(task, _new_machine(task, job, machines))
        if is_news(job, event):
            sweep.told.add(task.task_id)
            return event
        suspects.extend([task] if is_orphaned(job, event) else [])
        return None

    now = deps.clock.now()
    for task in tasks:
        sweep.tasks += 1
        if task.service and task.node:
            sweep.service_tasks[task.node][task.service] += 1
        if task.owner is not None and task.phase is TaskPhase.RUNNING and task.node in sweep.away_nodes:
            sweep.unreachable.append(
                f"{task.owner.job_id}: {task.task_id} on {machines[task.node].instance_id or task.node}"
            )
        if task.created_at is None or now - task.created_at >= GRACE:
            _advance(task, new_observation, sweep, deps)
        # Checked for each task: a page of a hundred may take longer than the reserve.
        if not has_time():
            sweep.is_complete = False
            break
    return suspects


def _new_machine(task: TaskObservation, job: Job, machines: Mapping[str, Node]) -> Node | None:
    is_known = job.attempt is not None and job.attempt.instance_id is not None
    return None if is_known else machines.get(task.node or "")


def _advance(
    task: TaskObservation,
    event_for: Callable[[TaskObservation, Job], TaskSeen | None],
    sweep: Sweep,
    deps: JobDependencies,
) -> None:
    if task.owner is None:
        return
    job_id = task.owner.job_id
    try:
        if advance_job(job_id, lambda job: event_for(task, job), deps) is None:
            sweep.unknown.append(task.task_id)
    except PortError as error:
        deps.log.decided("postponed", job_id=job_id, reason=f"sweeping the cluster: {error}")


def _stop_orphans(target: TaskTarget, suspects: Iterable[TaskObservation], sweep: Sweep, deps: JobDependencies) -> None:
    def stop(task: TaskObservation, job: Job) -> TaskSeen | None:
        event = TaskSeen(task)
        if not is_orphaned(job, event):
            return None
        sweep.orphans.add(task.task_id)
        return event

    for seen in target.describe([task.task_id for task in suspects]).values():
        if seen is not None:
            _advance(seen, stop, sweep, deps)


def _report(sweep: Sweep, deps: JobDependencies) -> None:
    deps.metrics.record(
        MetricDatum(Metric.UNKNOWN_TASKS, len(sweep.unknown)),
        MetricDatum(Metric.IDLE_MACHINES, len(sweep.idle_machines)),
        *([MetricDatum(Metric.TASKS_UNREACHABLE, len(sweep.unreachable))] if sweep.unreachable else []),
    )
    deps.log.decided(
        "swept",
        tasks=sweep.tasks,
        told=len(sweep.told),
        orphans=sorted(sweep.orphans)[:_MAX_LOGGED] or None,
        unknown_tasks=sweep.unknown[:_MAX_LOGGED] or None,
        idle_machines=sweep.idle_machines[:_MAX_LOGGED] or None,
        unreachable_tasks=sweep.unreachable[:_MAX_LOGGED] or None,
        reason=None if sweep.is_complete else "the time did not suffice for every task",
    )
