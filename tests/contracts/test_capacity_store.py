"""The behaviour of CapacityStore: the fake and the adapter."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fakes.builders import NOW, make_capacity_failure, make_offering_key
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.ports import CapacityStore

MINUTE = timedelta(minutes=1)


@pytest.fixture
def store(stores: Any) -> CapacityStore:
    capacity: CapacityStore = stores.capacity
    return capacity


def test_nothing_failed_at_first(store: CapacityStore) -> None:
    assert store.load_capacity_memory(NOW) == {}


def test_a_failure_is_remembered_until_its_time(store: CapacityStore) -> None:
    failure = make_capacity_failure(until=NOW + MINUTE)
    store.remember(failure)
    assert store.load_capacity_memory(NOW) == {failure.offering: failure}
    assert store.load_capacity_memory(NOW + MINUTE - timedelta(microseconds=1)) == {failure.offering: failure}
    assert store.load_capacity_memory(NOW + MINUTE) == {}


def test_of_two_failures_of_one_offering_the_later_end_wins_in_either_order(store: CapacityStore) -> None:
    long, short = make_capacity_failure(until=NOW + 9 * MINUTE), make_capacity_failure(until=NOW + MINUTE)
    for failure in (short, long, short):
        store.remember(failure)
    assert store.load_capacity_memory(NOW) == {long.offering: long}


def test_what_fails_again_once_it_was_let_go_is_avoided_twice_as_long(store: CapacityStore) -> None:
    first = make_capacity_failure(until=NOW + 30 * MINUTE)
    again_at = first.until + MINUTE
    store.remember(first)
    store.remember(replace(first, at=again_at, until=again_at + 30 * MINUTE))
    (remembered,) = store.load_capacity_memory(again_at).values()
    assert (remembered.consecutive_failures, remembered.until) == (2, again_at + 60 * MINUTE)


def test_an_event_that_is_delivered_twice_counts_once(store: CapacityStore) -> None:
    warned = make_capacity_failure(until=NOW + 30 * MINUTE)
    stopped = replace(warned, at=NOW + 2 * MINUTE, until=NOW + 32 * MINUTE)
    for failure in (warned, stopped, stopped, warned):
        store.remember(failure)
    assert store.load_capacity_memory(NOW) == {stopped.offering: stopped}


def test_offerings_differ_by_type_zone_and_purchase_option(store: CapacityStore) -> None:
    keys = {
        make_offering_key(),
        make_offering_key(zone="us-east-1a"),
        make_offering_key(zone="us-east-1b"),
        make_offering_key("g6.xlarge"),
        make_offering_key(purchase=PurchaseOption.ON_DEMAND),
    }
    for key in keys:
        store.remember(make_capacity_failure(offering=key))
    assert set(store.load_capacity_memory(NOW)) == keys
