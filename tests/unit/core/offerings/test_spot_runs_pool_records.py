"""What each fact that a launch or a machine leaves changes in the record of its pool."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from fakes.builders import NOW, make_capacity_failure, make_offering_key, make_spot_pool
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.market.learning import PoolRecord, granted, interrupted, left, refused, taken
from relaunch.core.offerings.capacity_memory import purchase_scope, quota_scope, zone_scope
from relaunch.core.offerings.spot_runs import (
    KEPT_FOR,
    Observed,
    SpotRun,
    change_by_arrival,
    change_by_failure,
    change_by_gang,
    change_by_launch,
    change_by_run,
    hours_of_one,
    is_news,
    pool_hours,
    pool_time,
    unknown_pool,
)

SPOT = PurchaseOption.SPOT
KEY = make_offering_key(zone="us-east-1a")
AT = pool_hours(NOW)
BEFORE = granted(PoolRecord(str(KEY)), AT - 5.0)
SHUT = refused(BEFORE, AT)
SHORT = make_capacity_failure(offering=KEY, is_shortage=True)


def run(what: Observed, hours: float = 0.0, at: datetime = NOW) -> SpotRun:
    return SpotRun(KEY, "a/1/1", what, at, hours)


def test_times_are_hours_since_1970():
    at = datetime.fromisoformat("1970-01-02T01:30:00+01:00")

    assert pool_hours(at) == 24.5
    assert pool_time(24.5) == at


def test_a_pool_that_is_not_known_has_the_name_of_its_offering():
    pool = unknown_pool(KEY)

    assert (pool.offering, pool.version) == (KEY, 0)
    assert pool.record == PoolRecord("g5.xlarge spot us-east-1a")
    assert (pool.nodes, unknown_pool(KEY, 4).nodes) == (1, 4)


def test_a_record_is_forgotten_some_days_after_its_pool_was_last_seen():
    assert make_spot_pool().forgotten_at == NOW + KEPT_FOR


@pytest.mark.parametrize(
    ("what", "hours", "expected"),
    [
        pytest.param(Observed.START, 0.0, granted(BEFORE, AT), id="a start"),
        pytest.param(Observed.END, 4.0, left(BEFORE, AT - 4.0, AT), id="an end"),
        pytest.param(Observed.INTERRUPTION, 4.0, interrupted(BEFORE, AT - 4.0, AT), id="an interruption"),
        pytest.param(Observed.INTERRUPTION, 0.0, refused(BEFORE, AT), id="an interruption before anything ran"),
    ],
)
def test_a_run_says_whether_its_pool_had_capacity(what, hours, expected):
    change = change_by_run(run(what, hours))

    assert change is not None
    assert change(BEFORE) == expected
    assert change(expected) == expected, "a fact that comes twice changes nothing"


def test_a_task_that_starts_on_a_machine_of_our_own_says_nothing_that_its_launch_did_not():
    assert change_by_run(replace(run(Observed.START), on_own_machine=True)) is None


@pytest.mark.parametrize("what", [Observed.END, Observed.INTERRUPTION])
def test_what_is_refused_between_a_launch_and_its_task_is_refused_in_the_life_of_the_machine(what):
    shut = refused(BEFORE, AT - 4.2)

    change = change_by_run(replace(run(what, 4.0), on_own_machine=True))

    assert change is not None
    changed = change(shut)
    assert (changed.has_capacity, changed.state_since, changed.seen_at) == (False, shut.state_since, AT)
    assert change(changed) == changed


def test_an_instance_that_was_launched_shows_that_there_was_capacity():
    change = change_by_launch(KEY, NOW)

    assert change is not None
    assert change(BEFORE) == granted(BEFORE, AT)
    assert change_by_launch(make_offering_key(purchase=PurchaseOption.ON_DEMAND), NOW) is None


@pytest.mark.parametrize(("what", "change"), [(Observed.END, left), (Observed.INTERRUPTION, interrupted)])
def test_a_run_on_several_machines_is_as_long_in_their_record_as_it_was(what, change):
    gang = replace(run(what, hours_of_one(4.0, 4)), nodes=4)

    changed = change_by_run(gang)

    assert changed is not None
    assert changed(BEFORE).spell_expected == pytest.approx(change(BEFORE, AT - 4.0, AT).spell_expected)


def test_the_record_of_one_machine_hears_that_several_were_taken_and_counts_no_end():
    gang = replace(run(Observed.INTERRUPTION, 4.0), nodes=4)

    change = change_by_gang(gang)

    assert change is not None
    assert change(BEFORE) == taken(BEFORE, AT)
    assert change_by_gang(replace(gang, what=Observed.END)) is None
    assert change_by_gang(replace(gang, nodes=1)) is None


def test_a_rebalance_recommendation_says_nothing_of_capacity():
    assert change_by_run(run(Observed.REBALANCE)) is None


@pytest.mark.parametrize("failure", [SHORT, make_capacity_failure(capacity_provider="g5")], ids=["EC2", "a provider"])
def test_a_launch_without_capacity_is_a_refusal(failure):
    change = change_by_failure(failure)

    assert change is not None
    assert change(BEFORE) == refused(BEFORE, AT)


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(replace(SHORT, is_shortage=False), id="refused for another reason, or not answered"),
        pytest.param(replace(SHORT, offering=replace(KEY, purchase=PurchaseOption.ON_DEMAND)), id="on-demand"),
        pytest.param(replace(SHORT, offering=quota_scope("g5.xlarge", SPOT)), id="a quota"),
        pytest.param(replace(SHORT, offering=zone_scope("us-east-1a", SPOT)), id="a subnet"),
        pytest.param(replace(SHORT, offering=purchase_scope(SPOT)), id="all of spot"),
    ],
)
def test_what_is_not_about_the_capacity_of_one_pool_is_none(failure):
    assert change_by_failure(failure) is None


def test_an_instance_that_arrives_late_shows_that_there_was_capacity():
    change = change_by_arrival(SHORT, NOW + timedelta(minutes=9))

    assert change is not None
    assert change(refused(BEFORE, AT)).has_capacity is True
    assert change_by_arrival(replace(SHORT, offering=make_offering_key(purchase=PurchaseOption.ON_DEMAND)), NOW) is None
    assert change_by_arrival(replace(SHORT, offering=purchase_scope(SPOT)), NOW) is None


def test_facts_out_of_order_leave_what_was_seen_later():
    later = refused(BEFORE, AT + 1.0)

    for what, hours in ((Observed.START, 0.0), (Observed.END, 4.0), (Observed.INTERRUPTION, 4.0)):
        change = change_by_run(run(what, hours))
        assert change is not None
        assert change(later) == later


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (BEFORE, granted(BEFORE, AT), True),
        (BEFORE, granted(BEFORE, AT - 5.0 + 0.5 / 60), False),
        (BEFORE, refused(BEFORE, AT - 5.0 + 0.5 / 60), True),
        (SHUT, interrupted(SHUT, AT - 5.0, AT + 0.5 / 60), True),
        (BEFORE, BEFORE, False),
    ],
    ids=["later", "within a minute", "another state within a minute", "an interruption within a minute", "the same"],
)
def test_what_is_the_same_within_a_minute_is_no_news(before, after, expected):
    assert is_news(before, after) is expected


def test_a_provider_whose_machines_run_other_tasks_says_nothing_of_its_pool_nor_does_one_that_is_free():
    queue = make_capacity_failure(capacity_provider="g5", is_queue=True)

    assert change_by_failure(queue) is None
    assert change_by_failure(replace(queue, is_queue=False)) is not None
    assert change_by_arrival(queue, queue.at) is None
    assert change_by_arrival(queue, queue.at + timedelta(minutes=1)) is not None
