"""Apply EC2 instance events to the jobs on the instance."""

from datetime import datetime, timedelta

from relaunch.core.jobs.job import Job
from relaunch.core.launches.launch import ContainerInstance, InstanceEvent, InstanceEventKind
from relaunch.core.lifecycle.events import HostEnded, HostWarned, JobEvent, TaskSeen
from relaunch.core.offerings.offering import CapacityFailure
from relaunch.ports import JobDependencies, PermanentError, PortError
from relaunch.usecases.advance_job import advance_job
from relaunch.usecases.observe_task import job_of

# A rebalance recommendation signals an elevated risk of interruption: only other jobs avoid the offering.
_AVOID_AFTER_REBALANCE = timedelta(minutes=10)
_ENDED_STATES = frozenset({"shutting-down", "terminated", "stopping", "stopped"})


def observe_capacity(event: InstanceEvent, deps: JobDependencies) -> list[Job]:
    """Apply an instance event to every job with a task on the instance; return those jobs.

    All instances of the account send such events; the jobs are found by one read. For an interruption warning ECS is
    queried too: the link from the instance to the job, or even the response of RunTask, may not be saved yet.

    Raises:
        TransientError: the event could not be applied to all jobs; retry.
    """
    at = event.at or deps.clock.now()
    linked = deps.jobs.load_on_instance(event.instance_id)
    match event.kind:
        case InstanceEventKind.INTERRUPTION_WARNING:
            return _warn(event.instance_id, linked, at, deps)
        case InstanceEventKind.STATE_CHANGE if event.state in _ENDED_STATES:
            ended = HostEnded(event.instance_id, event.state, at)
            return [job for job_id in linked if (job := _advance(job_id, ended, deps))]
        case InstanceEventKind.REBALANCE_RECOMMENDATION:
            return [job for job_id in linked if (job := _avoid_offering_of(job_id, event.instance_id, deps))]
        case _:
            return []


def _advance(job_id: str, event: JobEvent, deps: JobDependencies) -> Job | None:
    return advance_job(job_id, lambda _job: event, deps)


def _warn(instance_id: str, linked: list[str], at: datetime, deps: JobDependencies) -> list[Job]:
    """Warn every job with a task on the instance; errors of a job are raised after all jobs were warned."""
    warned: dict[str, Job] = {}
    errors: list[PortError] = []

    def warn(job_id: str, *events: JobEvent) -> None:
        try:
            for event in events:
                job = _advance(job_id, event, deps)
                warned.update({job_id: job} if job else {})
        except PortError as error:
            errors.append(error)

    for job_id in linked:
        warn(job_id, HostWarned(instance_id, at))
    known = {job.attempt.task_arn for job in warned.values() if job.attempt and job.attempt.warned_at}
    for task in deps.tasks.find_on_instance(instance_id):
        owner = job_of(task)
        if owner is not None and task.task_arn not in known:
            machine = ContainerInstance(task.container_instance_arn or "", instance_id, zone=task.zone)
            warn(owner, TaskSeen(task, machine), HostWarned(instance_id, at, task.task_arn))
    if errors:
        # A transient error comes first: the message is retried, and jobs that were warned ignore it.
        raise min(errors, key=lambda error: isinstance(error, PermanentError))
    return list(warned.values())


def _avoid_offering_of(job_id: str, instance_id: str, deps: JobDependencies) -> Job | None:
    job = deps.jobs.load_job(job_id)
    if job is None or job.attempt is None or job.attempt.instance_id != instance_id:
        return None
    now = deps.clock.now()
    offering = job.attempt.placement.offering
    failure = CapacityFailure(
        offering, f"rebalance recommendation for {instance_id}", now, now + _AVOID_AFTER_REBALANCE
    )
    deps.capacity.remember(failure)
    deps.log.decided("remembered", job_id=job_id, offering=str(offering), reason=failure.reason)
    return job
