import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fakes.aws import create_jobs_table
from fakes.builders import NOW
from relaunch.adapters.aws.dynamodb.commit_statuses import DynamoDbCommitStatuses
from relaunch.adapters.aws.dynamodb.table import JobsTable, key, text
from relaunch.core.notices.commit_status import CommitState, CommitStatus, ShownChange
from relaunch.core.notices.status_budget import StatusBudget
from relaunch.core.notices.status_report import StatusReport
from relaunch.ports import StaleWriteError
from relaunch.ports.commit_statuses import CommitStatusStore, StoredBudget, StoredShown
from relaunch_local.in_memory.commit_statuses import InMemoryCommitStatuses

STATUS = CommitStatus("acme/vision", "4b" * 20, CommitState.PENDING, "relaunch/resnet", "queued")


@pytest.fixture(params=["in memory", "DynamoDB"])
def make_store(request: pytest.FixtureRequest) -> Callable[[], CommitStatusStore]:
    """Return what makes a store of one table, as each function has its own."""
    if request.param == "in memory":
        store = InMemoryCommitStatuses()
        return lambda: store
    client = request.getfixturevalue("dynamodb")
    table_name = f"jobs-{uuid.uuid4()}"
    create_jobs_table(client, table_name)
    return lambda: DynamoDbCommitStatuses(JobsTable(client, table_name))


def test_a_budget_is_read_as_it_was_saved_last(make_store: Callable[[], CommitStatusStore]) -> None:
    store = make_store()
    first = store.load_budget()
    assert first == StoredBudget(StatusBudget())

    store.save_budget(replace(first, budget=first.budget.used(NOW)))
    second = make_store().load_budget()
    limited = second.budget.used(NOW + timedelta(minutes=3)).limited_at(NOW, NOW + timedelta(minutes=5))
    make_store().save_budget(replace(second, budget=limited))

    assert make_store().load_budget().budget == limited


def test_of_two_that_count_a_request_at_once_one_has_to_read_again(make_store: Callable[[], CommitStatusStore]) -> None:
    for _ in range(2):
        one = make_store()
        other = make_store()
        seen = one.load_budget()
        also_seen = other.load_budget()
        one.save_budget(replace(seen, budget=seen.budget.used(NOW)))

        with pytest.raises(StaleWriteError):
            other.save_budget(replace(also_seen, budget=also_seen.budget.used(NOW)))

    assert make_store().load_budget().budget.by_minute == ((int(NOW.timestamp()) // 60, 2),)


def test_what_a_context_shows_is_replaced_by_whom_knows_it(make_store: Callable[[], CommitStatusStore]) -> None:
    one = make_store()
    other = make_store()
    first = one.load_shown(STATUS)
    assert first == StoredShown()
    shown = StoredShown(ShownChange("resnet-1", NOW), first.version)
    one.save_shown(STATUS, shown)

    with pytest.raises(StaleWriteError):
        other.save_shown(STATUS, shown)
    assert other.load_shown(replace(STATUS, repository="Acme/Vision")).shown == shown.shown
    assert other.load_shown(replace(STATUS, context="relaunch/bert")).shown is None
    other.save_shown(STATUS, replace(other.load_shown(STATUS), shown=ShownChange("resnet-2", NOW)))

    with pytest.raises(StaleWriteError):
        one.save_shown(STATUS, replace(shown, version=1))


@pytest.mark.parametrize(
    "report",
    [
        StatusReport(),
        StatusReport(NOW, "acme/vision", NOW + timedelta(days=9)).with_problem("acme/speech", "HTTP 403 …", NOW),
    ],
)
def test_a_report_is_read_as_it_was_saved_last(
    make_store: Callable[[], CommitStatusStore], report: StatusReport
) -> None:
    store = make_store()
    assert store.load_report() == StatusReport()
    store.save_report(StatusReport(NOW - timedelta(hours=1)))
    with pytest.raises(StaleWriteError):
        store.save_report(StatusReport(NOW))

    store.save_report(replace(report, version=store.load_report().version))

    assert make_store().load_report() == report


def test_a_report_of_a_release_without_versions_is_replaced(dynamodb: Any) -> None:
    table_name = f"jobs-{uuid.uuid4()}"
    create_jobs_table(dynamodb, table_name)
    table = JobsTable(dynamodb, table_name)
    table.put(key("STATUSES", "REPORT") | {"body": text("{}")})
    store = DynamoDbCommitStatuses(table)

    store.save_report(replace(store.load_report(), taken_by="acme/vision"))

    assert (store.load_report().taken_by, store.load_report().version) == ("acme/vision", 1)
