"""What this stack has seen of the spot pools that a job may use."""

from dataclasses import replace
from datetime import timedelta
from functools import reduce

import pytest

from fakes.builders import (
    NOW,
    make_capacity_failure,
    make_definition,
    make_job,
    make_offering,
    make_offering_key,
    make_placement,
    make_running_attempt,
    make_selection,
)
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.lifecycle.spot_pools import RETRY_INTERVAL, find_pools, retried_sooner, with_warning
from relaunch.core.machines.refusals import POOL_AVOIDED
from relaunch.core.market.learning import gang_pool_of, gang_spell_ends, seen
from relaunch.core.market.situation import Pool
from relaunch.core.offerings.capacity_memory import zone_scope
from relaunch.core.offerings.offering import Offering, OfferingKey
from relaunch.core.offerings.spot_runs import PoolChange, SpotPool, pool_hours, unknown_pool
from relaunch.core.selection.rejection import Rejection
from relaunch.core.selection.selection import RejectedOffering

HOUR = timedelta(hours=1)
ZONE = make_offering(zone="us-east-1a", capacity_provider=None, is_own_machine=True)
KEY = ZONE.key
NAME = "g5.xlarge spot us-east-1a"
AT = pool_hours(NOW)


def known(*changes: PoolChange, key: OfferingKey = KEY) -> SpotPool:
    """Return what is known of a pool after some changes."""
    record = reduce(lambda before, change: change(before), changes, unknown_pool(key).record)
    return SpotPool(key, record, len(changes))


def granted(hours_ago: float) -> PoolChange:
    return lambda record: seen(record, AT - hours_ago, has_capacity=True)


def refused(hours_ago: float) -> PoolChange:
    return lambda record: seen(record, AT - hours_ago, has_capacity=False)


def found(*pools: SpotPool, offering: Offering = ZONE) -> Pool:
    (pool,) = find_pools(make_selection(kept=(offering,), rejected=()), pools, NOW)
    return pool


def test_of_a_pool_that_was_never_seen_nothing_is_known():
    assert found() == Pool(NAME, 0.40)
    assert found(known(refused(1.0), key=make_offering_key("g6.xlarge", zone="us-east-1a"))) == Pool(NAME, 0.40)
    assert found(known(refused(1.0), key=make_offering_key(zone="us-east-1b"))) == Pool(NAME, 0.40)


@pytest.mark.parametrize(
    ("changes", "state", "seen_ago", "state_age"),
    [
        pytest.param([refused(1.0)], False, 1.0, 1.0, id="refused"),
        pytest.param([refused(2.0), refused(1.0)], False, 1.0, 2.0, id="and again"),
        pytest.param([granted(3.0)], True, 3.0, 3.0, id="granted"),
        pytest.param([refused(1.0), granted(0.5)], True, 0.5, 0.75, id="granted after a refusal"),
        pytest.param([granted(-1.0)], True, 0.0, 0.0, id="by a clock that is early"),
    ],
)
def test_a_pool_is_what_was_seen_of_it_last(changes, state, seen_ago, state_age):
    pool = found(known(*changes))

    assert (pool.name, pool.usd_per_hour, pool.has_capacity) == (NAME, 0.40, state)
    assert (pool.seen_ago, pool.state_age) == pytest.approx((seen_ago, state_age))


def test_what_a_pool_learned_is_taken_with_it():
    often = known(*(change for hour in range(40, 1, -2) for change in (granted(hour / 4), refused(hour / 4 - 0.2))))

    assert found(often).spell_ends > 1.1
    assert found(known(granted(10.0), refused(9.8))).spell_ends == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize("pools", [(), (known(granted(5.0)),)], ids=["never", "hours ago"])
def test_of_a_pool_that_was_not_seen_lately_the_placement_score_says_something(pools):
    def ends(score: int | None) -> tuple[float, float]:
        pool = found(*pools, offering=replace(ZONE, placement_score=score))
        return pool.outage_ends, pool.spell_ends

    assert ends(None) == (1.0, 1.0)
    assert ends(1) == pytest.approx((0.5**0.5, 2**0.5))
    assert ends(10) == pytest.approx((2**0.5, 0.5**0.5))


def test_what_a_launch_has_just_seen_counts_more_than_a_score():
    pools = (known(granted(3.0)),)

    assert found(*pools, offering=replace(ZONE, placement_score=1)) == found(*pools)


def test_a_warning_says_at_once_that_the_pool_of_the_machine_has_none_left():
    placement = make_placement(offering=KEY)
    warned = make_job(attempt=make_running_attempt(placement=placement, zone=None, warned_at=NOW - HOUR))
    elsewhere = known(granted(3.0), key=make_offering_key("g6.xlarge"))

    pools = with_warning((elsewhere, known(granted(3.0))), warned)

    assert pools[:-1] == (elsewhere,)
    assert (found(*pools).has_capacity, found(*pools).seen_ago) == (False, pytest.approx(1.0))
    assert found(*with_warning((), warned)).has_capacity is False


def test_a_job_of_several_nodes_sees_the_pool_as_so_many_have_seen_it():
    four = SpotPool(KEY, granted(0.1)(unknown_pool(KEY).record), 1, nodes=4)
    elsewhere = replace(four, offering=make_offering_key(zone="us-east-1b"), nodes=8)
    selection = make_selection(kept=(ZONE,), rejected=())

    def pool(nodes: int) -> Pool:
        (seen_by,) = find_pools(selection, (known(refused(0.5)), four, elsewhere), NOW, nodes)
        return seen_by

    assert [pool(nodes).has_capacity for nodes in (1, 2, 4, 8)] == [False, True, True, False]
    assert pool(8) == gang_pool_of(NAME, {1: known(refused(0.5)).record, 4: four.record}, 8, 0.4, AT)
    assert pool(4).spell_ends == pytest.approx(gang_spell_ends(4))


def test_a_warning_of_a_job_of_several_nodes_is_one_for_as_many():
    placement = make_placement(offering=KEY)
    attempt = make_running_attempt(placement=placement, zone=None, warned_at=NOW - HOUR)
    warned = make_job(definition=make_definition(nodes=4), attempt=attempt)
    of_one = known(granted(3.0))

    pools = with_warning((of_one,), warned)

    assert pools[:-1] == (of_one,)
    assert (pools[-1].nodes, pools[-1].record.has_capacity) == (4, False)


def test_a_task_that_is_not_warned_says_nothing_of_its_pool():
    pools = (known(granted(3.0)),)

    assert with_warning(pools, make_job(attempt=make_running_attempt())) == with_warning(pools, make_job()) == pools


def test_a_pool_in_any_zone_is_what_was_seen_in_all_of_them():
    pools = (
        known(granted(3.0)),
        known(granted(1.0), key=make_offering_key(zone="us-east-1b")),
        known(refused(2.0), key=make_offering_key()),
        known(refused(0.5), key=make_offering_key("g6.xlarge")),
    )

    pool = found(*pools, offering=make_offering())

    assert (pool.name, pool.has_capacity, pool.seen_ago) == ("g5.xlarge spot", True, pytest.approx(1.0))


def test_what_selection_rejects_for_some_time_is_a_pool_and_the_rest_is_not():
    def rejected(retry_in: timedelta | None, **fields):
        retry_at = None if retry_in is None else NOW + retry_in
        return RejectedOffering(make_offering(**fields), "any", Rejection("no", is_permanent=False, retry_at=retry_at))

    selection = make_selection(
        kept=(make_offering("g6.xlarge", PurchaseOption.ON_DEMAND),),
        rejected=(
            rejected(HOUR),
            rejected(timedelta(0), instance_type="g4dn.xlarge"),
            rejected(None, instance_type="g5.2xlarge"),
            rejected(HOUR, instance_type="g5.4xlarge", price_usd_per_hour=None, on_demand_usd_per_hour=None),
            rejected(HOUR, purchase=PurchaseOption.ON_DEMAND),
        ),
    )

    pools = find_pools(selection, (), NOW)

    assert [(each.name, each.avoided_for) for each in pools] == [("g5.xlarge spot", 1.0), ("g4dn.xlarge spot", 1 / 60)]
    assert all(each.may_be_tried_in(1 / 6) > 0 for each in pools)


@pytest.mark.parametrize(
    ("failure", "avoided_for"),
    [
        pytest.param(make_capacity_failure(offering=KEY), RETRY_INTERVAL, id="a machine of our own"),
        pytest.param(
            make_capacity_failure(offering=KEY, until=NOW + timedelta(minutes=2)),
            timedelta(minutes=2),
            id="over sooner",
        ),
        pytest.param(make_capacity_failure(), timedelta(minutes=30), id="any zone"),
        pytest.param(
            make_capacity_failure(offering=KEY, capacity_provider="g5"), timedelta(minutes=30), id="a capacity provider"
        ),
        pytest.param(
            make_capacity_failure(offering=replace(KEY, purchase=PurchaseOption.ON_DEMAND)),
            POOL_AVOIDED,
            id="on-demand",
        ),
        pytest.param(
            make_capacity_failure(offering=replace(KEY, purchase=PurchaseOption.ON_DEMAND), capacity_provider="g5"),
            timedelta(minutes=30),
            id="on-demand by a capacity provider",
        ),
        pytest.param(
            make_capacity_failure(offering=replace(KEY, purchase=PurchaseOption.RESERVED)),
            timedelta(minutes=30),
            id="reserved",
        ),
        pytest.param(
            make_capacity_failure(offering=zone_scope("us-east-1a", PurchaseOption.SPOT)),
            timedelta(minutes=30),
            id="a subnet",
        ),
    ],
)
def test_what_ec2_answered_for_is_tried_again_sooner(failure, avoided_for):
    (sooner,) = retried_sooner({failure.offering: failure}).values()

    assert sooner == replace(failure, until=NOW + avoided_for)
