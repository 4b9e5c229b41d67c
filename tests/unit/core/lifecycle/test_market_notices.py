"""A deadline that cannot be promised, or leaves no time for spot, is told; so is what a job waits for."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_definition, make_offering, make_selection
from relaunch.core.definitions.accelerator import PurchaseOption, PurchasePolicy
from relaunch.core.definitions.targets import Target
from relaunch.core.lifecycle.market_choice import MarketChoice, spare_at_acceptance
from relaunch.core.lifecycle.market_notices import deadline_notices, with_awaited
from relaunch.core.lifecycle.paces import Pace
from relaunch.core.market.policies import PolicyName
from relaunch.core.market.situation import Action, Choice, Place, Rule, Situation
from relaunch.core.selection.rejection import Rejection
from relaunch.core.selection.selection import RejectedOffering

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
DEFINITION = make_definition(estimated_duration=10 * HOUR, deadline=20 * HOUR)
TOO_NEAR = (
    "no market can promise a deadline of 11h8m: estimated_duration with a padding of 10% and a start of 8m takes "
    "11h8m; every job goes to on-demand at once where `purchase` allows it: give a later `deadline`, or a "
    "smaller `padding`"
)
SPOT_ALONE = (
    "no deadline can be promised with `purchase: spot`: spot may be gone for any time; allow on-demand instances too"
)
NONE_ON_DEMAND = "no deadline can be promised: nothing satisfies it on demand, and spot may be gone for any time"


def notices(market: MarketChoice | None = None, **fields) -> tuple[str, ...]:
    return deadline_notices(replace(DEFINITION, **fields), market)


def market_with(on_demand_usd_per_hour: float | None) -> MarketChoice:
    situation = Situation(Place.IDLE, 0.0, 10.0, 0.0, 20.0, 0.1, on_demand_usd_per_hour, ())
    return MarketChoice(Choice(Action.TRY, Rule.SPOT_MAY_BE_HAD), situation, NOW)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        pytest.param({}, (), id="time to spare"),
        pytest.param({"deadline": None}, (), id="no deadline"),
        pytest.param({"deadline": 11 * HOUR + 8 * MINUTE}, (TOO_NEAR,), id="no time for anything"),
        pytest.param(
            {"deadline": 11 * HOUR + 8 * MINUTE, "purchase": PurchasePolicy.ON_DEMAND}, (TOO_NEAR,), id="near"
        ),
        pytest.param({"deadline": 12 * HOUR + 1 * MINUTE}, (), id="a moment to spare"),
        pytest.param({"deadline": HOUR, "estimated_duration": None, "total_steps": 9}, (), id="work that is not known"),
        pytest.param({"purchase": PurchasePolicy.SPOT}, (SPOT_ALONE,), id="spot alone"),
        pytest.param(
            {"purchase": PurchasePolicy.SPOT, "estimated_duration": None, "total_steps": 9},
            (SPOT_ALONE,),
            id="spot alone for steps",
        ),
        pytest.param(
            {"purchase": PurchasePolicy.SPOT, "deadline": 11 * HOUR + 8 * MINUTE},
            (TOO_NEAR, SPOT_ALONE),
            id="spot alone and near",
        ),
        pytest.param({"purchase": PurchasePolicy.RESERVED}, (), id="reserved alone"),
        pytest.param({"purchase": PurchasePolicy.ON_DEMAND, "deadline": 11.5 * HOUR}, (), id="on-demand by itself"),
        pytest.param({"policy": PolicyName.ON_DEMAND_FIRST, "deadline": 11.5 * HOUR}, (), id="on-demand first"),
    ],
)
def test_a_deadline_that_no_market_can_promise_is_told_from_the_definition_alone(fields, told):
    assert notices(**fields) == told


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        pytest.param(
            {"deadline": 11 * HOUR + 9 * MINUTE},
            "11h9m leaves no time to spare: {on_demand} 12h1m",
            id="a minute too early for two starts",
        ),
        pytest.param(
            {"estimated_duration": 20 * HOUR, "deadline": 22.5 * HOUR},
            "22h30m leaves no time to spare: {on_demand} 23h1m",
            id="with checkpoints",
        ),
        pytest.param(
            {"estimated_duration": 20 * HOUR, "deadline": 36 * HOUR, "checkpoint_uri": None},
            "36h leaves no time to spare: {on_demand} 44h31m, {lost} this one is enough",
            id="a checkpoint would do",
        ),
        pytest.param(
            {"estimated_duration": 20 * HOUR, "deadline": 22.5 * HOUR, "checkpoint_uri": None},
            "22h30m leaves no time to spare: {on_demand} 44h31m, {lost} one of more than 23h1m is enough",
            id="a checkpoint alone would not do",
        ),
        pytest.param(
            {"estimated_duration": 20 * MINUTE, "deadline": HOUR, "checkpoint_uri": None},
            "1h leaves no time to spare: {on_demand} 1h15m",
            id="too short for a checkpoint",
        ),
    ],
)
def test_a_deadline_that_keeps_a_job_off_spot_is_told_with_the_one_that_would_not(fields, words):
    on_demand = (
        "every job goes to on-demand at once, though `purchase` allows spot; that is used with a `deadline` of more "
        "than"
    )
    lost = "for without a `checkpoint` an interruption may lose all of the work: give a `checkpoint`, with which"

    told = notices(**fields)

    assert told == (f"a deadline of {words.format(on_demand=on_demand, lost=lost)}",)
    assert notices(market_with(1.0), **fields) == told


def test_the_fastest_on_demand_machine_makes_a_promise_and_the_one_that_is_taken_says_whether_spot_is_used():
    fast = Pace(ON_DEMAND, 2.0, lambda _: None, 10 * HOUR)
    paces = (replace(fast, speed=1.0), fast)

    (near,) = deadline_notices(replace(DEFINITION, deadline=5 * HOUR), None, paces)

    assert "takes 5h38m; every job goes to on-demand at once" in near
    assert deadline_notices(replace(DEFINITION, deadline=7 * HOUR), None, paces) == ()
    for market in (None, replace(market_with(1.0), pace=paces[0])):
        (spare,) = deadline_notices(replace(DEFINITION, deadline=11.5 * HOUR), market, paces)
        assert "used with a `deadline` of more than 12h1m" in spare, "of the cheapest, which it is reckoned at"


def test_a_deadline_is_no_promise_where_nothing_is_sold_on_demand():
    assert notices(market_with(None)) == (NONE_ON_DEMAND,)
    assert notices(market_with(None), deadline=11 * HOUR + 8 * MINUTE) == (TOO_NEAR, NONE_ON_DEMAND)


def test_the_time_to_spare_is_known_where_a_policy_decides():
    assert spare_at_acceptance(DEFINITION) == 20 * HOUR - 12 * HOUR - MINUTE
    assert spare_at_acceptance(replace(DEFINITION, deadline=None, patience=3 * HOUR)) == 3 * HOUR
    assert spare_at_acceptance(replace(DEFINITION, deadline=None)) is None
    assert spare_at_acceptance(replace(DEFINITION, target=Target.ACK)) is None
    assert spare_at_acceptance(replace(DEFINITION, estimated_duration=None, total_steps=9)) is None


SPOT, OTHER = make_offering(), make_offering("g6.xlarge")
ON_DEMAND = make_offering(purchase=PurchaseOption.ON_DEMAND)
WAITS = RejectedOffering(SPOT, "market", Rejection("it waits", is_permanent=False))
REFUSED = RejectedOffering(OTHER, "capacity", Rejection("refused lately", is_permanent=False, retry_at=NOW))
NOT_NOW = RejectedOffering(ON_DEMAND, "market", Rejection("it waits", is_permanent=False))
NEVER = RejectedOffering(OTHER, "gpu", Rejection("too small"))


def test_what_a_job_waits_for_is_the_spot_that_its_policy_or_a_refusal_keeps_it_from():
    waiting = make_selection(kept=(), rejected=(NOT_NOW, WAITS, REFUSED, NEVER))

    awaited = with_awaited(waiting)

    assert awaited == replace(waiting, kept=(SPOT, OTHER), rejected=(NOT_NOW, NEVER))


def test_a_selection_of_what_can_be_had_is_as_it_is():
    selection = make_selection(kept=(ON_DEMAND,), rejected=(WAITS,))

    assert with_awaited(selection) is selection
