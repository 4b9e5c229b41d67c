"""The behaviour of BudgetStore, and of jobs that reserve of budgets: the fakes and the adapters."""

import sys
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import pytest

from contracts.conftest import Stores, create
from fakes.aws import create_jobs_table, make_client
from fakes.builders import NOW, make_job
from relaunch.adapters.aws.dynamodb.stores import DynamoDbStores
from relaunch.core.jobs.budgets import Budget, BudgetChange, BudgetReport
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import Reserved
from relaunch.core.lifecycle.decision import Decision
from relaunch.ports import BudgetExceededError, BudgetStore, JobStore, StaleWriteError, TransientError
from relaunch_local.dynamodb.transactions import keep_apart
from relaunch_local.in_memory.stores import InMemoryStores

MARCH = "2026-03"
APRIL = "2026-04"
STACK = Budget("stack")


@pytest.fixture
def store(stores: Stores) -> BudgetStore:
    return stores.budgets


@pytest.fixture
def jobs(stores: Stores) -> JobStore:
    return stores.jobs


def reserving(job: Job, *changes: BudgetChange) -> Decision:
    reserved = Reserved({each.scope: 1.25 for each in changes}, MARCH)
    return Decision(replace(job, reserved=reserved), budgets=changes)


def used(store: BudgetStore) -> Sequence[tuple[str, float, dict[str, float]]]:
    return [(each.scope, each.reserved_usd, dict(each.reserved_in)) for each in store.load_budgets()]


def test_a_new_budget_begins_with_what_was_spent_and_keeps_what_it_counts(store: BudgetStore) -> None:
    assert store.load_budgets() == []

    assert store.set_budget(STACK, 500.0, None, {"2026-02": 1.5, MARCH: 2.0})
    assert store.set_budget(Budget("definition/resnet"), None, 0.0, {})
    assert store.set_budget(replace(STACK, monthly_usd=500.0), None, 1000.0, {MARCH: 99.0})

    assert store.load_budgets() == [
        Budget("definition/resnet", None, 0.0),
        Budget("stack", None, 1000.0, 3.5, {"2026-02": 1.5, MARCH: 2.0}),
    ]
    assert store.set_budget(replace(STACK, total_usd=1000.0), None, None, {})
    assert store.load_budgets()[1] == Budget("stack", None, None, 3.5, {"2026-02": 1.5, MARCH: 2.0})


@pytest.mark.parametrize(
    "read", [Budget("stack"), Budget("stack", 5.0), Budget("stack", 5.0, 7.0), Budget("stack", 0.1)]
)
def test_limits_that_somebody_else_has_set_meanwhile_are_kept(store: BudgetStore, read: Budget) -> None:
    assert store.set_budget(STACK, 0.1, 7.0, {})

    assert not store.set_budget(read, 9.0, 9.0, {MARCH: 1.0})
    assert store.load_budgets() == [Budget("stack", 0.1, 7.0)]


def test_a_job_reserves_in_the_transaction_that_saves_it_and_keeps_that(store: BudgetStore, jobs: JobStore) -> None:
    store.set_budget(STACK, 2.0, 3.0, {MARCH: 0.5})
    job = create(jobs, make_job())
    takes = BudgetChange("stack", MARCH, 1.25, (2.0, 3.0))

    saved = jobs.save_job(reserving(job, takes, replace(takes, scope="definition/resnet", limits=(None, None))))

    assert used(store) == [("definition/resnet", 1.25, {MARCH: 1.25}), ("stack", 1.75, {MARCH: 1.75})]
    loaded = jobs.load_job(job.job_id)
    assert loaded is not None
    assert loaded.reserved == saved.reserved
    with pytest.raises(StaleWriteError):
        jobs.save_job(reserving(job, takes))
    assert used(store)[1] == ("stack", 1.75, {MARCH: 1.75})


@pytest.mark.parametrize(
    ("month", "usd", "limits", "is_exceeded"),
    [
        (MARCH, 0.25, (2.0, None), False),
        (MARCH, 0.26, (2.0, None), True),
        (APRIL, 2.0, (2.0, None), False),
        (APRIL, 2.01, (2.0, None), True),
        (APRIL, 1.25, (2.0, 3.0), False),
        (APRIL, 1.26, (2.0, 3.0), True),
        (MARCH, 5.0, None, False),
        (MARCH, -0.5, (0.0, 0.0), False),
    ],
)
def test_what_exceeds_a_limit_is_not_saved_what_was_paid_is(
    store: BudgetStore,
    jobs: JobStore,
    month: str,
    usd: float,
    limits: tuple[float | None, float | None] | None,
    is_exceeded: bool,
) -> None:
    store.set_budget(STACK, 2.0, 3.0, {MARCH: 1.75})
    job = create(jobs, make_job())
    change = BudgetChange("stack", month, usd, limits)
    other = BudgetChange("definition/resnet", month, 1.0, (None, None))

    if not is_exceeded:
        jobs.save_job(reserving(job, other, change))
        assert used(store)[1][1] == pytest.approx(1.75 + usd)
        return
    with pytest.raises(BudgetExceededError) as error:
        jobs.save_job(reserving(job, other, change))
    assert error.value.scope == "stack"
    assert used(store) == [("stack", 1.75, {MARCH: 1.75})]
    assert jobs.load_job(job.job_id) == job


def test_changes_of_one_budget_by_one_decision_are_one(store: BudgetStore, jobs: JobStore) -> None:
    job = create(jobs, make_job())
    given_back = BudgetChange("stack", MARCH, -0.25)

    jobs.save_job(reserving(job, BudgetChange("stack", APRIL, 1.0, (2.0, None)), given_back))

    assert used(store) == [("stack", 0.75, {MARCH: -0.25, APRIL: 1.0})]


def reported(period: str, percent: int, limit_usd: float) -> BudgetReport:
    return BudgetReport("stack", period, percent, 1.0, limit_usd, NOW)


def test_each_percentage_is_reported_once_for_each_month_and_in_all(store: BudgetStore) -> None:
    store.set_budget(STACK, 2.0, 3.0, {})

    reports = [("", 80, 3.0), (MARCH, 80, 2.0), (MARCH, 80, 2.0), (MARCH, 100, 2.0), (MARCH, 80, 2.0), (APRIL, 80, 2.0)]
    assert [store.save_report(reported(*each)) for each in reports] == [True, True, False, True, False, True]
    assert not store.save_report(reported("", 100, 2.5)), "it was raised meanwhile"
    assert store.load_budgets()[0].reported == {"": 80, MARCH: 100, APRIL: 80}


def test_what_was_reported_of_a_limit_that_is_raised_is_forgotten(store: BudgetStore) -> None:
    store.set_budget(STACK, 2.0, 3.0, {MARCH: 1.0, APRIL: 1.0})
    for each in (reported("", 80, 3.0), reported(MARCH, 100, 2.0), reported(APRIL, 100, 2.0)):
        assert store.save_report(each)

    store.set_budget(store.load_budgets()[0], 2.5, 3.0, {})

    assert store.load_budgets()[0].reported == {"": 80, MARCH: 100}, "of a month that is over nothing is reported"
    store.set_budget(store.load_budgets()[0], 1.5, None, {})
    assert store.load_budgets()[0].reported == {MARCH: 100}


WORKERS = 32


@pytest.fixture(params=["in memory", "DynamoDB"])
def crowd(request: pytest.FixtureRequest) -> tuple[Stores, int, int]:
    """Return stores that many threads use at once, how many jobs reserve, and for how many of them there is room."""
    if request.param == "in memory":
        return InMemoryStores(), 1_000, 33
    request.getfixturevalue("dynamodb")
    client = make_client("dynamodb")
    keep_apart(client)
    create_jobs_table(client, table_name := f"jobs-{uuid.uuid4()}")
    # moto copies the table for each transaction.
    return DynamoDbStores(client, table_name), 20, 6


def save_until_answered(jobs: JobStore, decision: Decision) -> bool:
    """Return whether there was room; what met others too often is delivered again, as by SQS."""
    while True:
        try:
            jobs.save_job(decision)
        except BudgetExceededError:
            return False
        except TransientError:
            continue
        return True


def test_of_a_thousand_jobs_that_reserve_at_once_as_many_succeed_as_the_budget_has_room_for(
    crowd: tuple[Stores, int, int],
) -> None:
    stores, count, room = crowd
    limit = 0.3 * room + 0.1
    stores.budgets.set_budget(STACK, limit, None, {})
    # All have read the budget before any of them reserved: what they know is that there is room.
    change = BudgetChange("stack", MARCH, 0.3, (limit, None))
    decisions = [reserving(create(stores.jobs, make_job(f"resnet-{number}")), change) for number in range(count)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)

    try:
        with ThreadPoolExecutor(WORKERS) as workers:
            saved = list(workers.map(partial(save_until_answered, stores.jobs), decisions))
    finally:
        sys.setswitchinterval(interval)

    spent = pytest.approx(0.3 * room)
    assert saved.count(True) == room
    assert used(stores.budgets) == [("stack", spent, {MARCH: spent})]
    reserved = [job.reserved.usd for each in decisions if (job := stores.jobs.load_job(each.job.job_id))]
    assert sum(bool(usd) for usd in reserved) == room, "whoever reserved has it, and nobody else"
