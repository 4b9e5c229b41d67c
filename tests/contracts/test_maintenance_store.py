"""The behaviour of MaintenanceStore: the fake and the adapter."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fakes.builders import NOW
from relaunch.ports import MaintenanceStore, RevisionMaintenance

HOUR = timedelta(hours=1)


@pytest.fixture
def store(stores: Any) -> MaintenanceStore:
    maintenance: MaintenanceStore = stores.maintenance
    return maintenance


def test_turns_count_from_zero_for_each_name(store: MaintenanceStore) -> None:
    assert [store.take_turn("inf2.24xlarge") for _ in range(3)] == [0, 1, 2]
    assert store.take_turn("trn1.32xlarge") == 0
    assert store.take_turn("inf2.24xlarge") == 3


def test_nothing_is_remembered_at_first(store: MaintenanceStore) -> None:
    assert store.load_maintenance() is None


def test_what_was_saved_is_loaded_with_the_next_version(store: MaintenanceStore) -> None:
    maintenance = RevisionMaintenance(NOW + HOUR, {"trainer--0123456789abcdef": NOW})

    assert store.save_maintenance(maintenance)

    assert store.load_maintenance() == replace(maintenance, version=1)
    assert store.save_maintenance(RevisionMaintenance(NOW + 2 * HOUR, {}, version=1))
    assert store.load_maintenance() == RevisionMaintenance(NOW + 2 * HOUR, {}, version=2)


def test_of_two_who_read_the_same_one_saves(store: MaintenanceStore) -> None:
    assert store.save_maintenance(RevisionMaintenance(NOW))
    assert not store.save_maintenance(RevisionMaintenance(NOW + HOUR))

    first = second = store.load_maintenance()
    assert first is not None
    assert second is not None
    assert store.save_maintenance(replace(first, next_at=NOW + HOUR))
    assert not store.save_maintenance(replace(second, next_at=NOW + 2 * HOUR))
    loaded = store.load_maintenance()
    assert loaded is not None
    assert loaded.next_at == NOW + HOUR
