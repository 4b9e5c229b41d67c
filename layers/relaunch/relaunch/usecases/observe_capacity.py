"""Apply EC2 instance events, ends of Capacity Blocks and retirements to machines of our own and the jobs on them."""

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

from relaunch.core.jobs.job import Job
from relaunch.core.launches.instance_events import (
    InstanceEvent,
    InstanceEventKind,
    InstancesRetiring,
    ReservationEnding,
)
from relaunch.core.launches.launch import STOPPED_BY_WARNING, Node
from relaunch.core.lifecycle.events import HostEnded, HostWarned, JobEvent, TaskSeen, TimePassed
from relaunch.core.lifecycle.moves import stops_by
from relaunch.core.machines.events import InstanceObservation, InstanceSeen, InstanceState, MachineEvent, MachineWarned
from relaunch.core.machines.machine import Machine, MachineState
from relaunch.core.offerings.reservations import TAKEN_BEFORE_END
from relaunch.core.offerings.spot_runs import Observed, SpotRun
from relaunch.ports import JobDependencies, NotYetError, PermanentError, PortError
from relaunch.usecases.advance_job import advance_job
from relaunch.usecases.advance_machine import advance_machine

_ENDED_STATES = frozenset({"shutting-down", "terminated", "stopping", "stopped"})
_T = TypeVar("_T")


class _Calls:
    """Calls of which none is left out because of an error of another; the errors are raised after all of them."""

    def __init__(self) -> None:
        self._errors: list[PortError] = []

    def attempt(self, call: Callable[..., _T], *arguments: Any) -> _T | None:
        """Return what the call returns, None on an error."""
        try:
            return call(*arguments)
        except PortError as error:
            self._errors.append(error)
            return None

    def succeeds(self, call: Callable[..., object], *arguments: Any) -> bool:
        """Make a call; return whether it did not fail."""
        before = len(self._errors)
        self.attempt(call, *arguments)
        return len(self._errors) == before

    def raise_first(self) -> None:
        """Raise a transient error, else any: the message is retried, and jobs that have handled it ignore it."""
        for error in sorted(self._errors, key=lambda error: isinstance(error, PermanentError)):
            raise error


def observe_capacity(event: InstanceEvent, deps: JobDependencies) -> list[Job]:
    """Apply an instance event to every job with a task on the instance; return those jobs.

    All instances of the account send such events; the jobs are found by one read. For an interruption warning the
    target is queried too: the link from the instance to the job, or even the task of the job, may not be saved yet.

    Raises:
        TransientError: the event could not be applied to all jobs, but was to the others; retry.
        NotYetError: a warned task trains on: the event is to be applied again at its last moment.
    """
    at = event.at or deps.clock.now()
    calls = _Calls()
    match event.kind:
        case InstanceEventKind.INTERRUPTION_WARNING:
            jobs = _warn(HostWarned(event.instance_id, at, ends_at=event.ends_at, cause=event.cause), calls, deps)
        case InstanceEventKind.STATE_CHANGE if event.state in _ENDED_STATES:
            ended = HostEnded(event.instance_id, event.state, at)
            linked = deps.jobs.load_on_instance(event.instance_id)
            jobs = [calls.attempt(_advance, job_id, ended, deps) for job_id in linked]
        case InstanceEventKind.REBALANCE_RECOMMENDATION:
            linked = deps.jobs.load_on_instance(event.instance_id)
            jobs = [calls.attempt(_count_rebalance, job_id, event.instance_id, at, deps) for job_id in linked]
            if calls.attempt(_leaves_on_rebalance, event.instance_id, deps):
                jobs = _warn(HostWarned(event.instance_id, at, is_rebalance=True), calls, deps)
        case _:
            jobs = []
    calls.attempt(_tell_machine, event, at, deps)
    warned = [job for job in jobs if job is not None]
    is_warning = event.kind is InstanceEventKind.INTERRUPTION_WARNING
    waits = [calls.attempt(_stop_in_time, job, deps) for job in warned if is_warning]
    calls.raise_first()
    if any(waits):
        raise NotYetError(min(seconds for seconds in waits if seconds))
    return warned


def _stop_in_time(job: Job, deps: JobDependencies) -> int:
    """Stop the task of a warned job at its last moment; return how many seconds it may train on before that, or 0."""
    stop_by = stops_by(job)
    now = deps.clock.now()
    if stop_by is None:
        return 0
    if now < stop_by:
        return math.ceil((stop_by - now).total_seconds())
    _advance(job.job_id, TimePassed(), deps)
    return 0


def _tell_machine(event: InstanceEvent, at: datetime, deps: JobDependencies) -> None:
    """Apply the event to the machine of our own that has the instance, if there is one."""
    is_rebalance = event.kind is InstanceEventKind.REBALANCE_RECOMMENDATION
    if is_rebalance and not deps.limits.machines.starts_on_rebalance:
        return
    machine_id = deps.machines.find_by_instance(event.instance_id)
    if machine_id is None:
        return
    seen: MachineEvent = MachineWarned(at, is_rebalance=is_rebalance, cause=event.cause)
    if event.kind is InstanceEventKind.STATE_CHANGE:
        seen = InstanceSeen(InstanceObservation(event.instance_id, InstanceState(event.state), machine_id), at)
    advance_machine(machine_id, lambda _machine: seen, deps)


def _leaves_on_rebalance(instance_id: str, deps: JobDependencies) -> bool:
    """Return whether the instance is a machine of our own, and a recommendation is reason enough to leave it."""
    return deps.limits.machines.starts_on_rebalance and deps.machines.find_by_instance(instance_id) is not None


def _advance(job_id: str, event: JobEvent, deps: JobDependencies) -> Job | None:
    return advance_job(job_id, lambda _job: event, deps)


def _warn(warning: HostWarned, calls: _Calls, deps: JobDependencies) -> list[Job | None]:
    """Warn every job with a task on the instance, then drain it."""
    if not any(each.capabilities.runs_on_ec2 for each in deps.targets):
        return []
    instance_id = warning.instance_id
    # Before the links are read: a task that is linked after that looks for the warning. On a recommendation it goes on.
    has_table = warning.is_rebalance or calls.succeeds(deps.jobs.save_warning, instance_id, warning.at)
    warned = _warn_jobs(warning, calls, deps) if has_table else _stop_tasks(instance_id, calls, deps)
    # Only now: it must not delay a stop. A task that is placed until then is warned when it is known.
    calls.attempt(_drain, instance_id, deps)
    if not has_table:
        # Each call that is not answered takes seconds of the ten that there are.
        calls.raise_first()
    return warned


def _warn_jobs(warning: HostWarned, calls: _Calls, deps: JobDependencies) -> list[Job | None]:
    """Warn the jobs that are linked to the instance, and those whose tasks ECS has there."""
    instance_id = warning.instance_id
    warned = dict[str, Job | None]()

    def warn(job_id: str, *events: JobEvent) -> None:
        for event in events:
            warned[job_id] = _advance(job_id, event, deps)

    for job_id in calls.attempt(deps.jobs.load_on_instance, instance_id) or ():
        calls.attempt(warn, job_id, warning)
    attempts = [job.attempt for job in warned.values() if job and job.attempt]
    known = {attempt.task_id for attempt in attempts if attempt.warned_at or attempt.handover}
    # One that ECS did not know at the last look is known to live by this answer.
    found = {attempt.task_id for attempt in attempts if attempt.missing is not None}
    for task in calls.attempt(deps.targets.ecs.find_tasks_on, instance_id) or ():
        if task.owner is None or task.task_id in known - found:
            continue
        node = Node(task.node or "", instance_id, zone=task.zone)
        seen = (TaskSeen(task, node), replace(warning, task_id=task.task_id))
        is_warned = calls.succeeds(warn, task.owner.job_id, *seen) or task.task_id in known
        if not is_warned and not warning.is_rebalance:
            calls.attempt(_stop_task, task.task_id, instance_id, deps)
    return list(warned.values())


def _stop_tasks(instance_id: str, calls: _Calls, deps: JobDependencies) -> list[Job | None]:
    """Stop the tasks that ECS has on the instance while the table does not answer; their jobs are warned later."""
    for task in calls.attempt(deps.targets.ecs.find_tasks_on, instance_id) or ():
        if task.owner is not None:
            calls.attempt(_stop_task, task.task_id, instance_id, deps)
    return []


def _stop_task(task_id: str, instance_id: str, deps: JobDependencies) -> None:
    """Let a training save now whose job cannot be read."""
    reason = f"{STOPPED_BY_WARNING} for {instance_id}, while its job could not be read"
    deps.targets.ecs.stop(task_id, reason)
    deps.log.decided("stopped", task_id=task_id, instance_id=instance_id, reason=reason)


def _drain(instance_id: str, deps: JobDependencies) -> None:
    """Drain the instance, unless that is refused for good: every task was stopped, and those that follow are warned."""
    try:
        deps.targets.ecs.drain(instance_id)
    except PermanentError as error:
        deps.log.decided("not drained", instance_id=instance_id, reason=str(error))


def _count_rebalance(job_id: str, instance_id: str, at: datetime, deps: JobDependencies) -> Job | None:
    """Count the elevated risk of interruption for the rate of the offering; the job goes on."""
    job = deps.jobs.load_job(job_id)
    if job is None or job.attempt is None or job.attempt.instance_id != instance_id:
        return None
    placement = job.attempt.placement
    ran_on = replace(placement.offering, zone=job.attempt.zone or placement.offering.zone)
    deps.capacity.count_run(SpotRun(ran_on, instance_id, Observed.REBALANCE, at))
    deps.log.decided(
        "counted", job_id=job_id, offering=str(ran_on), reason=f"rebalance recommendation for {instance_id}"
    )
    return job


# The most instances of Capacity Blocks that an account may have, which no stack has machines beyond.
_MOST_MACHINES = 256
# Reconcile looks at jobs that are due once a minute.
_SPARE = timedelta(minutes=2)
_LAUNCHED = (MachineState.STARTING, MachineState.READY)
_WARNING = InstanceEventKind.INTERRUPTION_WARNING


def observe_reservation(event: ReservationEnding, deps: JobDependencies) -> list[str]:
    """Warn every machine in the reservation, as by an interruption warning; return the IDs of their instances.

    EC2 names no instances. Machines that were not warned yet come first, so that a repetition goes on where a function
    ended early. The event does not come back at the last moment of a task that trains on, as a spot warning does: a
    message that is held for minutes is one that waits to WarningsAgeAlarm. The other message for that moment, and
    reconcile, have the spare time.

    Raises:
        TransientError: the event could not be applied to all machines, but was to the others; retry.
    """
    machines = sorted(_machines_in(event.reservation_id, deps), key=lambda each: each.warned_at is not None)
    warned = [machine.instance_id or "" for machine in machines]
    deps.log.decided("reservation-ends", reservation_id=event.reservation_id, instance_ids=warned)
    ends_at = event.ends_at - TAKEN_BEFORE_END - _SPARE
    _warn_all([InstanceEvent(_WARNING, each, at=event.at, ends_at=ends_at) for each in warned], deps)
    return warned


def observe_retirement(event: InstancesRetiring, deps: JobDependencies) -> None:
    """Warn every instance, as by an interruption warning: their jobs move to other machines, weeks ahead if need be.

    A host that is retired has a fault, and nothing is gained by training on it until the date.

    Raises:
        TransientError: the event could not be applied to all instances, but was to the others; retry.
    """
    deps.log.decided("retirement", instance_ids=list(event.instance_ids), ends_at=event.ends_at.isoformat())
    ends_at = event.ends_at - _SPARE
    cause = "retirement by AWS"
    _warn_all(
        [InstanceEvent(_WARNING, each, at=event.at, ends_at=ends_at, cause=cause) for each in event.instance_ids], deps
    )


def _warn_all(warnings: Iterable[InstanceEvent], deps: JobDependencies) -> None:
    failed: list[PortError] = []
    for warning in warnings:
        try:
            observe_capacity(warning, deps)
        except NotYetError:
            pass
        except PortError as error:
            failed.append(error)
    if failed:
        raise min(failed, key=lambda error: isinstance(error, PermanentError))


def _machines_in(reservation_id: str, deps: JobDependencies) -> list[Machine]:
    """Return the machines in the reservation that EC2 launched and nobody ends."""
    machines = (deps.machines.load_machine(each) for each in deps.machines.load_living(_MOST_MACHINES))
    launched = [each for each in machines if each is not None and each.state in _LAUNCHED]
    return [each for each in launched if each.request.reservation_id == reservation_id]
