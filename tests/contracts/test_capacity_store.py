"""What every CapacityStore does: the fake as well as the adapter."""

from datetime import timedelta

from fakes.builders import NOW, make_capacity_failure, make_offering_key
from relaunch.core.accelerator import PurchaseOption
from relaunch.ports import CapacityStore

MINUTE = timedelta(minutes=1)


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
