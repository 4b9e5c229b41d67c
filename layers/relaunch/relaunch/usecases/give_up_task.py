"""Take a task for lost whose stop nothing confirms."""

from relaunch.core.jobs.job import Job
from relaunch.core.lifecycle.events import TaskGivenUp
from relaunch.ports import JobDependencies
from relaunch.usecases.advance_job import advance_job


def give_up_task(job_id: str, reason: str, deps: JobDependencies) -> Job | None:
    """Close the attempt of a job whose task does not stop, so that the job goes on or ends; the task may live on.

    Returns the job after that, None if it does not exist. One that core.lifecycle.unconfirmed_stops does not give up
    stays as it is.
    """
    return advance_job(job_id, lambda _job: TaskGivenUp(reason), deps)
