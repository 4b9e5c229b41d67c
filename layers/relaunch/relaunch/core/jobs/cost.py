"""What a job has cost so far, its running task and the machines that were of no use included."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from relaunch.core.jobs.state import CostBasis, JobSummary, RunningTask

if TYPE_CHECKING:
    from relaunch.core.jobs.job import Attempt, Job


@dataclass(frozen=True, slots=True)
class HourlyPrice:
    """A price in USD per hour, 0 if unknown, and what it rests on."""

    usd_per_hour: float
    basis: CostBasis


def attempt_price(attempt: "Attempt") -> HourlyPrice:
    """Return the price of an attempt: that of the zone that its task is in, as it was when it was selected.

    In a zone whose price was not told it is an upper limit, the on-demand price. Until the zone is known it is the
    highest price of all zones, an upper limit too unless they are equal.
    """
    placement, prices = attempt.placement, attempt.placement.usd_per_hour_by_zone
    if not prices:
        return HourlyPrice(placement.price_usd_per_hour, placement.cost_basis)
    if attempt.zone is not None:
        if attempt.zone in prices:
            return HourlyPrice(prices[attempt.zone], CostBasis.PRICE)
        limit = placement.limit_usd_per_hour
        return HourlyPrice(limit, CostBasis.LIMIT if limit else CostBasis.UNKNOWN)
    highest = max(prices.values())
    return HourlyPrice(highest, CostBasis.LIMIT if min(prices.values()) < highest else CostBasis.PRICE)


def running_task(job: "Job") -> RunningTask | None:
    """Return the task that runs, None if none does."""
    attempt = job.attempt
    if attempt is None or attempt.started_at is None or attempt.stop is not None:
        return None
    price = attempt_price(attempt)
    return RunningTask(attempt.started_at, price.usd_per_hour, price.basis)


def cost_so_far(job: "Job | JobSummary", now: datetime) -> tuple[float, CostBasis]:
    """Return what a job has cost in USD, and what that rests on.

    That is its tasks, and the machines that were requested for it and never ran one, from launch to end.
    """
    running = job.running if isinstance(job, JobSummary) else running_task(job)
    ended_usd = job.cost_usd + job.useless_machines_usd
    if running is None:
        return ended_usd, job.cost_basis
    # ECS's clock may be ahead.
    hours = max((now - running.since).total_seconds(), 0.0) / 3600
    return ended_usd + hours * running.usd_per_hour, job.cost_basis.plus(running.basis)
