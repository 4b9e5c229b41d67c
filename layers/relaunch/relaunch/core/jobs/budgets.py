"""Budgets: what jobs may cost in a month or in all, and what each job has reserved of them.

A launch reserves what the job has cost and what the next hour can cost (its lease) in the transaction that claims the
machine, so that launches at the same time cannot exceed a budget together. While the task runs the lease is renewed; a
budget without room for that lets the task save and wait. When nothing runs, what the job has cost remains.

A budget of a month (UTC) counts what is reserved in it. What is given back goes to the month of the last reservation,
and what a machine costs in the end beyond that to the month in which it is known.
"""

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta

from relaunch.core.jobs.attempt import PlacementState
from relaunch.core.jobs.cost import attempt_price, cost_key, cost_so_far
from relaunch.core.jobs.job import Job, claimed_machines
from relaunch.core.jobs.state import Reserved
from relaunch.core.records import dataclass

STACK = "stack"
"""The scope of the budget of all jobs."""
KINDS = ("definition", "repository", "caller")
"""The kinds of the other scopes, which are `KIND/NAME`."""
LEASE = timedelta(hours=1)
"""For how long a launch reserves what it costs."""
RENEWED_BEFORE = LEASE / 2
"""A lease is renewed when less than this is left of it: a running task is looked at every ten minutes."""
STOPPED_BEFORE = LEASE / 4
"""A task whose lease cannot be renewed is stopped when less than this is left: it needs minutes to save."""
COUNTED_BEFORE = LEASE / 12
"""Of a task that stops, and whose lease cannot be renewed, what it costs until it has stopped counts from here on."""
_WARNED_PERCENT = 80
# What floats of sums differ by is no change.
_LEAST_USD = 1e-9
_HOUR = timedelta(hours=1)


def month_of(at: datetime) -> str:
    """Return the month (UTC) of a time, as `2026-11`."""
    return f"{at.astimezone(UTC):%Y-%m}"


@dataclass(frozen=True, slots=True)
class Budget:
    """What the jobs of a scope may cost in USD, and what they have reserved: in all, and by month.

    `scope` is `stack`, or the kind and the name of what the jobs have in common: `definition/resnet`,
    `repository/OWNER/NAME`, `caller/NAME` (core.jobs.cost.CostKey). None is no limit. `reported` are the percentages
    that were reported: by month, and of all as ``.
    """

    scope: str
    monthly_usd: float | None = None
    total_usd: float | None = None
    reserved_usd: float = 0.0
    reserved_in: Mapping[str, float] = field(default_factory=dict, hash=False)
    reported: Mapping[str, int] = field(default_factory=dict, hash=False)

    def left(self, month: str) -> float:
        """Return what may be reserved in a month; less than 0 if machines cost more than was reserved."""
        left = [] if self.total_usd is None else [self.total_usd - self.reserved_usd]
        if self.monthly_usd is not None:
            left.append(self.monthly_usd - self.reserved_in.get(month, 0.0))
        return min(left, default=float("inf"))

    def used(self, month: str) -> Mapping[str, tuple[float, float]]:
        """Return what is reserved and its limit, for each limit: by month, and of all as ``."""
        used = {} if self.total_usd is None else {"": (self.reserved_usd, self.total_usd)}
        if self.monthly_usd is not None:
            used[month] = (self.reserved_in.get(month, 0.0), self.monthly_usd)
        return used


def raised_periods(before: Budget, monthly_usd: float | None, total_usd: float | None) -> tuple[str, ...]:
    """Return the periods whose limit becomes a larger one, or none: of all as ``, and the newest month that counts.

    What was reported of them says nothing of the new limit, and is reported again when that is reached.
    """
    newest = max((each for each in (*before.reserved_in, *before.reported) if each), default="")
    in_all = ("",) if _is_raised(before.total_usd, total_usd) else ()
    return (*in_all, newest) if newest and _is_raised(before.monthly_usd, monthly_usd) else in_all


def _is_raised(before: float | None, after: float | None) -> bool:
    return before is not None and (after is None or after > before)


@dataclass(frozen=True, slots=True)
class BudgetChange:
    """What a job reserves of a budget in a month, or gives back if `usd` is less than 0.

    With `limits` (of the month, and in all) nothing is saved if it exceeds one; without them it is what was paid.
    """

    scope: str
    month: str
    usd: float
    limits: tuple[float | None, float | None] | None = None


def scopes_of(job: Job) -> tuple[str, ...]:
    """Return the scopes that a job belongs to."""
    of = cost_key(job, None)
    named = zip(KINDS, (of.definition, of.repository, of.caller), strict=True)
    return (STACK, *(f"{kind}/{name}" for kind, name in named if name))


def usd_per_hour(job: Job) -> float:
    """Return what a job pays per hour now, by its machines and its task elsewhere; 0 if it has neither."""
    of_machines = sum(each.usd_per_hour for each in job.charges.open if each.until is None)
    attempt = job.attempt
    if attempt is None or not _is_live(job) or job.charges.open_of(attempt.placement.machine_id) is not None:
        return of_machines
    return of_machines + attempt_price(attempt).usd_per_hour


def _is_live(job: Job) -> bool:
    attempt = job.attempt
    if attempt is None or job.state.is_final or attempt.stop is not None:
        return False
    return attempt.placement.state is not PlacementState.CLOSED


def is_paying(job: Job) -> bool:
    """Return whether a job has a machine, or a task elsewhere."""
    return bool(claimed_machines(job)) or _is_live(job)


def reserve(
    job: Job, budgets: Iterable[Budget], per_hour: float, now: datetime
) -> tuple[Reserved, tuple[BudgetChange, ...]]:
    """Return what a job has reserved with a lease at this price, and how its budgets change.

    What ended before its first reservation of a budget is in that already (the sums of costs, when it was set).
    """
    month = month_of(now)
    wanted = cost_so_far(job, now)[0] + per_hour * (LEASE / _HOUR)
    held = dict(job.reserved.usd)
    changes = []
    for budget in budgets:
        usd = wanted - held.get(budget.scope, settled_usd(job))
        if abs(usd) > _LEAST_USD or budget.scope not in held:
            held[budget.scope] = wanted
            changes.append(BudgetChange(budget.scope, month, usd, (budget.monthly_usd, budget.total_usd)))
    return Reserved(held, month), tuple(changes)


def settled_usd(job: Job) -> float:
    """Return what is in the sums of costs of a job: its tasks elsewhere that ended, and its machines that are gone."""
    return job.charges.machines_usd + max(job.totals.cost_usd - job.charges.own_tasks_usd, 0.0)


def settle(job: Job, now: datetime) -> tuple[Reserved, tuple[BudgetChange, ...]]:
    """Return what a job has reserved: what it has cost, or more if it pays on; and how its budgets change.

    A machine that it left may cost more than it knew: EC2 had not ended it.
    """
    cost = cost_so_far(job, now)[0]
    reserved = job.reserved
    least = {scope: usd if is_paying(job) else 0.0 for scope, usd in reserved.usd.items()}
    changes = tuple(
        BudgetChange(scope, reserved.month if cost < usd else month_of(now), cost - usd)
        for scope, usd in reserved.usd.items()
        if abs(max(cost, least[scope]) - usd) > _LEAST_USD
    )
    if not changes:
        return reserved, ()
    return replace(reserved, usd={scope: max(cost, usd) for scope, usd in least.items()}), changes


def left_of_lease(job: Job, scopes: Iterable[str], now: datetime) -> timedelta:
    """Return for how long what a running job has reserved of its budgets lasts: nothing of one that was set later."""
    held = [job.reserved.usd.get(each, 0.0) for each in scopes]
    per_hour = usd_per_hour(job)
    if not held or not per_hour:
        return timedelta.max
    return _HOUR * ((min(held) - cost_so_far(job, now)[0]) / per_hour)


def find_exceeded(budgets: Iterable[Budget], changes: Iterable[BudgetChange]) -> Budget | None:
    """Return the first budget that has no room for its change; None if all have."""
    known = {each.scope: each for each in budgets}
    short = (known[each.scope] for each in changes if each.usd > known[each.scope].left(each.month) + _LEAST_USD)
    return next(short, None)


def describe_exceeded(budget: Budget, per_hour: float, now: datetime) -> str:
    """Return which budget has no room for another hour, and who can change that."""
    month = month_of(now)
    used = budget.used(month)
    period, (reserved, limit) = min(used.items(), key=lambda each: each[1][1] - each[1][0])
    when = f"for {period}" if period else "in all"
    option = "--monthly" if period else "--total"
    return (
        f"the budget of {budget.scope} {when} is ${limit:,.2f}, of which ${reserved:,.2f} is spent or reserved, and an "
        f"hour costs ${per_hour:,.2f}; an operator may raise it: relaunch budgets set {budget.scope} {option} USD"
    )


@dataclass(frozen=True, slots=True)
class BudgetReport:
    """So many percent of a budget are spent or reserved, 80 or 100, in a month, or in all if `period` is empty.

    100: it has no room for another hour of a job.
    """

    scope: str
    period: str
    percent: int
    reserved_usd: float
    limit_usd: float
    at: datetime


def due_reports(budget: Budget, now: datetime, *, is_exceeded: bool = False) -> tuple[BudgetReport, ...]:
    """Return what is to be reported of a budget and was not yet; `is_exceeded`: a job was refused for it."""
    limits = budget.used(month_of(now))
    # The one that has least left refused it.
    exceeded = min(limits, key=lambda period: limits[period][1] - limits[period][0], default=None)
    found = []
    for period, (reserved, limit) in limits.items():
        is_full = reserved >= limit - _LEAST_USD or (is_exceeded and period == exceeded)
        reached = _WARNED_PERCENT if 100 * reserved >= _WARNED_PERCENT * limit else 0
        percent = 100 if is_full else reached
        if percent > budget.reported.get(period, 0):
            found.append(BudgetReport(budget.scope, period, percent, reserved, limit, now))
    return tuple(found)
