"""Apply an observation of a task to its job."""

from relaunch.core.jobs.job import Job
from relaunch.core.launches.launch import TaskObservation
from relaunch.core.lifecycle.events import TaskSeen
from relaunch.ports import JobDependencies, TransientError
from relaunch.usecases.advance_job import advance_job

# Tasks of services have startedBy `ecs-svc/<number>`, which has the same form; job ids end with a hash.
_SERVICE = "ecs-svc"


def observe_task(observation: TaskObservation, deps: JobDependencies) -> Job | None:
    """Find the job by the `startedBy` of the task (`<job>/<attempt>`) and apply the observation.

    Returns the job, None if the task is not of a job: other tasks may run in the cluster.
    """
    job_id = job_of(observation)
    if job_id is None:
        return None
    return advance_job(job_id, lambda job: task_seen(observation, job, deps), deps)


def job_of(observation: TaskObservation) -> str | None:
    """Return the id of the job of a task, None if its `startedBy` is not of a job."""
    job_id, _, attempt_number = observation.started_by.rpartition("/")
    return job_id if job_id not in ("", _SERVICE) and attempt_number.isdigit() else None


def task_seen(observation: TaskObservation, job: Job, deps: JobDependencies) -> TaskSeen:
    """Return the event of an observation, with the container instance if that is not known yet.

    A spot warning finds the job by it. If ECS throttles the call (20 per second), the next event of the task or the
    next sweep repeats it; a warning queries ECS too.

    Raises:
        TransientError: the task stopped without having run, and ECS does not tell now on which instance; retry.
    """
    arn = observation.container_instance_arn
    is_known = job.attempt is not None and job.attempt.instance_id is not None
    has_stopped = observation.last_status == "STOPPED"
    if arn is None or is_known or (has_stopped and observation.started_at is not None):
        return TaskSeen(observation)
    try:
        found = deps.tasks.find_container_instance(arn)
    except TransientError as error:
        # Launches avoid the instance of a task that never ran, for which they need its EC2 instance ID.
        if has_stopped:
            raise
        deps.log.decided("machine unknown", job_id=job.job_id, reason=str(error))
        return TaskSeen(observation)
    return TaskSeen(observation, found.instance if found else None)
