"""Cancel a job."""

from relaunch.core.jobs.job import Job
from relaunch.core.lifecycle.events import CancelAsked
from relaunch.ports import JobDependencies
from relaunch.usecases.advance_job import advance_job


def cancel_job(job_id: str, reason: str, deps: JobDependencies) -> Job | None:
    """Cancel a job: at once if it has no task, else by stopping its task, which may take its `stopTimeout`.

    Returns the job after that, None if it does not exist. A finished job does not change.
    """
    return advance_job(job_id, lambda _job: CancelAsked(reason), deps)
