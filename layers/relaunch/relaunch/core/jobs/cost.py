"""What a job has cost so far, its running task included."""

from datetime import datetime

from relaunch.core.jobs.job import CostBasis, Job, JobSummary, RunningTask


def running_task(job: Job) -> RunningTask | None:
    """Return the task that runs, None if none does."""
    attempt = job.attempt
    if attempt is None or attempt.started_at is None or attempt.stop is not None:
        return None
    return RunningTask(attempt.started_at, attempt.placement.price_usd_per_hour, attempt.placement.cost_basis)


def cost_so_far(job: Job | JobSummary, now: datetime) -> tuple[float, CostBasis]:
    """Return what the tasks of a job have cost in USD, and what that rests on."""
    running = running_task(job) if isinstance(job, Job) else job.running
    if running is None:
        return job.cost_usd, job.cost_basis
    hours = (now - running.since).total_seconds() / 3600
    return job.cost_usd + hours * running.usd_per_hour, job.cost_basis.plus(running.basis)
