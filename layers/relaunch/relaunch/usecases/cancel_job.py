"""End a job because somebody asked for it."""

from relaunch.core.jobs.job import Job
from relaunch.core.lifecycle.events import CancelAsked
from relaunch.ports import JobDependencies
from relaunch.usecases.advance_job import advance_job


def cancel_job(job_id: str, reason: str, deps: JobDependencies) -> Job | None:
    """Cancel a job: at once when nothing runs, else by stopping its task, which may take until its `stopTimeout`.

    Returns the job as it stands then (a job that is over is left as it is), None when there is no such job.
    """
    return advance_job(job_id, lambda _job: CancelAsked(reason), deps)
