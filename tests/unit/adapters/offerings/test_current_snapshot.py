from datetime import timedelta

import pytest

from fakes.builders import NOW
from fakes.sources import FakeSnapshots, ListLog
from relaunch.adapters.offerings.bundled import bundled_snapshot
from relaunch.adapters.offerings.current_snapshot import CurrentSnapshot
from relaunch.core.offerings.snapshot import OfferingsSnapshot, Origin, SnapshotPart
from relaunch.ports import PermanentError, TransientError

YESTERDAY = Origin("AWS Price List", NOW - timedelta(days=1))
STORED = OfferingsSnapshot("us-east-1").with_part(SnapshotPart.ON_DEMAND_PRICES, {"g5.xlarge": 0.9}, YESTERDAY)


def test_the_refreshed_snapshot_is_completed_with_what_is_bundled() -> None:
    snapshot = CurrentSnapshot(FakeSnapshots(STORED), "us-east-1", ListLog()).at(NOW)

    assert snapshot.on_demand_usd_per_hour == {"g5.xlarge": 0.9}
    assert snapshot.zones == bundled_snapshot("us-east-1").zones
    assert snapshot.origins[SnapshotPart.ON_DEMAND_PRICES] == YESTERDAY


@pytest.mark.parametrize("failure", [TransientError("throttled"), PermanentError("no JSON")])
def test_where_it_cannot_be_had_the_bundled_one_is_used_and_the_log_says_so(failure: Exception) -> None:
    store, log = FakeSnapshots(STORED), ListLog()
    store.failure = failure

    snapshot = CurrentSnapshot(store, "us-east-1", log).at(NOW)

    assert snapshot == bundled_snapshot("us-east-1")
    assert log.lines == [("offerings-from-bundle", {"reason": str(failure)})]


def test_where_it_cannot_be_had_again_the_one_that_was_read_before_is_kept() -> None:
    store = FakeSnapshots(STORED)
    log = ListLog()
    current = CurrentSnapshot(store, "us-east-1", log)
    before = current.at(NOW)
    store.failure = TransientError("throttled")

    assert current.at(NOW + timedelta(minutes=15)) == before
    assert log.lines == [("offerings-kept", {"reason": "throttled"})]


@pytest.mark.parametrize("stored", [None, OfferingsSnapshot("eu-west-1")], ids=["none yet", "another region's"])
def test_before_the_first_refresh_the_bundled_one_is_used_silently(stored: OfferingsSnapshot | None) -> None:
    log = ListLog()

    assert CurrentSnapshot(FakeSnapshots(stored), "us-east-1", log).at(NOW) == bundled_snapshot("us-east-1")
    assert log.lines == []


def test_it_is_loaded_every_quarter_of_an_hour() -> None:
    store = FakeSnapshots(STORED)
    current = CurrentSnapshot(store, "us-east-1", ListLog())

    for minutes in (0, 14, 15, 20):
        current.at(NOW + timedelta(minutes=minutes))

    assert store.load_count == 2
