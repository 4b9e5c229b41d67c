from datetime import timedelta

import pytest

from fakes.builders import NOW
from fakes.jobs_table import ObservedTable
from relaunch.adapters.aws.dynamodb.deliveries import DynamoDbDeliveries
from relaunch.core.triggers.failed_deliveries import SweepProgress
from relaunch.ports.deliveries import SweepReport

HOOK = "repos/acme/vision/hooks/42"


@pytest.fixture
def store(table: ObservedTable) -> DynamoDbDeliveries:
    return DynamoDbDeliveries(table.client, table.name)


@pytest.mark.parametrize("lost", [frozenset(), frozenset({"b", "a"})])
def test_a_progress_is_read_as_it_was_saved_last(store: DynamoDbDeliveries, lost: frozenset[str]) -> None:
    store.save_progress(HOOK, SweepProgress(NOW - timedelta(hours=1), frozenset({"z"})))
    store.save_progress(HOOK, SweepProgress(NOW, lost))

    assert store.load_progress(HOOK) == SweepProgress(NOW, lost)
    assert store.load_progress("repos/acme/vision/hooks/4") is None


def test_a_progress_fits_into_an_item_however_many_deliveries_are_lost(store: DynamoDbDeliveries) -> None:
    lost = frozenset(f"0b989ba4-242f-11e5-81e1-{number:012}" for number in range(20_000))

    store.save_progress(HOOK, SweepProgress(NOW, lost))

    saved = store.load_progress(HOOK)
    assert saved is not None
    assert len(saved.lost) == 5_000
    assert saved.lost < lost


def test_a_webhook_that_is_gone_leaves_nothing_behind(store: DynamoDbDeliveries, table: ObservedTable) -> None:
    store.save_progress(HOOK, SweepProgress(NOW))

    item = table.client.get_item(TableName=table.name, Key={"pk": {"S": "DELIVERIES"}, "sk": {"S": HOOK}})["Item"]
    assert int(item["expires_at"]["N"]) == int((NOW + timedelta(days=7)).timestamp())


@pytest.mark.parametrize(
    "report",
    [SweepReport(NOW), SweepReport(NOW, 7, ("HTTP 403 \u2026", "b"), ("acme/vision",), "no answer")],
)
def test_a_report_is_read_as_it_was_saved_last(store: DynamoDbDeliveries, report: SweepReport) -> None:
    assert store.load_report() is None
    store.save_report(SweepReport(NOW - timedelta(hours=1), 3))

    store.save_report(report)

    assert store.load_report() == report
