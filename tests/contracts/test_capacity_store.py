"""The behaviour of CapacityStore: the fake and the adapter."""

from dataclasses import replace
from datetime import timedelta

import pytest

from contracts.conftest import Stores
from fakes.builders import NOW, make_capacity_failure, make_offering_key, make_spot_pool
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.market.learning import granted, refused
from relaunch.core.offerings.capacity_memory import image_scope, purchase_scope, quota_scope, zone_scope
from relaunch.core.offerings.instance_types import AmiKind
from relaunch.core.offerings.offering import CapacityFailure, OfferingKey
from relaunch.core.offerings.spot_runs import KEPT_FOR, Observed, SpotRun, SpotRuns, hours_of_one, unknown_pool
from relaunch.ports import CapacityStore

MINUTE = timedelta(minutes=1)
SPOT = PurchaseOption.SPOT


@pytest.fixture
def store(stores: Stores) -> CapacityStore:
    return stores.capacity


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


@pytest.mark.parametrize(
    "scope",
    [
        quota_scope("g5.xlarge", SPOT),
        quota_scope("p5.48xlarge", SPOT),
        zone_scope("us-east-1a", SPOT),
        purchase_scope(SPOT),
    ],
)
def test_what_offerings_share_is_remembered_beside_them_and_beside_runs(
    store: CapacityStore, scope: OfferingKey
) -> None:
    shared = make_capacity_failure(offering=scope, until=NOW + 15 * MINUTE, vcpus=48)
    one = make_capacity_failure(until=NOW + MINUTE)
    store.count_run(run(Observed.START))
    for failure in (shared, one, shared):
        store.remember(failure)
    memory, runs, _ = store.load_capacity(NOW)
    assert (memory, len(runs)) == ({scope: shared, one.offering: one}, 1)
    assert store.load_capacity_memory(NOW + MINUTE) == {scope: shared}


def test_a_scope_that_fails_again_is_avoided_as_long_as_that_failure_says(store: CapacityStore) -> None:
    first = make_capacity_failure(offering=purchase_scope(SPOT), until=NOW + 30 * MINUTE)
    again = replace(first, at=first.until, until=first.until + 30 * MINUTE)
    store.remember(first)
    store.remember(again)
    assert store.load_capacity_memory(again.at) == {again.offering: again}


def test_a_reopened_offering_is_avoided_no_more_but_its_failures_still_count(store: CapacityStore) -> None:
    failure = make_capacity_failure(until=NOW + 30 * MINUTE, consecutive_failures=3)
    store.remember(failure)
    store.reopen(failure, NOW + MINUTE)
    store.reopen(failure, NOW + MINUTE)
    assert store.load_capacity_memory(NOW + MINUTE) == {}

    again_at = NOW + 10 * MINUTE
    store.remember(replace(failure, at=again_at, until=again_at + 15 * MINUTE, consecutive_failures=1))
    (remembered,) = store.load_capacity_memory(again_at).values()
    assert (remembered.consecutive_failures, remembered.until) == (4, again_at + 8 * 15 * MINUTE)


def test_providers_of_one_type_and_purchase_option_are_remembered_apart(store: CapacityStore) -> None:
    first, second = (make_capacity_failure(capacity_provider=f"g5-zone-{zone}", until=NOW + MINUTE) for zone in "ab")
    for failure in (first, second):
        store.remember(failure)
    assert set(store.load_capacity_memory(NOW).values()) == {first, second}
    store.reopen(first, NOW)
    assert set(store.load_capacity_memory(NOW).values()) == {second}


def test_a_repeated_effect_does_not_remember_again_what_was_refuted(store: CapacityStore) -> None:
    failure = make_capacity_failure(until=NOW + 30 * MINUTE)
    store.remember(failure)
    store.reopen(failure, NOW + MINUTE)
    store.remember(failure)
    assert store.load_capacity_memory(NOW + 2 * MINUTE) == {}


def test_what_failed_again_since_it_was_loaded_is_not_reopened(store: CapacityStore) -> None:
    old = make_capacity_failure(until=NOW + MINUTE)
    new = replace(old, at=NOW + 9 * MINUTE, until=NOW + 20 * MINUTE)
    for failure in (old, new):
        store.remember(failure)
    store.reopen(old, NOW + 10 * MINUTE)
    assert len(store.load_capacity_memory(NOW + 10 * MINUTE)) == 1


def test_a_machine_that_becomes_ready_ends_what_is_known_of_its_image_and_its_pool(store: CapacityStore) -> None:
    pool, image = make_offering_key(), image_scope(AmiKind.GPU)
    for _ in range(3):
        store.remember(CapacityFailure(image, "never registered", NOW, NOW, is_unready=True))
    store.remember(CapacityFailure(pool, "never registered", NOW, NOW + 3 * MINUTE, is_unready=True))
    assert {key: each.until for key, each in store.load_capacity_memory(NOW).items()} == {
        image: NOW + 15 * MINUTE,
        pool: NOW + 3 * MINUTE,
    }

    for _ in range(2):
        store.forget_unready((pool, image), NOW + MINUTE)
    assert store.load_capacity_memory(NOW + MINUTE) == {}

    store.remember(CapacityFailure(image, "never registered", NOW + 2 * MINUTE, NOW + 2 * MINUTE, is_unready=True))
    assert store.load_capacity_memory(NOW + 2 * MINUTE) == {}, "the counting starts anew"


def test_a_machine_that_becomes_ready_says_nothing_of_capacity_that_ec2_did_not_have(store: CapacityStore) -> None:
    failure = make_capacity_failure(until=NOW + 30 * MINUTE)
    store.remember(failure)
    store.forget_unready((failure.offering, purchase_scope(SPOT)), NOW + MINUTE)
    assert store.load_capacity_memory(NOW + MINUTE) == {failure.offering: failure}


def run(what: Observed, run_id: str = "a/1/1", hours: float = 0.0, at: timedelta = timedelta(0)) -> SpotRun:
    return SpotRun(make_offering_key(zone="us-east-1a"), run_id, what, NOW + at, hours)


def test_runs_are_added_up_by_day_and_a_repetition_counts_once(store: CapacityStore) -> None:
    start, interruption = run(Observed.START), run(Observed.INTERRUPTION, hours=1.5, at=MINUTE)
    for each in (start, interruption, interruption, run(Observed.END, "b/1/1", 0.1, 2 * MINUTE)):
        store.count_run(each)
    store.count_run(run(Observed.REBALANCE, "i-0aaa", at=3 * MINUTE))
    _, (runs,), _ = store.load_capacity(NOW)
    assert runs == SpotRuns(start.offering, NOW.date(), 1.6, 1.5, NOW + MINUTE, NOW, 1)


def test_a_start_ends_the_interruptions_in_a_row(store: CapacityStore) -> None:
    for number in range(3):
        store.count_run(run(Observed.INTERRUPTION, f"{number}/1/1"))
    assert [runs.interrupted_in_a_row for runs in store.load_capacity(NOW)[1]] == [3]
    store.count_run(run(Observed.START, "a/2/1", at=MINUTE))
    assert [runs.interrupted_in_a_row for runs in store.load_capacity(NOW)[1]] == [0]


def test_runs_are_kept_for_some_days_each_offering_and_zone_by_itself(store: CapacityStore) -> None:
    for key in (make_offering_key(), make_offering_key(zone="us-east-1a"), make_offering_key("g6.xlarge")):
        store.count_run(replace(run(Observed.END, hours=1.0), offering=key))
    assert len(store.load_capacity(NOW + KEPT_FOR)[1]) == 3
    assert list(store.load_capacity(NOW + KEPT_FOR + timedelta(days=1))[1]) == []


def test_of_a_pool_that_nothing_was_seen_of_nothing_is_known(store: CapacityStore) -> None:
    offering = make_offering_key(zone="us-east-1a")
    assert store.load_pool(offering) == unknown_pool(offering)


@pytest.mark.parametrize("zone", [None, "us-east-1a"])
def test_a_pool_is_kept_as_it_was_last_saved(store: CapacityStore, zone: str | None) -> None:
    first = make_spot_pool(offering=make_offering_key(zone=zone))
    second = replace(first, record=granted(first.record, first.record.seen_at + 0.25), version=1)
    assert store.save_pool(first)
    assert store.load_pool(first.offering) == replace(first, version=1)
    assert store.save_pool(second)
    assert store.load_pool(first.offering) == replace(second, version=2)
    assert list(store.load_capacity(NOW)[2]) == [replace(second, version=2)]


def test_a_pool_for_several_machines_at_once_is_another_one(store: CapacityStore) -> None:
    one = make_spot_pool()
    four = replace(one, nodes=4, record=refused(one.record, one.record.seen_at + 0.25))
    assert store.load_pool(one.offering, 4) == unknown_pool(one.offering, 4)
    assert all(store.save_pool(each) for each in (one, four, replace(four, nodes=16)))
    assert store.load_pool(one.offering) == replace(one, version=1)
    assert store.load_pool(one.offering, 4) == replace(four, version=1)
    assert sorted(each.nodes for each in store.load_capacity(NOW)[2]) == [1, 4, 16]
    assert not store.save_pool(four)


def test_runs_on_several_machines_are_added_up_by_their_number_too(store: CapacityStore) -> None:
    store.count_run(run(Observed.END, "a/1/1", 1.0))
    store.count_run(replace(run(Observed.START, "b/1/1"), nodes=4))
    for number, what in enumerate((Observed.END, Observed.INTERRUPTION, Observed.INTERRUPTION)):
        store.count_run(replace(run(what, f"b/{number}/1", hours_of_one(2.0, 4)), nodes=4))
    store.count_run(replace(run(Observed.INTERRUPTION, "c/1/1", hours_of_one(3.0, 16)), nodes=16))
    _, (runs,), _ = store.load_capacity(NOW)
    assert runs.hours == pytest.approx(1.0 + hours_of_one(6.0, 4) + hours_of_one(3.0, 16))
    assert (runs.interruptions, runs.interrupted_in_a_row) == (3.0, 3)
    assert [(each.nodes, each.interruptions) for each in runs.gangs] == [(4, 2.0), (16, 1.0)]
    assert [each.hours for each in runs.gangs] == [pytest.approx(6.0), pytest.approx(3.0)]


def test_of_two_that_change_a_pool_at_once_one_has_to_look_again(store: CapacityStore) -> None:
    pool = make_spot_pool()
    assert [store.save_pool(pool), store.save_pool(pool)] == [True, False]
    later = replace(pool, record=granted(pool.record, pool.record.seen_at + 0.25), version=1)
    assert [store.save_pool(later), store.save_pool(later)] == [True, False]
    assert store.load_pool(pool.offering).version == 2


def test_a_pool_is_forgotten_some_days_after_it_was_last_seen(store: CapacityStore) -> None:
    store.save_pool(make_spot_pool())
    assert len(store.load_capacity(NOW + KEPT_FOR - MINUTE)[2]) == 1
    assert list(store.load_capacity(NOW + KEPT_FOR)[2]) == []


def test_failures_runs_and_pools_are_told_apart(store: CapacityStore) -> None:
    store.save_pool(make_spot_pool())
    store.count_run(run(Observed.START))
    store.remember(make_capacity_failure(until=NOW + MINUTE))
    assert [len(each) for each in store.load_capacity(NOW)] == [1, 1, 1]
    assert len(store.load_capacity_memory(NOW)) == 1


def test_failures_and_runs_are_loaded_together_and_neither_is_taken_for_the_other(store: CapacityStore) -> None:
    counted, failure = run(Observed.END, hours=1.0), make_capacity_failure(until=NOW + MINUTE)
    store.count_run(counted)
    store.remember(failure)
    runs = [SpotRuns(counted.offering, NOW.date(), 1.0)]
    assert store.load_capacity_memory(NOW) == {failure.offering: failure}
    memory, loaded, _ = store.load_capacity(NOW)
    assert (memory, list(loaded)) == ({failure.offering: failure}, runs)
    memory, loaded, _ = store.load_capacity(NOW + MINUTE)
    assert (memory, list(loaded)) == ({}, runs)
