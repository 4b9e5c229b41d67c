"""Cancelling a job for somebody, as `cancel` and the dashboard do."""

from relaunch.core.jobs.job import Job
from relaunch.ports import Dependencies, PortError
from relaunch.usecases.cancel_job import cancel_job


def describe_cancellation(reason: str, caller: str) -> str:
    """Return what the timeline says: the reason, if one is given, and who cancelled."""
    by = f"cancelled by {caller}"
    return f"{reason} ({by})" if reason else by


def cancel_for(job_id: str, reason: str, deps: Dependencies) -> tuple[Job | None, str]:
    """Cancel a job; return it, and what is left to do, empty if nothing is.

    A stop that this caller may not ask for is left to the functions, which repeat it.

    Raises:
        PortError: it is not cancelled.
    """
    try:
        return cancel_job(job_id, reason, deps), ""
    except PortError as error:
        job = deps.jobs.load_job(job_id)
        if job is None or job.definition.target.capabilities.sends_events or not job.cancel_requested:
            raise
        return job, f"the functions stop its task within a minute: {error}"
