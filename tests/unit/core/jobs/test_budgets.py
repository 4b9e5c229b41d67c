"""What a job reserves of its budgets, what is left of them, and what is reported."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from fakes.builders import NOW, make_job, make_running_job
from relaunch.core.jobs.budgets import (
    Budget,
    BudgetChange,
    describe_exceeded,
    due_reports,
    find_exceeded,
    is_paying,
    left_of_lease,
    month_of,
    raised_periods,
    reserve,
    scopes_of,
    settle,
    settled_usd,
    usd_per_hour,
)
from relaunch.core.jobs.state import JobState, OpenCharge, Reserved

HOUR = timedelta(hours=1)
MONTH = "2026-03"
SPENT = make_job(cost_usd=3.0)
"""Its tasks elsewhere cost $3; nothing of it runs."""
RUNNING = make_running_job()
"""Its task runs elsewhere since NOW, at $0.4 an hour."""
OPEN = OpenCharge("m-1", NOW, 1.0, 1.0, 2.0, 2.0, 2.0)


def test_a_job_belongs_to_the_stack_its_definition_its_repository_and_who_asked_for_it() -> None:
    pushed = replace(SPENT, trigger=replace(SPENT.trigger, environment={"RELAUNCH_GIT_REPOSITORY": "acme/vision"}))

    assert scopes_of(pushed) == ("stack", "definition/resnet", "repository/acme/vision", "caller/github push")
    assert scopes_of(SPENT) == ("stack", "definition/resnet", "caller/github push")


def test_months_are_those_of_utc() -> None:
    assert month_of(datetime.fromisoformat("2026-04-01T01:30:00+02:00")) == MONTH


@pytest.mark.parametrize(
    ("budget", "left"),
    [
        (Budget("stack"), float("inf")),
        (Budget("stack", 10.0, None, 50.0, {MONTH: 4.0, "2026-02": 46.0}), 6.0),
        (Budget("stack", 10.0), 10.0),
        (Budget("stack", None, 51.0, 50.0), 1.0),
        (Budget("stack", 10.0, 51.0, 50.0, {MONTH: 4.0}), 1.0),
        (Budget("stack", 10.0, 70.0, 50.0, {MONTH: 14.0}), -4.0),
    ],
)
def test_what_is_left_is_the_least_of_both_limits(budget: Budget, left: float) -> None:
    assert budget.left(MONTH) == left


def test_a_job_pays_by_the_hour_for_its_machines_and_its_task_elsewhere() -> None:
    charges = replace(RUNNING.charges, open=(OPEN, replace(OPEN, machine_id="m-2", until=NOW)))
    on_machine = replace(RUNNING.current_attempt.placement, machine_id="m-1")
    handed_over = replace(RUNNING, charges=charges)

    assert usd_per_hour(SPENT) == 0
    assert usd_per_hour(RUNNING) == 0.4
    assert usd_per_hour(handed_over) == 2.4
    own = replace(handed_over, attempt=replace(RUNNING.current_attempt, placement=on_machine))
    assert usd_per_hour(own) == 2.0
    assert [is_paying(each) for each in (SPENT, RUNNING, replace(SPENT, machine_id="m-1"))] == [False, True, True]
    assert not is_paying(replace(RUNNING, state=JobState.FAILED))


def test_a_launch_reserves_what_the_job_has_cost_and_an_hour() -> None:
    budgets = (Budget("stack", 100.0, 200.0), Budget("definition/resnet"))

    # What ended before is in the sums that each of the budgets began with.
    reserved, changes = reserve(SPENT, budgets, 2.0, NOW)

    assert reserved == Reserved({"stack": 5.0, "definition/resnet": 5.0}, MONTH)
    assert changes == (
        BudgetChange("stack", MONTH, 2.0, (100.0, 200.0)),
        BudgetChange("definition/resnet", MONTH, 2.0, (None, None)),
    )
    again = reserve(replace(SPENT, reserved=reserved), budgets, 2.0, NOW)
    assert again == (reserved, ())
    dearer = reserve(replace(SPENT, reserved=reserved), budgets[:1], 3.0, NOW)
    assert dearer == (Reserved({"stack": 6.0, "definition/resnet": 5.0}, MONTH), (replace(changes[0], usd=1.0),))


def test_what_is_in_the_sums_is_what_ended() -> None:
    charges = replace(SPENT.charges, machines_usd=7.0, own_tasks_usd=2.0, open=(OPEN,))

    assert settled_usd(replace(SPENT, charges=charges)) == 8.0
    assert settled_usd(replace(SPENT, charges=replace(charges, own_tasks_usd=4.0))) == 7.0


def test_what_was_not_needed_is_given_back_to_the_month_in_which_it_was_reserved() -> None:
    next_month = NOW + timedelta(days=30)
    job = replace(SPENT, reserved=Reserved({"stack": 5.0, "definition/resnet": 2.5}, MONTH))

    reserved, changes = settle(job, next_month)

    assert reserved == Reserved({"stack": 3.0, "definition/resnet": 3.0}, MONTH)
    assert changes == (
        BudgetChange("stack", MONTH, -2.0),
        BudgetChange("definition/resnet", "2026-04", 0.5),
    )
    assert settle(replace(job, reserved=reserved), next_month) == (reserved, ())


def test_a_lease_lasts_as_long_as_the_least_of_what_is_reserved() -> None:
    budgets = (Budget("stack"), Budget("definition/resnet"))
    job = replace(RUNNING, reserved=Reserved({"stack": 0.4, "definition/resnet": 0.2, "caller/gone": 0.0}, MONTH))

    scopes = [each.scope for each in budgets]
    assert left_of_lease(job, scopes, NOW) == HOUR / 2
    assert left_of_lease(job, scopes, NOW + HOUR) == -HOUR / 2
    assert left_of_lease(job, scopes[:1], NOW) == HOUR
    assert left_of_lease(RUNNING, scopes, NOW) == timedelta(0), "a budget that was set since"
    assert left_of_lease(job, (), NOW) == timedelta.max
    assert left_of_lease(SPENT, scopes, NOW) == timedelta.max, "it costs nothing"


def test_the_first_budget_without_room_is_found() -> None:
    budgets = (Budget("stack", 10.0, None, 0.0, {MONTH: 8.0}), Budget("definition/resnet", 1.0))
    changes = (
        BudgetChange("stack", MONTH, 2.0, (10.0, None)),
        BudgetChange("definition/resnet", MONTH, 2.0, (1.0, None)),
    )

    assert find_exceeded(budgets, changes) == budgets[1]
    assert find_exceeded(budgets, (replace(changes[0], usd=2.1), *changes[1:])) == budgets[0]
    assert find_exceeded(budgets, changes[:1]) is None


def test_who_waits_for_a_budget_is_shown_what_it_is_and_how_to_raise_it() -> None:
    monthly = Budget("stack", 1000.0, 5000.0, 900.0, {MONTH: 900.0})

    assert describe_exceeded(monthly, 120.0, NOW) == (
        "the budget of stack for 2026-03 is $1,000.00, of which $900.00 is spent or reserved, and an hour costs "
        "$120.00; an operator may raise it: relaunch budgets set stack --monthly USD"
    )
    in_all = Budget("definition/resnet", 1000.0, 5000.0, 4950.0, {MONTH: 900.0})
    assert describe_exceeded(in_all, 120.0, NOW).startswith("the budget of definition/resnet in all is $5,000.00")
    assert describe_exceeded(in_all, 120.0, NOW).endswith("set definition/resnet --total USD")


@pytest.mark.parametrize(
    ("used", "reported", "is_exceeded", "percents"),
    [
        ((7.9, 79.0), {}, False, {}),
        ((8.0, 79.0), {}, False, {MONTH: 80}),
        ((8.0, 80.0), {}, False, {MONTH: 80, "": 80}),
        ((8.0, 80.0), {MONTH: 80}, False, {"": 80}),
        ((10.0, 79.0), {MONTH: 80}, False, {MONTH: 100}),
        ((10.0, 79.0), {MONTH: 100}, False, {}),
        ((9.0, 79.0), {MONTH: 80}, True, {MONTH: 100}),
        ((1.0, 99.5), {}, True, {"": 100}),
    ],
)
def test_what_is_reported_of_a_budget(
    used: tuple[float, float], reported: dict[str, int], is_exceeded: bool, percents: dict[str, int]
) -> None:
    budget = Budget("stack", 10.0, 100.0, used[1], {MONTH: used[0]}, reported)

    reports = due_reports(budget, NOW, is_exceeded=is_exceeded)

    assert {each.period: each.percent for each in reports} == percents
    assert all(each.limit_usd == (10.0 if each.period else 100.0) for each in reports)
    assert due_reports(Budget("stack"), NOW, is_exceeded=True) == ()


@pytest.mark.parametrize(
    ("limits", "forgotten"),
    [
        ((10.0, 20.0), ()),
        ((9.0, 19.0), ()),
        ((11.0, 20.0), (MONTH,)),
        ((10.0, 21.0), ("",)),
        ((None, None), ("", MONTH)),
    ],
)
def test_what_was_reported_of_a_limit_that_is_raised_is_to_be_reported_again(
    limits: tuple[float | None, float | None], forgotten: tuple[str, ...]
) -> None:
    budget = Budget("stack", 10.0, 20.0, 12.0, {"2026-02": 2.0, MONTH: 10.0}, {"": 80, "2026-02": 80})

    assert raised_periods(budget, *limits) == forgotten
    assert raised_periods(Budget("stack"), *limits) == (), "a limit that is new was never reported"
    assert raised_periods(Budget("stack", 1.0), None, None) == (), "nothing was reserved"
