"""When a job without a limit leaves on-demand for spot: what a spell lasts, what a move costs, which pool is tried."""

import math
from dataclasses import replace

import pytest

from relaunch.core.market.returning import return_to_spot
from relaunch.core.market.situation import Action, Place, Pool, Rule, Situation
from relaunch.core.market.thresholds import SPELL_ENDS_PER_HOUR, expected_hours

ALWAYS = 1e6
UNSEEN = Pool("a", 0.3)
ON_DEMAND = Situation(
    Place.ON_DEMAND,
    work_done=3.0,
    work_left=20.0,
    elapsed=3.0,
    time_left=None,
    overhead=0.1,
    on_demand_usd_per_hour=1.0,
    pools=(UNSEEN,),
    unsaved=0.1,
    between_checkpoints=0.5,
)


def test_a_state_that_ends_at_a_constant_rate_lasts_as_long_as_that_says():
    always_two = (2.0,) * len(SPELL_ENDS_PER_HOUR)

    assert expected_hours(always_two, 0.0, 1.0, ALWAYS) == pytest.approx(0.5)
    assert expected_hours(always_two, 7.0, 0.5, ALWAYS) == pytest.approx(1.0)
    assert expected_hours(always_two, 0.2, 1.0, 1.0) == pytest.approx((1 - math.exp(-2.0)) / 2.0)
    assert expected_hours(always_two, 0.2, 1.0, 0.0) == 0


def test_an_older_spell_lasts_longer_and_never_longer_than_what_is_left():
    lasts = [expected_hours(SPELL_ENDS_PER_HOUR, age, 1.0, ALWAYS) for age in (0.0, 1.0, 4.0, 12.0)]

    assert lasts == sorted(lasts)
    assert lasts[-1] == pytest.approx(1 / SPELL_ENDS_PER_HOUR[-1])
    assert expected_hours(SPELL_ENDS_PER_HOUR, 12.0, 1.0, 2.0) < 2


def test_what_is_expected_to_earn_its_costs_is_tried():
    choice = return_to_spot(ON_DEMAND)

    assert (choice.action, choice.rule, choice.pool, choice.alternatives) == (Action.TRY, Rule.EARNS, "a", ())
    # 0.3 * (0.1 + 0.1) on spot, 0.1 + 0.25 when it is taken away, with 0.4 of caution, at 0.7 an hour.
    assert choice.threshold == pytest.approx(1.4 * 0.41 / 0.7)
    assert choice.value == pytest.approx(expected_hours(SPELL_ENDS_PER_HOUR, 0.0, 1.0, 20.0))


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"work_left": 0.8}, id="too-little-is-left"),
        pytest.param({"overhead": 0.5}, id="starts-take-long"),
        pytest.param({"between_checkpoints": 2.0}, id="an-interruption-loses-much"),
        pytest.param({"unsaved": 5.0}, id="a-move-loses-much"),
        pytest.param({"pools": (replace(UNSEEN, usd_per_hour=0.7),)}, id="spot-costs-little-less"),
        pytest.param({"pools": (replace(UNSEEN, spell_ends=3.0),)}, id="its-spells-are-short"),
    ],
)
def test_what_does_not_earn_its_costs_is_not_tried(fields):
    choice = return_to_spot(replace(ON_DEMAND, **fields))

    assert (choice.action, choice.rule, choice.until) == (Action.STAY, Rule.EARNS_TOO_LITTLE, None)
    assert 0 < choice.value <= choice.threshold


@pytest.mark.parametrize("price", [1.0, None, 0.3])
def test_without_a_pool_that_costs_less_it_stays(price):
    pools = () if price == 1.0 else (UNSEEN,)
    choice = return_to_spot(replace(ON_DEMAND, pools=pools, on_demand_usd_per_hour=price))

    assert (choice.action, choice.rule, choice.value, choice.threshold) == (Action.STAY, Rule.EARNS_TOO_LITTLE, 0, 0)


def test_a_price_that_is_not_known_is_higher_than_any():
    assert return_to_spot(replace(ON_DEMAND, on_demand_usd_per_hour=math.inf)).action is Action.TRY


def test_a_spell_that_is_known_to_last_is_worth_more_and_an_old_one_that_nobody_saw_is_not():
    short = replace(ON_DEMAND, work_left=1.0)
    lasting = replace(UNSEEN, has_capacity=True, seen_ago=0.1, state_age=6.0)

    assert return_to_spot(replace(short, pools=(lasting,))).action is Action.TRY
    assert return_to_spot(replace(short, pools=(replace(lasting, seen_ago=1.0),))).action is Action.STAY


def test_what_refused_lately_is_waited_for_and_what_pays_is_tried_in_the_order_of_its_gain():
    refused = replace(UNSEEN, name="b", usd_per_hour=0.2, has_capacity=False, seen_ago=0.05)
    dear = replace(UNSEEN, name="c", usd_per_hour=0.35)

    waits = return_to_spot(replace(ON_DEMAND, pools=(refused, replace(dear, avoided_for=0.5))))
    assert (waits.action, waits.rule) == (Action.STAY, Rule.REFUSED_LATELY)
    assert waits.until == pytest.approx(1 / 6 - 0.05)
    tries = return_to_spot(replace(ON_DEMAND, pools=(dear, UNSEEN, refused)))
    assert (tries.pool, tries.alternatives) == ("a", ("c",))
