"""Reserve of a job's budgets what it can cost, renew that while it runs, and report budgets that are used up."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from relaunch.core.jobs.budgets import Budget, describe_exceeded, due_reports, scopes_of
from relaunch.core.jobs.job import Job, claimed_machines
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.charging import with_machines
from relaunch.core.lifecycle.events import BudgetDenied, BudgetsRead, MachineClaimed, MoveDeclined, OfferingChosen
from relaunch.core.lifecycle.leases import is_lease_due, price_of
from relaunch.core.lifecycle.moves import may_move
from relaunch.ports import BudgetExceededError, LaunchDependencies, PortError, ReconcileDependencies
from relaunch.usecases.advance_job import advance_job, apply_event


def apply_with_budgets(job: Job, event: MachineClaimed | OfferingChosen, deps: LaunchDependencies) -> Job:
    """Apply the launch of a job, with what it reserves of its budgets; without room in one of them it waits.

    A task that runs goes on where it is; if it has to leave its machine it is stopped all the same.

    Raises:
        StaleWriteError: the job was changed since it was loaded.
    """
    event = replace(event, budgets=_of_job(job, deps.budgets.load_budgets()))
    try:
        return apply_event(job, event, deps)
    except BudgetExceededError as error:
        reason = _reason(job, event, error.scope, deps)
    if job.state is JobState.WAITING:
        return apply_event(job, BudgetDenied(reason), deps)
    if may_move(job):
        return apply_event(job, MoveDeclined(f"leaving on-demand for spot pays, but {reason}", None), deps)
    deps.log.decided("no next machine", job_id=job.job_id, reason=reason)
    return job


def _of_job(job: Job, budgets: Iterable[Budget]) -> tuple[Budget, ...]:
    scopes = scopes_of(job)
    return tuple(each for each in budgets if each.scope in scopes)


def _reason(job: Job, event: MachineClaimed | OfferingChosen, scope: str, deps: LaunchDependencies) -> str:
    """Return why the budget of a scope has no room, by what it has now, and report that it is used up."""
    now = deps.clock.now()
    known = (*deps.budgets.load_budgets(), *event.budgets)
    budget = next(each for each in known if each.scope == scope)
    _report(budget, deps, is_exceeded=True)
    if isinstance(event, MachineClaimed):
        claimed = sum(price_of(each.machine, job.job_id) for each in event.decisions)
        return describe_exceeded(budget, claimed, now)
    return describe_exceeded(budget, event.offering.expected_usd_per_hour or 0.0, now)


def renew_leases(jobs: Sequence[Job], deps: ReconcileDependencies, claiming: Iterable[str] = ()) -> int:
    """Renew what jobs that were looked at reserve, and report what is used up; return how many were due.

    `claiming` are the jobs whose machines were looked at. One whose launch is repeated is not looked at itself.
    """
    budgets = deps.budgets.load_budgets()
    # What EventBridge does not take now is tried a minute later: each try may take seconds.
    all(_report(budget, deps) for budget in budgets)
    due = 0
    known = {job.job_id: job for job in jobs}
    for job_id in dict.fromkeys((*known, *claiming)) if budgets else ():
        try:
            job = known.get(job_id) or deps.jobs.load_job(job_id)
            if job is None:
                continue
            # Its share of a machine grows when others leave that, of which it hears nothing.
            machines = filter(None, map(deps.machines.load_machine, sorted(claimed_machines(job))))
            event = BudgetsRead(_of_job(job, budgets), tuple(machines))
            if _is_due(job, event, deps):
                due += 1
                _renew(job_id, event, deps)
        except BudgetExceededError:
            # Others reserved what was left: the next look sees that.
            budgets = deps.budgets.load_budgets()
        except PortError as error:
            deps.log.decided("postponed", job_id=job_id, reason=f"renewing what it reserved: {error}")
    return due


def _renew(job_id: str, event: BudgetsRead, deps: ReconcileDependencies) -> None:
    advance_job(job_id, lambda job: event if _is_due(job, event, deps) else None, deps)


def _is_due(job: Job, event: BudgetsRead, deps: ReconcileDependencies) -> bool:
    now = deps.clock.now()
    return is_lease_due(with_machines(job, event.machines, now), event.budgets, now)


def _report(budget: Budget, deps: LaunchDependencies | ReconcileDependencies, *, is_exceeded: bool = False) -> bool:
    """Send what is to be reported of a budget; return False if it was not taken, and a later call is to report it."""
    for report in due_reports(budget, deps.clock.now(), is_exceeded=is_exceeded):
        postponed = deps.job_events.send_budget(report)
        if postponed:
            deps.log.decided("budget not reported", scope=budget.scope, reason=postponed)
            return False
        if deps.budgets.save_report(report):
            deps.log.decided("budget reached", scope=budget.scope, reason=f"{report.percent} percent")
    return True
