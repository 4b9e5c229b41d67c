"""Checks of budgets, in one of ten seeds: what they let through, whom they keep waiting, and what they have counted.

Somebody sets small ones before the first job, and raises them after some hours. What was spent is taken from EC2's bill
(checks.costs), and not from what was reserved.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from relaunch.core.jobs.budgets import Budget
from relaunch.core.jobs.cost import cost_so_far
from relaunch.core.jobs.job import Job, claimed_machines
from relaunch.core.jobs.state import WaitReason
from relaunch.core.machines.machine import Machine, MachineState
from relaunch.ports import BudgetStore
from relaunch_local.ecs import Clock
from relaunch_local.simulation.checks.costs import Costs
from relaunch_local.simulation.checks.machines import UNNEEDED_GRACE

_ONE_IN = 10
_DRAWN = 6
_RAISED_USD = 1e6
_TOLERANCE_USD = 0.001
# What a machine cost that a job left before it heard of the launch is reserved from a cent on.
_UNTOLD_USD = 0.01
_PERCENTS = (80, 100)
_LOOKED_EVERY_SECONDS = 300.0
_LOOKED_BACK = timedelta(hours=2)
_WARM_AT_MOST = timedelta(minutes=15)
# What a lease lasts for, and a stop that ECS does not confirm.
_STOPPED_WITHIN = timedelta(minutes=75)


@dataclass(slots=True)
class BudgetChecks:
    """Sets the budgets of a seed, and watches what comes of them."""

    _seed: int
    _clock: Clock
    _check: Callable[[str, bool, str], None]
    _costs: Costs
    _jobs: Mapping[str, Job]
    _machines: Mapping[str, Machine]
    """The machines as they were saved last."""
    _terminations: Mapping[str, datetime]
    """By instance: when the application last asked EC2 to terminate it."""
    _store: Callable[[], BudgetStore]
    _outage_time: Callable[[datetime, datetime], timedelta]
    _tasks: Mapping[str, Mapping[str, Mapping[str, object]]]
    """By job and task: ECS's latest state."""
    _limits: dict[str, float] = field(default_factory=dict)
    """By scope, in USD."""
    _left_at: dict[str, datetime] = field(default_factory=dict)
    """By machine that no job claims: since when."""
    _left_for: dict[str, timedelta] = field(default_factory=dict)
    """By machine: for how long no job claimed it between two that did."""
    _over_since: dict[str, datetime] = field(default_factory=dict)
    """By scope: since when more is spent than its limit."""
    raised_at: datetime | None = None
    """When there is room for everything again; None in a seed without budgets."""

    def begin(self, definitions: Sequence[str]) -> None:
        """Set the budgets, if the seed has any."""
        if self._seed % _ONE_IN != _DRAWN:
            return
        drawn = random.Random(f"budgets of {self._seed}")  # noqa: S311 - no secret
        scopes = drawn.sample(
            ["stack", *(f"definition/{name}" for name in definitions)], k=min(2, 1 + len(definitions))
        )
        self._limits = {scope: drawn.uniform(0.5, 6.0) for scope in scopes}
        for scope, usd in self._limits.items():
            monthly, total = (usd, None) if drawn.random() < 1 / 2 else (None, usd)
            self._store().set_budget(Budget(scope), monthly, total, {})
        hours = timedelta(hours=drawn.uniform(2, 8))
        self.raised_at = self._clock.now() + hours
        self._clock.call_later(hours.total_seconds(), self._raise)
        self._clock.call_later(_LOOKED_EVERY_SECONDS, self._look)

    def _look(self) -> None:
        self._clock.call_later(_LOOKED_EVERY_SECONDS, self._look)
        self._check_reserved()
        self._check_stopped()

    def _check_reserved(self) -> None:
        """Check that budgets have reserved what their jobs have cost, but for what nobody reserves."""
        now = self._clock.now()
        if self._outage_time(now - _LOOKED_BACK, now) > timedelta(0):
            # Nobody renews what cannot be read.
            return
        least_spent = self._costs.least_spent()
        unneeded = self._left_by_their_jobs()
        for budget in self._store().load_budgets():
            if budget.scope in self._limits:
                spent = self._spent_of(budget.scope, least_spent)
                is_reserved = spent <= budget.reserved_usd + unneeded + _TOLERANCE_USD
                message = f"{budget.scope}: {spent:.4f} USD are spent, and {budget.reserved_usd:.4f} reserved"
                self._check("what jobs have cost is reserved", is_reserved, message)

    def _check_stopped(self) -> None:
        """Check that nothing trains on for long once a budget is used up, where EC2 tells what it costs."""
        now = self._clock.now()
        least_spent = self._costs.least_spent()
        unneeded = self._left_by_their_jobs()
        for scope, limit in self._limits.items():
            is_room = self._spent_of(scope, least_spent) <= limit + unneeded
            if is_room or self._outage_time(now - _LOOKED_BACK, now):
                self._over_since.pop(scope, None)
            elif now - self._over_since.setdefault(scope, now) > _STOPPED_WITHIN:
                jobs = (job_id for job_id, job in self._jobs.items() if _is_of(scope, job))
                running = [arn[-6:] for job_id in jobs for arn in self._running(job_id)]
                self._check("nothing trains on above a budget", not running, f"{scope}: {', '.join(running)}")

    def _running(self, job_id: str) -> Iterator[str]:
        """Yield the tasks of a job that run, that nobody has asked to stop, and whose price could be read."""
        for arn, task in self._tasks[job_id].items():
            if task.get("lastStatus") == task.get("desiredStatus") == "RUNNING" and self._costs.is_paid(arn):
                yield arn

    def _raise(self) -> None:
        for before in self._store().load_budgets():
            if before.scope in self._limits:
                self._store().set_budget(before, _RAISED_USD, _RAISED_USD, {})
                self._limits[before.scope] = _RAISED_USD

    def machine_saved(self, before: Machine | None, machine: Machine) -> None:
        """Check that a machine is requested only while what was spent leaves room for it."""
        if not self._limits:
            return
        if machine.claims:
            if (left_at := self._left_at.pop(machine.machine_id, None)) is not None:
                before_that = self._left_for.get(machine.machine_id, timedelta(0))
                left = min(self._clock.now() - left_at, _WARM_AT_MOST + UNNEEDED_GRACE)
                self._left_for[machine.machine_id] = before_that + left
        else:
            self._left_at.setdefault(machine.machine_id, self._clock.now())
        if before is not None:
            return
        self._check_reserved()
        (claim,) = machine.claims
        least_spent = self._costs.least_spent()
        unneeded = self._left_by_their_jobs()
        for scope, limit in self._limits.items():
            if claim.job_id in self._jobs and _is_of(scope, self._jobs[claim.job_id]):
                spent = self._spent_of(scope, least_spent)
                needed = spent + machine.usd_per_hour + machine.beside_usd_per_hour
                message = f"{machine.machine_id}: {scope} has {spent:.4f} of {limit:.4f} USD spent, and an hour is more"
                is_room = needed <= limit + unneeded + _TOLERANCE_USD
                self._check("nothing is bought above a budget", is_room, message)

    def _spent_of(self, scope: str, spent: Mapping[str, float]) -> float:
        return sum(usd for job_id, usd in spent.items() if job_id in self._jobs and _is_of(scope, self._jobs[job_id]))

    def _left_by_their_jobs(self) -> float:
        """Return what machines cost while no job claims them, until they are charged: nobody reserves that.

        It is no more than what they cost while they may be kept that nobody needs (checks.machines), and then for as
        long as EC2 does not end them though it says so; and what their price has risen by, which the charge tells.
        """
        return sum(map(self._cost_while_left, {*self._left_at, *self._left_for}))

    def _cost_while_left(self, machine_id: str) -> float:
        machine = self._machines[machine_id]
        if all(each.charges.has_charged(machine_id) for each in self._jobs.values() if _has_held(each, machine)):
            return 0.0
        is_gone = machine.state is MachineState.GONE and machine.state_since is not None
        until = machine.state_since if is_gone and machine.state_since is not None else self._clock.now()
        left = max(until - self._left_at.get(machine_id, until), timedelta(0))
        if machine.instance_id not in self._terminations:
            left = min(left, _WARM_AT_MOST + UNNEEDED_GRACE)
        hours = (left + self._left_for.get(machine_id, timedelta(0))) / timedelta(hours=1)
        usd = hours * (machine.usd_per_hour + machine.beside_usd_per_hour)
        return usd + self._costs.rise_of(machine) + _UNTOLD_USD

    def job_saved(self, before: Job | None, job: Job) -> None:
        """Check that a job waits for a budget that it has, and no longer than until there is room in it.

        What a machine has cost that a job gives up is still reserved then.
        """
        if self._limits and before is not None:
            self._note_left(job, claimed_machines(before) - claimed_machines(job))
            if before.machine_id and not job.machine_id:
                self._check_reserved()
        is_new = before is None or before.waiting is None or before.waiting.reason is not WaitReason.BUDGET
        if not is_new or job.waiting is None or job.waiting.reason is not WaitReason.BUDGET:
            return
        named = {scope for scope in self._limits if _is_of(scope, job) and f"the budget of {scope} " in job.reason}
        self._check("a job waits for a budget that it has", bool(named), f"{job.job_id}: {job.reason}")
        is_early = self.raised_at is not None and self._clock.now() <= self.raised_at + timedelta(minutes=2)
        self._check("a job waits for a budget only until it is raised", is_early, job.job_id)

    def _note_left(self, job: Job, left: Iterable[str]) -> None:
        """Note which machines nobody needs from now on, though they learn of it later."""
        for machine_id in left:
            machine = self._machines.get(machine_id)
            if machine is not None and {each.job_id for each in machine.claims} <= {job.job_id}:
                self._left_at.setdefault(machine_id, self._clock.now())

    def event_taken(self, report: Mapping[str, Any]) -> None:
        """Check an event that EventBridge takes: it names a budget that is set, and how much of it is used."""
        is_right = report["scope"] in self._limits and report["percent"] in _PERCENTS
        self._check("an event of a budget says what is used of it", is_right, str(report))

    def check_end(self) -> None:
        """Check that budgets have counted what their jobs cost, once nothing is there any more."""
        now = self._clock.now()
        for budget in self._store().load_budgets() if self._limits else ():
            cost = sum(cost_so_far(job, now)[0] for job in self._jobs.values() if _is_of(budget.scope, job))
            self._check_counted(budget, cost)

    def _check_counted(self, budget: Budget, cost: float) -> None:
        for counted in (budget.reserved_usd, sum(budget.reserved_in.values())):
            message = f"{budget.scope}: {counted:.4f} USD, not {cost:.4f}"
            self._check("a budget has what its jobs cost", abs(counted - cost) <= _TOLERANCE_USD, message)


def _has_held(job: Job, machine: Machine) -> bool:
    return any(job.job_id in each.shares for each in machine.holdings or ())


def _is_of(scope: str, job: Job) -> bool:
    return scope in ("stack", f"definition/{job.definition.name}")
