"""Carry what EC2 says of a machine into the jobs that run on it."""

from datetime import datetime, timedelta

from relaunch.core.jobs.job import Job
from relaunch.core.launches.launch import ContainerInstance, InstanceEvent, InstanceEventKind
from relaunch.core.lifecycle.events import HostEnded, HostWarned, JobEvent, TaskSeen
from relaunch.core.offerings.offering import CapacityFailure
from relaunch.ports import JobDependencies, PermanentError, PortError
from relaunch.usecases.advance_job import advance_job
from relaunch.usecases.observe_task import job_of

# A rebalance recommendation says "elevated risk", not "gone": other jobs keep away for a while.
_AVOID_AFTER_REBALANCE = timedelta(minutes=10)
_ENDED_STATES = frozenset({"shutting-down", "terminated", "stopping", "stopped"})


def observe_capacity(news: InstanceEvent, deps: JobDependencies) -> list[Job]:
    """Carry the news into every job with a task on the machine; return those jobs.

    The whole account's machines send such news: one read tells whether the machine is ours. Only for a warning, where
    two minutes count, ECS is asked as well: the note of the machine may not have been written yet, or even RunTask's
    answer.

    Raises:
        TransientError: a job could not be told; deliver the news again, those that were told ignore it.
    """
    at = news.at or deps.clock.now()
    noted = deps.jobs.load_on_instance(news.instance_id)
    match news.kind:
        case InstanceEventKind.INTERRUPTION_WARNING:
            return _warn(news.instance_id, noted, at, deps)
        case InstanceEventKind.STATE_CHANGE if news.state in _ENDED_STATES:
            ended = HostEnded(news.instance_id, news.state, at)
            return [job for job_id in noted if (job := _advance(job_id, ended, deps))]
        case InstanceEventKind.REBALANCE_RECOMMENDATION:
            return [job for job_id in noted if (job := _avoid_machine_of(job_id, news.instance_id, deps))]
        case _:
            return []


def _advance(job_id: str, event: JobEvent, deps: JobDependencies) -> Job | None:
    return advance_job(job_id, lambda _job: event, deps)


def _warn(instance_id: str, noted: list[str], at: datetime, deps: JobDependencies) -> list[Job]:
    """Warn every job with a task on the machine; one job's trouble does not cost the others their two minutes."""
    warned: dict[str, Job] = {}
    troubles: list[PortError] = []

    def warn(job_id: str, *events: JobEvent) -> None:
        try:
            for event in events:
                job = _advance(job_id, event, deps)
                warned.update({job_id: job} if job else {})
        except PortError as error:
            troubles.append(error)

    for job_id in noted:
        warn(job_id, HostWarned(instance_id, at))
    known = {job.attempt.task_arn for job in warned.values() if job.attempt and job.attempt.warned_at}
    for task in deps.tasks.find_on_instance(instance_id):
        owner = job_of(task)
        if owner is not None and task.task_arn not in known:
            machine = ContainerInstance(task.container_instance_arn or "", instance_id, zone=task.zone)
            warn(owner, TaskSeen(task, machine), HostWarned(instance_id, at, task.task_arn))
    if troubles:
        # What may pass goes first: the message comes again, and those that were told ignore it.
        raise min(troubles, key=lambda trouble: isinstance(trouble, PermanentError))
    return list(warned.values())


def _avoid_machine_of(job_id: str, instance_id: str, deps: JobDependencies) -> Job | None:
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
