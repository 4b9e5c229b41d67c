"""What a job has cost until now, its part in the sums of a stack, and the summary of a job for lists."""

from datetime import UTC, date, datetime, timedelta

from relaunch.core.jobs.attempt import Attempt
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.progress import describe_lack_of_progress
from relaunch.core.jobs.state import CostBasis, JobSummary, MachineCost, RunningTask
from relaunch.core.machines.charges import DayCost, days_between
from relaunch.core.offerings.offering_key import OfferingKey
from relaunch.core.records import dataclass


@dataclass(frozen=True, slots=True)
class HourlyPrice:
    """A price in USD per hour, 0 if unknown, and what it rests on."""

    usd_per_hour: float
    basis: CostBasis


def attempt_price(attempt: Attempt) -> HourlyPrice:
    """Return the price of an attempt, all its nodes together: of the zone that it is in, as it was when selected.

    In a zone whose price is not known it is an upper limit, the on-demand price. Until the zone is known it is the
    highest price of all zones, an upper limit too unless they are equal.
    """
    placement = attempt.placement
    prices = attempt.placement.usd_per_hour_by_zone
    if not prices:
        return HourlyPrice(placement.price_usd_per_hour * len(placement.ranks), placement.cost_basis)
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
    others = " ".join(each.machine_id for each in attempt.placement.followers)
    return RunningTask(attempt.started_at, price.usd_per_hour, price.basis, _charged_machine(job, attempt), others)


def _charged_machine(job: Job, attempt: Attempt) -> str:
    """Return the machine of our own on which an attempt runs, if it is charged to the job; else nothing."""
    machine_id = attempt.placement.machine_id
    return machine_id if job.charges.open_of(machine_id) is not None else ""


def cost_so_far(job: Job | JobSummary, now: datetime) -> tuple[float, CostBasis]:
    """Return what a job has cost in USD, and what that rests on (JobSummary.cost_so_far).

    A task elsewhere whose program has ended costs no more until its end is counted; of a summary, which does not say
    so, it does.
    """
    summary = job if isinstance(job, JobSummary) else summarize_job(job)
    is_elsewhere = summary.running is not None and not summary.running.machine_id
    if isinstance(job, Job) and job.attempt is not None and job.attempt.program_ended_at is not None and is_elsewhere:
        now = min(now, job.attempt.program_ended_at)
    return summary.cost_so_far(now)


def machine_cost(job: Job | JobSummary, now: datetime) -> MachineCost:
    """Return what machines of our own have cost a job until now."""
    return (job if isinstance(job, JobSummary) else summarize_job(job)).machine_cost(now)


@dataclass(frozen=True, slots=True)
class CostKey:
    """What is added up together.

    `repository` is that of GitHub (OWNER/NAME) whose event started the jobs, empty without one. `caller` asked for
    them; those that an event started have its source (`github`, `s3`). A type that nobody knows is empty.
    """

    definition: str
    repository: str
    caller: str
    instance_type: str
    purchase: str


@dataclass(frozen=True, slots=True)
class CostEntry:
    """Costs on some days, each of which comes once."""

    key: CostKey
    days: tuple[DayCost, ...]

    def within(self, first: date, last: date) -> "CostEntry":
        """Return the entry of the days from one to another."""
        return CostEntry(self.key, tuple(each for each in self.days if first <= each.day <= last))


def cost_key(job: Job, offering: OfferingKey | None) -> CostKey:
    """Return where the costs of a job are added up; without an offering nobody knows of what type a machine was."""
    trigger = job.trigger
    return CostKey(
        job.definition.name,
        trigger.environment.get("RELAUNCH_GIT_REPOSITORY", ""),
        trigger.caller or trigger.source,
        offering.instance_type if offering else "",
        offering.purchase.value if offering else "",
    )


def task_costs(job: Job, attempt: Attempt, ran: timedelta) -> CostEntry:
    """Return what a task costs for which no machine of our own is charged, which ran for this time."""
    price = attempt_price(attempt)
    on_demand = attempt.placement.limit_usd_per_hour or price.usd_per_hour
    days = list[DayCost]()
    began_at = attempt.started_at or attempt.placement.requested_at
    for since, until in days_between(began_at, began_at + ran):
        hours = (until - since) / timedelta(hours=1)
        unpriced = hours if price.basis is CostBasis.UNKNOWN else 0.0
        day = since.astimezone(UTC).date()
        days.append(DayCost(day, hours * price.usd_per_hour, hours * on_demand, hours, unpriced))
    return CostEntry(cost_key(job, attempt.placement.offering), tuple(days))


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
        cost_basis=job.totals.cost_basis.plus(job.charges.basis),
        machine_id=job.machine_id,
        running=running_task(job),
        state_since=job.state_since,
        started_by=job.trigger.short or job.trigger.summary,
        useless_machines_usd=job.machines.useless_usd,
        machines_usd=job.charges.machines_usd,
        machines_on_demand_usd=job.charges.on_demand_usd,
        own_tasks_usd=job.charges.own_tasks_usd,
        trained_usd=job.charges.trained_usd,
        open_charges=job.charges.open,
        noted=job.noted,
    )
