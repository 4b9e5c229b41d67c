"""Apply EC2 instance events to the jobs on the instance."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

from relaunch.core.jobs.job import Job
from relaunch.core.launches.launch import ContainerInstance, InstanceEvent, InstanceEventKind
from relaunch.core.lifecycle.events import HostEnded, HostWarned, JobEvent, TaskSeen
from relaunch.core.offerings.spot_runs import Observed, SpotRun
from relaunch.ports import JobDependencies, PermanentError, PortError
from relaunch.usecases.advance_job import advance_job
from relaunch.usecases.observe_task import job_of

_ENDED_STATES = frozenset({"shutting-down", "terminated", "stopping", "stopped"})


def observe_capacity(event: InstanceEvent, deps: JobDependencies) -> list[Job]:
    """Apply an instance event to every job with a task on the instance; return those jobs.

    All instances of the account send such events; the jobs are found by one read. For an interruption warning ECS is
    queried too: the link from the instance to the job, or even the response of RunTask, may not be saved yet.

    Raises:
        TransientError: the event could not be applied to all jobs; retry.
    """
    at = event.at or deps.clock.now()
    if event.kind is InstanceEventKind.INTERRUPTION_WARNING:
        return _warn(event.instance_id, at, deps)
    linked = deps.jobs.load_on_instance(event.instance_id)
    match event.kind:
        case InstanceEventKind.STATE_CHANGE if event.state in _ENDED_STATES:
            ended = HostEnded(event.instance_id, event.state, at)
            return [job for job_id in linked if (job := _advance(job_id, ended, deps))]
        case InstanceEventKind.REBALANCE_RECOMMENDATION:
            return [job for job_id in linked if (job := _count_rebalance(job_id, event.instance_id, at, deps))]
        case _:
            return []


def _advance(job_id: str, event: JobEvent, deps: JobDependencies) -> Job | None:
    return advance_job(job_id, lambda _job: event, deps)


def _warn(instance_id: str, at: datetime, deps: JobDependencies) -> list[Job]:
    """Warn every job with a task on the instance, then drain it; errors are raised after that."""
    warned: dict[str, Job] = {}
    errors: list[PortError] = []

    def attempt(call: Callable[..., None], *arguments: Any) -> None:
        try:
            call(*arguments)
        except PortError as error:
            errors.append(error)

    def warn(job_id: str, *events: JobEvent) -> None:
        for event in events:
            job = _advance(job_id, event, deps)
            warned.update({job_id: job} if job else {})

    # Before the links are read: a task that is linked after that looks for the warning.
    attempt(deps.jobs.save_warning, instance_id, at)
    for job_id in deps.jobs.load_on_instance(instance_id):
        attempt(warn, job_id, HostWarned(instance_id, at))
    known = {job.attempt.task_arn for job in warned.values() if job.attempt and job.attempt.warned_at}
    unknown = (task for task in deps.tasks.find_on_instance(instance_id) if task.task_arn not in known)
    for owner, task in ((job_of(task), task) for task in unknown):
        machine = ContainerInstance(task.container_instance_arn or "", instance_id, zone=task.zone)
        if owner is not None:
            attempt(warn, owner, TaskSeen(task, machine), HostWarned(instance_id, at, task.task_arn))
    # Only now: it must not delay a stop. A task that is placed until then is warned when it is known.
    attempt(deps.tasks.drain, instance_id)
    _raise_first(errors)
    return list(warned.values())


def _raise_first(errors: list[PortError]) -> None:
    """Raise a transient error, else any: the message is retried, and jobs that were warned ignore it."""
    for error in sorted(errors, key=lambda error: isinstance(error, PermanentError)):
        raise error


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
