"""Carry what ECS says of a task into its job."""

from relaunch.core.jobs.job import Job
from relaunch.core.launches.launch import TaskObservation
from relaunch.core.lifecycle.events import TaskSeen
from relaunch.ports import JobDependencies, TransientError
from relaunch.usecases.advance_job import advance_job

# Tasks of services are started by `ecs-svc/<number>`, which looks like one of ours; a job's id has a hash in it.
_SERVICE = "ecs-svc"


def observe_task(observation: TaskObservation, deps: JobDependencies) -> Job | None:
    """Find the job by the task's `startedBy` (`<job>/<attempt>`) and carry the observation into it.

    Returns the job, None when the task is nobody's: services and other people's tasks share the cluster.
    """
    job_id = job_of(observation)
    if job_id is None:
        return None
    return advance_job(job_id, lambda job: task_seen(observation, job, deps), deps)


def job_of(observation: TaskObservation) -> str | None:
    """Return the id of the job that started a task, None when its `startedBy` is none of ours."""
    job_id, _, attempt_number = observation.started_by.rpartition("/")
    return job_id if job_id not in ("", _SERVICE) and attempt_number.isdigit() else None


def task_seen(observation: TaskObservation, job: Job, deps: JobDependencies) -> TaskSeen:
    """Make the event of an observation; the task's machine is looked up once, so that a spot warning finds the job.

    When ECS does not tell now (20 times a second it does), the task's next event or the next sweep asks again: news of
    the task are not kept waiting for it, and a warning asks ECS for the machine's tasks in any case.
    """
    arn = observation.container_instance_arn
    is_known = job.attempt is not None and job.attempt.instance_id is not None
    if arn is None or is_known or observation.last_status == "STOPPED":
        return TaskSeen(observation)
    try:
        return TaskSeen(observation, deps.tasks.find_container_instance(arn))
    except TransientError as error:
        deps.log.decided("machine unknown", job_id=job.job_id, reason=str(error))
        return TaskSeen(observation)
