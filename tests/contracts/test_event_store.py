"""Stores of events: the fake and the real one."""

from datetime import timedelta

import pytest

from contracts.conftest import HOUR, Stores
from fakes.builders import NOW
from relaunch.core.triggers.dispatch_rate import DispatchStarts
from relaunch.ports import EventRecord, EventStore


@pytest.fixture
def store(stores: Stores) -> EventStore:
    return stores.events


class TestEvents:
    def test_what_became_of_events_is_told_the_newest_first(self, store: EventStore) -> None:
        records = [
            EventRecord(f"github:push:{minutes}", "github push", "no definition watches it", (), NOW - minutes * HOUR)
            for minutes in (30, 1, 70)
        ]
        for each in records:
            store.record_event(each.identity, each.source, each.outcome, each.job_ids, each.at)
        assert store.list_events(NOW, 10) == [records[1], records[0], records[2]]
        assert store.list_events(NOW, 2) == [records[1], records[0]]

    def test_events_of_the_same_moment_are_kept_apart(self, store: EventStore) -> None:
        store.record_event("s3:a", "s3", "started", ["resnet-1", "bert-1"], NOW)
        store.record_event("s3:b", "s3", "started", ["resnet-2"], NOW)
        found = {record.identity: record.job_ids for record in store.list_events(NOW, 10)}
        assert found == {"s3:a": ("resnet-1", "bert-1"), "s3:b": ("resnet-2",)}

    def test_an_identity_may_be_as_long_as_an_object_key(self, store: EventStore) -> None:
        identity = "s3:acme-datasets:" + "ä" * 1024
        store.record_event(identity, "s3", "no rule matches", [], NOW)
        assert [record.identity for record in store.list_events(NOW, 10)] == [identity]

    def test_events_are_forgotten_after_eight_days(self, store: EventStore) -> None:
        store.record_event("old", "s3", "started", [], NOW - timedelta(days=8))
        store.record_event("recent", "s3", "started", [], NOW - timedelta(days=7, hours=23))
        assert [record.identity for record in store.list_events(NOW, 10)] == ["recent"]


class TestDispatchStarts:
    def test_nothing_is_known_of_a_body_that_was_never_saved(self, store: EventStore) -> None:
        assert store.load_dispatch_starts("ab") == DispatchStarts("ab")

    def test_the_dispatches_of_a_body_are_loaded_as_they_were_saved(self, store: EventStore) -> None:
        first = DispatchStarts("ab", {"guid-1": NOW})
        assert store.save_dispatch_starts(first)
        assert store.save_dispatch_starts(DispatchStarts("ab", {"guid-1": NOW, "guid-2": NOW + HOUR}, 1))
        assert store.load_dispatch_starts("ab") == DispatchStarts("ab", {"guid-1": NOW, "guid-2": NOW + HOUR}, 2)
        assert store.load_dispatch_starts("cd") == DispatchStarts("cd")

    def test_of_two_that_read_the_same_version_one_saves(self, store: EventStore) -> None:
        for version in (0, 1):
            assert store.load_dispatch_starts("ab").version == version
            assert store.save_dispatch_starts(DispatchStarts("ab", {"guid-1": NOW}, version))
            assert not store.save_dispatch_starts(DispatchStarts("ab", {"guid-2": NOW}, version))
        assert list(store.load_dispatch_starts("ab").started_at) == ["guid-1"]

    def test_they_are_no_events(self, store: EventStore) -> None:
        store.save_dispatch_starts(DispatchStarts("ab", {"guid-1": NOW}))
        assert store.list_events(NOW, 9) == []


class TestLastTries:
    def test_the_last_try_of_a_message_begins_once(self, store: EventStore) -> None:
        assert store.begin_last_try("message-1", NOW)
        assert not store.begin_last_try("message-1", NOW + HOUR)
        assert store.begin_last_try("message-2", NOW + HOUR)

    def test_they_are_no_events(self, store: EventStore) -> None:
        store.begin_last_try("message-1", NOW)
        assert store.list_events(NOW, 9) == []
