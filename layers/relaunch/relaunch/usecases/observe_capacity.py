"""Carry what EC2 says of a machine into the jobs that run on it."""

from datetime import datetime, timedelta

from relaunch.core.job import Job
from relaunch.core.job_events import HostEnded, HostWarned, JobEvent
from relaunch.core.launch import CapacityNews, CapacityNewsKind
from relaunch.core.offering import CapacityFailure
from relaunch.ports import World
from relaunch.usecases.advance_job import advance_job

# A rebalance recommendation says "elevated risk", not "gone": other jobs keep away for a while.
_AVOID_AFTER_REBALANCE = timedelta(minutes=10)
_ENDED_STATES = frozenset({"shutting-down", "terminated", "stopping", "stopped"})


def observe_capacity(news: CapacityNews, world: World) -> list[Job]:
    """Carry the news into every job with a task on the machine; return those jobs.

    The whole account's machines send such news: one read tells whether the machine is ours. Only for a warning, where
    two minutes count, ECS is asked as well, because the note of the machine may not have been written yet.
    """
    at = news.at or world.clock.now()
    noted = world.jobs.load_on_instance(news.instance_id)
    match news.kind:
        case CapacityNewsKind.INTERRUPTION_WARNING:
            return _warn(news.instance_id, noted, at, world)
        case CapacityNewsKind.STATE_CHANGE if news.state in _ENDED_STATES:
            ended = HostEnded(news.instance_id, news.state, at)
            return [job for job_id in noted if (job := _advance(job_id, ended, world))]
        case CapacityNewsKind.REBALANCE_RECOMMENDATION:
            return [job for job_id in noted if (job := _avoid_machine_of(job_id, news.instance_id, world))]
        case _:
            return []


def _advance(job_id: str, event: JobEvent, world: World) -> Job | None:
    return advance_job(job_id, lambda _job: event, world)


def _warn(instance_id: str, noted: list[str], at: datetime, world: World) -> list[Job]:
    warned = [job for job_id in noted if (job := _advance(job_id, HostWarned(instance_id, at), world))]
    if any(job.attempt is not None and job.attempt.instance_id == instance_id for job in warned):
        return warned
    for task in world.tasks.find_on_instance(instance_id):
        job = _advance(task.started_by.rpartition("/")[0], HostWarned(instance_id, at, task.task_arn), world)
        warned += [job] if job else []
    return warned


def _avoid_machine_of(job_id: str, instance_id: str, world: World) -> Job | None:
    job = world.jobs.load_job(job_id)
    if job is None or job.attempt is None or job.attempt.instance_id != instance_id:
        return None
    now = world.clock.now()
    offering = job.attempt.placement_try.offering
    failure = CapacityFailure(
        offering, f"rebalance recommendation for {instance_id}", now, now + _AVOID_AFTER_REBALANCE
    )
    world.capacity.remember(failure)
    world.log.decided("remembered", job_id=job_id, offering=str(offering), reason=failure.reason)
    return job
