"""Apply an observation of a task to its job; EC2 is asked of its instance, as its events may come late, or never."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.job import Job
from relaunch.core.launches.launch import HostObservation, Node, TaskObservation, TaskPhase
from relaunch.core.lifecycle.events import JobEvent, TaskSeen
from relaunch.core.lifecycle.gangs import has_gang, miss_ranks, observe_gang
from relaunch.core.lifecycle.running import observed
from relaunch.core.lifecycle.table import is_new_observation
from relaunch.core.lifecycle.verdicts import host_of, may_ask
from relaunch.ports import JobDependencies, NotGrantedError, PortError, TransientError
from relaunch.usecases.advance_job import advance_job


def look_at_host(job: Job, deps: JobDependencies) -> HostObservation | None:
    """Return what is known of the instance of the job's task; None if it is not known which that is.

    A warning that was handled is stored with the instance, also while no job was linked to it. What EC2 told of the end
    of a machine of our own is stored with the machine: EC2 itself forgets an instance after an hour, and may not answer
    now.
    """
    instance_id = host_of(job)
    if not instance_id:
        return None
    hosts = {each[1]: _look_at(job, each, deps) for each in _instances(job, instance_id)}
    ended = frozenset(each for each, host in hosts.items() if host.has_ended)
    return replace(_together(hosts.values()), ended=ended if len(hosts) > 1 else frozenset())


def _instances(job: Job, instance_id: str) -> tuple[tuple[str, str], ...]:
    """Return the machine and the instance of each task."""
    placement = job.current_attempt.placement
    followers = ((each.machine_id, each.instance_id) for each in placement.followers)
    return ((placement.machine_id, instance_id), *followers)


def _together(hosts: Collection[HostObservation]) -> HostObservation:
    """Return the first end and all warnings of several instances."""
    return HostObservation(
        has_ended=any(each.has_ended for each in hosts),
        ended_at=min((each.ended_at for each in hosts if each.ended_at is not None), default=None),
        warnings=frozenset().union(*(each.warnings for each in hosts)),
        is_answered=all(each.is_answered for each in hosts),
    )


def _look_at(job: Job, machine_and_instance: tuple[str, str], deps: JobDependencies) -> HostObservation:
    machine_id, instance_id = machine_and_instance
    placement = job.current_attempt.placement
    is_spot = placement.offering.purchase is PurchaseOption.SPOT
    try:
        host = deps.hosts.look(instance_id, is_spot=is_spot)
    except PortError as error:
        deps.log.decided("host not looked at", job_id=job.job_id, instance_id=instance_id, reason=str(error))
        host = HostObservation(is_answered=False)
    try:
        warned_at = deps.jobs.load_warning(instance_id)
        machine = deps.machines.load_machine(machine_id) if machine_id else None
    except PortError as error:
        deps.log.decided("host not known", job_id=job.job_id, instance_id=instance_id, reason=str(error))
        return replace(host, is_answered=False)
    ended_at = machine.ended_at if machine is not None and machine.instance_id == instance_id else None
    return replace(
        host,
        has_ended=host.has_ended or ended_at is not None,
        ended_at=min((each for each in (host.ended_at, ended_at) if each is not None), default=None),
        warnings=host.warnings if warned_at is None else host.warnings | {warned_at},
    )


def observe_task(observation: TaskObservation, deps: JobDependencies) -> Job | None:
    """Apply the observation to the job of the task.

    Returns the job, None if the task is not of a job: other tasks may run in the cluster.
    """
    if observation.owner is None:
        return None
    return advance_job(observation.owner.job_id, lambda job: _seen(observation, job, deps), deps)


def _seen(observation: TaskObservation, job: Job, deps: JobDependencies) -> JobEvent:
    """Return the event of an observation; one of a task of several is of all of them, which are described for it."""
    attempt = job.attempt
    task_ids = attempt.placement.task_ids if attempt is not None and has_gang(attempt) else ()
    if observation.task_id not in task_ids:
        return task_seen(observation, job, deps)
    seen = {**deps.targets.named(job.definition.target).describe(task_ids)}
    described = seen.get(observation.task_id)
    if described is None or described.version < observation.version:
        # What ECS describes may be behind its events.
        seen[observation.task_id] = observation
    now = deps.clock.now()
    gang = observe_gang(job, seen, now)
    if gang is None:
        return miss_ranks(job, seen, now)
    return task_seen(gang, job, deps, seen)


def task_seen(
    observation: TaskObservation,
    job: Job,
    deps: JobDependencies,
    ranks: Mapping[str, TaskObservation | None] = MappingProxyType({}),
) -> TaskSeen:
    """Return the event of an observation, with the node if that is not known yet; several `ranks` are seen as one.

    A spot warning of an EC2 instance finds the job by it. If ECS throttles the call, the next event of the task or the
    next sweep repeats it; a warning queries ECS too. EC2 is asked of the instance of a task that has stopped, if that
    may change what the stop means.

    Raises:
        TransientError, NotGrantedError: the task stopped without having run, and the target does not tell now on which
            node; retry.
    """
    event = task_located(observation, job, deps)
    now = deps.clock.now()
    is_news = observation.phase is TaskPhase.STOPPED and is_new_observation(job, event)
    if not is_news or not job.definition.target.capabilities.runs_on_ec2:
        return event
    stopped = observed(job, event, now)
    if not may_ask(stopped, observation, now):
        return event
    if not host_of(stopped) and observation.node is not None:
        event = _find_late(event, observation.node, stopped, deps)
        stopped = observed(job, event, now)
    host = event.host or look_at_host(stopped, deps)
    lost = host.ended.difference(stopped.current_attempt.lost_instances) if host is not None else frozenset()
    if lost:
        # Events of these ends were lost, or come late: what the other ranks ended with is seen by them.
        observation = observe_gang(_with_lost(job, lost), ranks, now) or observation
    return replace(event, host=host, observation=observation)


def _with_lost(job: Job, instance_ids: Collection[str]) -> Job:
    attempt = job.current_attempt
    return replace(job, attempt=replace(attempt, lost_instances=(*attempt.lost_instances, *sorted(instance_ids))))


def task_located(observation: TaskObservation, job: Job, deps: JobDependencies) -> TaskSeen:
    """Return the event of an observation, with the node if that is not known yet; EC2 is not asked of a stopped task.

    Raises:
        TransientError, NotGrantedError: the task stopped without having run, and the target does not tell now on which
            node; retry.
    """
    name = observation.node
    is_known = job.attempt is not None and job.attempt.instance_id is not None
    has_stopped = observation.phase is TaskPhase.STOPPED
    has_ended = has_stopped and observation.started_at is not None
    if name is None or is_known or has_ended or not job.definition.target.capabilities.runs_on_ec2:
        return TaskSeen(observation)
    own = _own_node(observation, job)
    if own is not None:
        return TaskSeen(observation, own)
    try:
        found = deps.targets.ecs.find_node(name)
    except (TransientError, NotGrantedError) as error:
        # Launches avoid the instance of a task that never ran, for which they need its EC2 instance ID.
        if has_stopped:
            raise
        deps.log.decided("machine unknown", job_id=job.job_id, reason=str(error))
        return TaskSeen(observation)
    return TaskSeen(observation, found.node if found else None)


def _find_late(event: TaskSeen, name: str, job: Job, deps: JobDependencies) -> TaskSeen:
    """Return the event with the node of a task that ran, or with the end of its instance if ECS does not know the node.

    ECS deregisters a container instance that terminates while its agent is connected (DeregisterContainerInstance,
    Amazon ECS API Reference).
    """
    try:
        found = deps.targets.ecs.find_node(name)
    except PortError as error:
        deps.log.decided("machine unknown", job_id=job.job_id, reason=str(error))
        return event
    return replace(event, node=found.node) if found else replace(event, host=HostObservation(has_ended=True))


def _own_node(observation: TaskObservation, job: Job) -> Node | None:
    """Return the node of a task that was placed on a machine of our own, which needs no call; None for any other."""
    placement = job.attempt.placement if job.attempt is not None else None
    if placement is None or not placement.instance_id or placement.task_id != observation.task_id:
        return None
    offering = placement.offering
    return Node(observation.node or "", placement.instance_id, offering.instance_type, offering.zone)
