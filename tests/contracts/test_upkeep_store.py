"""What every UpkeepStore does: the fake as well as the adapter."""

from dataclasses import replace
from datetime import timedelta

from fakes.builders import NOW
from relaunch.ports import RevisionUpkeep, UpkeepStore

HOUR = timedelta(hours=1)


def test_turns_count_from_zero_for_each_name(store: UpkeepStore) -> None:
    assert [store.take_turn("inf2.24xlarge") for _ in range(3)] == [0, 1, 2]
    assert store.take_turn("trn1.32xlarge") == 0
    assert store.take_turn("inf2.24xlarge") == 3


def test_nothing_is_remembered_at_first(store: UpkeepStore) -> None:
    assert store.load_upkeep() is None


def test_what_was_saved_is_loaded_with_the_next_version(store: UpkeepStore) -> None:
    upkeep = RevisionUpkeep(NOW + HOUR, {"trainer--0123456789abcdef": NOW})

    assert store.save_upkeep(upkeep)

    assert store.load_upkeep() == replace(upkeep, version=1)
    assert store.save_upkeep(RevisionUpkeep(NOW + 2 * HOUR, {}, version=1))
    assert store.load_upkeep() == RevisionUpkeep(NOW + 2 * HOUR, {}, version=2)


def test_of_two_who_read_the_same_one_saves(store: UpkeepStore) -> None:
    assert store.save_upkeep(RevisionUpkeep(NOW))
    assert not store.save_upkeep(RevisionUpkeep(NOW + HOUR))

    first = second = store.load_upkeep()
    assert first is not None
    assert second is not None
    assert store.save_upkeep(replace(first, next_at=NOW + HOUR))
    assert not store.save_upkeep(replace(second, next_at=NOW + 2 * HOUR))
    loaded = store.load_upkeep()
    assert loaded is not None
    assert loaded.next_at == NOW + HOUR
