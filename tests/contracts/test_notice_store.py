"""The behaviour of NoticeStore: the fake and the adapter."""

from dataclasses import replace

import pytest

from contracts.conftest import HOUR, Stores
from fakes.builders import NOW
from relaunch.core.notices.notice import Interruption
from relaunch.core.notices.record import MAX_INTERRUPTIONS, NoticeRecord
from relaunch.ports import StaleWriteError
from relaunch.ports.notices import NoticeStore, ReceiverPause, StoredRecord

RECORD = NoticeRecord(
    noted=9,
    noted_at=NOW,
    said=5,
    thread="1793709042.000001",
    said_between_at=NOW,
    interruptions=(Interruption(4, NOW), Interruption(8, NOW + HOUR)),
    settled=3,
    wait_said=2,
    wait_sequence=8,
    wait_reason="no capacity",
    claimed_until=NOW + HOUR,
    first_at=NOW,
)


@pytest.fixture
def store(stores: Stores) -> NoticeStore:
    return stores.notice_records


def test_a_receiver_knows_nothing_of_a_job_at_first(store: NoticeStore) -> None:
    assert store.load_record("resnet-1", "team") == StoredRecord(NoticeRecord())


def test_what_was_saved_is_loaded_for_this_job_and_this_receiver(store: NoticeStore) -> None:
    saved = store.save_record("resnet-1", "team", StoredRecord(RECORD), NOW)

    assert store.load_record("resnet-1", "team") == saved == StoredRecord(RECORD, 1)
    assert store.load_record("resnet-1", "other").version == 0
    assert store.load_record("resnet-2", "team").version == 0


def test_of_two_who_read_the_same_one_saves(store: NoticeStore) -> None:
    first = StoredRecord(RECORD)
    saved = store.save_record("resnet-1", "team", first, NOW)
    with pytest.raises(StaleWriteError):
        store.save_record("resnet-1", "team", first, NOW)

    store.save_record("resnet-1", "team", replace(saved, record=replace(RECORD, said=9)), NOW)
    with pytest.raises(StaleWriteError):
        store.save_record("resnet-1", "team", saved, NOW)
    assert store.load_record("resnet-1", "team").record.said == 9


def test_a_record_with_all_interruptions_that_are_counted_is_small(store: NoticeStore) -> None:
    many = replace(RECORD, interruptions=tuple(Interruption(each, NOW) for each in range(MAX_INTERRUPTIONS)))

    store.save_record("resnet-1", "team", StoredRecord(many), NOW)

    assert store.load_record("resnet-1", "team").record == many


def test_a_pause_is_kept_until_it_is_ended(store: NoticeStore) -> None:
    assert store.load_pause("team") is None
    pause = ReceiverPause(NOW, NOW + HOUR, "no answer", is_reported=True)

    store.save_pause("team", pause, None)
    assert store.load_pause("team") == pause
    assert store.load_pause("other") is None
    store.save_pause("team", None, pause)
    assert store.load_pause("team") is None


def test_a_pause_replaces_only_the_one_that_was_loaded(store: NoticeStore) -> None:
    first = ReceiverPause(NOW, NOW + HOUR, "no answer")
    second = ReceiverPause(NOW, NOW + 2 * HOUR, "HTTP 429")
    store.save_pause("team", first, None)

    for replaced in (None, second):
        with pytest.raises(StaleWriteError):
            store.save_pause("team", second, replaced)
    store.save_pause("team", second, first)
    with pytest.raises(StaleWriteError):
        store.save_pause("team", None, first)

    assert store.load_pause("team") == second
    store.save_pause("team", None, second)
    store.save_pause("team", first, None)
    assert store.load_pause("team") == first
