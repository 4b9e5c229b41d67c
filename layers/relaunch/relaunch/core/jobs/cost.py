"""What a job has cost until now, and the summary of a job for lists."""

from datetime import datetime

from relaunch.core.jobs.attempt import Attempt
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.progress import describe_lack_of_progress
from relaunch.core.jobs.state import CostBasis, JobSummary, RunningTask
from relaunch.core.records import dataclass


@dataclass(frozen=True, slots=True)
class HourlyPrice:
    """A price in USD per hour, 0 if unknown, and what it rests on."""

    usd_per_hour: float
    basis: CostBasis


def attempt_price(attempt: Attempt) -> HourlyPrice:
    """Return the price of an attempt: that of the zone that its task is in, as it was when it was selected.

    In a zone whose price is not known it is an upper limit, the on-demand price. Until the zone is known it is the
    highest price of all zones, an upper limit too unless they are equal.
    """
    placement = attempt.placement
    prices = attempt.placement.usd_per_hour_by_zone
    if not prices:
        return HourlyPrice(placement.price_usd_per_hour, placement.cost_basis)
    if attempt.zone is not None:
        if attempt.zone in prices:
            return HourlyPrice(prices[attempt.zone], CostBasis.PRICE)
        limit = placement.limit_usd_per_hour
        return HourlyPrice(limit, CostBasis.LIMIT if limit else CostBasis.UNKNOWN)
    highest = max(prices.values())
    return HourlyPrice(highest, CostBasis.LIMIT if min(prices.values()) < highest else CostBasis.PRICE)


def running_task(job: Job) -> RunningTask | None:
    """Return the task that runs, None if none does."""
    attempt = job.attempt
    if attempt is None or attempt.started_at is None or attempt.stop is not None:
        return None
    price = attempt_price(attempt)
    return RunningTask(attempt.started_at, price.usd_per_hour, price.basis)


def cost_so_far(job: Job | JobSummary, now: datetime) -> tuple[float, CostBasis]:
    """Return what a job has cost in USD, and what that rests on.

    That is its tasks, and the machines that were requested for it and never ran one, from launch to end. A task whose
    program has ended costs no more until its end is counted; of a summary, which does not say so, it does.
    """
    if isinstance(job, Job) and job.attempt is not None and job.attempt.program_ended_at is not None:
        now = min(now, job.attempt.program_ended_at)
    return (job if isinstance(job, JobSummary) else summarize_job(job)).cost_so_far(now)


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
        interruptions=job.totals.interruptions,
        failures=job.totals.failures,
        run_seconds=job.totals.run_seconds,
        cost_usd=job.totals.cost_usd,
        trigger=job.trigger.summary,
        ended_at=job.ended_at,
        cost_basis=job.totals.cost_basis,
        machine_id=job.machine_id,
        running=running_task(job),
        state_since=job.state_since,
        started_by=job.trigger.short or job.trigger.summary,
        useless_machines_usd=job.machines.useless_usd,
        noted=job.noted,
    )
