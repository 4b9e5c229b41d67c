"""The behaviour of MaintenanceStore: the fake and the adapter."""

from dataclasses import replace

import pytest

from contracts.conftest import HOUR, Stores
from fakes.builders import NOW
from relaunch.ports import FoundRevision, MaintenanceStore, RevisionMaintenance


@pytest.fixture
def store(stores: Stores) -> MaintenanceStore:
    return stores.maintenance


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


@pytest.mark.parametrize("arn", ["arn:aws:ecs:us-east-1:111122223333:task-definition/trainer--0123456789abcdef:1", ""])
def test_the_revision_of_a_derivation_is_the_one_that_was_saved_last(store: MaintenanceStore, arn: str) -> None:
    assert store.load_revision("derivation") is None

    store.save_revision("derivation", FoundRevision("earlier", NOW))
    store.save_revision("derivation", FoundRevision(arn, NOW + HOUR))

    assert store.load_revision("derivation") == FoundRevision(arn, NOW + HOUR)
    assert store.load_revision("another") is None
