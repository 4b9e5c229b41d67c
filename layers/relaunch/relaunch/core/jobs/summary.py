"""The summary of a job, for lists of jobs."""

from relaunch.core.jobs.cost import running_task
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.progress import describe_lack_of_progress
from relaunch.core.jobs.state import JobSummary


def summarize_job(job: Job) -> JobSummary:
    """Return the summary of a job."""
    attempt = job.attempt
    return JobSummary(
        job_id=job.job_id,
        definition=job.definition.name,
        state=job.state,
        accepted_at=job.accepted_at,
        reason="; ".join(filter(None, (job.reason, describe_lack_of_progress(job)))),
        waiting=job.waiting,
        attempt_number=attempt.number if attempt else 0,
        offering=attempt.placement.offering if attempt else None,
        interruptions=job.interruptions,
        failures=job.failures,
        run_seconds=job.run_seconds,
        cost_usd=job.cost_usd,
        trigger=job.trigger.summary,
        ended_at=job.ended_at,
        cost_basis=job.cost_basis,
        machine_id=job.machine_id,
        running=running_task(job),
        state_since=job.state_since,
        started_by=job.trigger.short or job.trigger.summary,
        useless_machines_usd=job.useless_machines_usd,
    )
