"""What this stack has seen of the spot pools that a job may use."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import (
    NOW,
    make_capacity_failure,
    make_job,
    make_offering,
    make_offering_key,
    make_placement,
    make_running_attempt,
    make_selection,
)
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.lifecycle.spot_pools import RETRY_INTERVAL, find_pools, retried_sooner, warnings_of
from relaunch.core.market.situation import Pool
from relaunch.core.offerings.capacity_scopes import zone_scope
from relaunch.core.offerings.offering import CapacityFailure
from relaunch.core.offerings.spot_runs import SpotRuns
from relaunch.core.selection.rejection import Rejection
from relaunch.core.selection.selection import RejectedOffering

HOUR = timedelta(hours=1)
ZONE = make_offering(zone="us-east-1a", capacity_provider=None, is_own_machine=True)
KEY = ZONE.key
NAME = "g5.xlarge spot us-east-1a"
REFUSED = make_capacity_failure(offering=KEY, at=NOW - HOUR)


def runs(started_ago: timedelta | None = None, interrupted_ago: timedelta | None = None, key=KEY) -> SpotRuns:
    started_at = None if started_ago is None else NOW - started_ago
    interrupted_at = None if interrupted_ago is None else NOW - interrupted_ago
    return SpotRuns(key, NOW.date(), 1.0, 0.0, interrupted_at, started_at)


def found(memory: tuple[CapacityFailure, ...] = (), *seen: SpotRuns, offering=ZONE) -> Pool:
    selection = make_selection(kept=(offering,), rejected=())
    (pool,) = find_pools(selection, {each.offering: each for each in memory}, seen, NOW)
    return pool


@pytest.mark.parametrize(
    ("pool", "expected"),
    [
        pytest.param(found(), Pool(NAME, 0.40), id="nothing"),
        pytest.param(found((REFUSED,)), Pool(NAME, 0.40, False, 1.0, 1.0), id="a refusal"),
        pytest.param(found((replace(REFUSED, is_refuted=True),)), Pool(NAME, 0.40), id="a refusal that is refuted"),
        pytest.param(found((), runs(3 * HOUR)), Pool(NAME, 0.40, True, 3.0, 3.0), id="a start"),
        pytest.param(found((), runs(3 * HOUR, 2 * HOUR)), Pool(NAME, 0.40, False, 2.0, 2.0), id="an interruption"),
        pytest.param(
            found((REFUSED,), runs(3 * HOUR, 2 * HOUR)), Pool(NAME, 0.40, False, 1.0, 2.0), id="and a refusal after it"
        ),
        pytest.param(found((REFUSED,), runs(HOUR / 2)), Pool(NAME, 0.40, True, 0.5, 0.5), id="a start after a refusal"),
        pytest.param(
            found((), runs(9 * HOUR, 8 * HOUR), runs(2 * HOUR)),
            Pool(NAME, 0.40, True, 2.0, 2.0),
            id="two days, any order",
        ),
        pytest.param(found((), runs(-HOUR)), Pool(NAME, 0.40, True, 0.0, 0.0), id="a start by a clock that is early"),
        pytest.param(found((), runs(HOUR, key=make_offering_key("g6.xlarge"))), Pool(NAME, 0.40), id="another pool"),
    ],
)
def test_a_pool_is_what_was_seen_of_it_last(pool, expected):
    assert pool == expected


def test_a_warning_says_at_once_that_the_pool_of_the_machine_has_none_left():
    placement = make_placement(offering=KEY)
    warned = make_job(attempt=make_running_attempt(placement=placement, zone=None, warned_at=NOW - HOUR))

    assert found((), runs(3 * HOUR), *warnings_of(warned)) == Pool(NAME, 0.40, False, 1.0, 1.0)
    assert warnings_of(make_job(attempt=make_running_attempt())) == warnings_of(make_job()) == ()


def test_a_pool_in_any_zone_is_what_was_seen_in_all_of_them():
    pool = found((), runs(3 * HOUR), runs(HOUR, key=make_offering_key(zone="us-east-1b")), offering=make_offering())

    assert pool == Pool("g5.xlarge spot", 0.40, True, 1.0, 1.0)


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

    pools = find_pools(selection, {}, (), NOW)

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
            timedelta(minutes=30),
            id="on-demand",
        ),
        pytest.param(
            make_capacity_failure(offering=zone_scope("us-east-1a", PurchaseOption.SPOT)),
            timedelta(minutes=30),
            id="a subnet",
        ),
    ],
)
def test_a_pool_that_ec2_answered_for_is_tried_again_sooner(failure, avoided_for):
    (sooner,) = retried_sooner({failure.offering: failure}).values()

    assert sooner == replace(failure, until=NOW + avoided_for)
