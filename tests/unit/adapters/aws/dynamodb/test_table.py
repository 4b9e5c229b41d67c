"""What a conditional write answers when the SDK repeats it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.aws import make_client
from fakes.builders import NOW, make_spot_pool
from fakes.jobs_table import ObservedTable
from relaunch.adapters.aws.dynamodb.stores import DynamoDbStores
from relaunch.core.triggers.dispatch_rate import DispatchStarts
from relaunch.ports import RevisionMaintenance


@pytest.fixture
def patient(aws: None) -> ObservedTable:
    """A table whose client repeats a call, as those of the functions do."""
    return ObservedTable(attempts=2)


@pytest.mark.parametrize("is_new", [True, False], ids=["new", "known"])
class TestAPutThatTookEffectBeforeItTimedOut:
    def test_is_ours(self, patient: ObservedTable, is_new: bool) -> None:
        capacity = patient.stores.capacity
        if not is_new:
            assert capacity.save_pool(make_spot_pool())
        pool = capacity.load_pool(make_spot_pool().offering)
        faults = patient.faults("PutItem")
        faults.after = 1

        assert capacity.save_pool(pool) is True
        assert faults.sent == 2
        assert capacity.load_pool(pool.offering) == replace(pool, version=pool.version + 1)

    def test_is_stale_if_somebody_followed_before_it_was_repeated(self, patient: ObservedTable, is_new: bool) -> None:
        maintenance = patient.stores.maintenance
        if not is_new:
            assert maintenance.save_maintenance(RevisionMaintenance(NOW))
        known = maintenance.load_maintenance() or RevisionMaintenance(NOW)
        other = DynamoDbStores(make_client("dynamodb"), patient.name).maintenance
        faults = patient.faults("PutItem")
        faults.after = 1

        def somebody_goes_on() -> None:
            if faults.sent == 2:
                loaded = other.load_maintenance()
                assert loaded is not None
                assert other.save_maintenance(replace(loaded, next_at=NOW + timedelta(hours=2)))

        faults.on_send = somebody_goes_on

        assert maintenance.save_maintenance(replace(known, next_at=NOW + timedelta(hours=1))) is False


def test_a_put_that_another_one_of_the_same_content_came_before_is_stale(patient: ObservedTable) -> None:
    """Two functions that learn the same count twice: one of them loads what the other one saved, and goes on."""
    starts = DispatchStarts("a" * 64, {"delivery": NOW})
    assert patient.stores.events.save_dispatch_starts(starts) is True
    assert patient.stores.events.save_dispatch_starts(starts) is False
