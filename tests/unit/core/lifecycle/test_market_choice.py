"""Which purchase options a job may be launched with now."""

import math
from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import (
    NOW,
    make_definition,
    make_job,
    make_offering,
    make_placement,
    make_running_attempt,
    make_selection,
)
from relaunch.adapters.market_thresholds import load_thresholds
from relaunch.core.definitions.accelerator import PurchaseOption, PurchasePolicy
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.overheads import Measured, Overheads
from relaunch.core.jobs.progress import Progress
from relaunch.core.jobs.state import Waiting, WaitReason
from relaunch.core.lifecycle.market_choice import (
    MarketChoice,
    choose,
    choose_again,
    describe_run_on_spot,
    is_in_market,
    market_wait,
    narrow,
    with_market_reason,
)
from relaunch.core.lifecycle.paces import Pace
from relaunch.core.market.policies import PolicyName, policy_named
from relaunch.core.market.published import uniform_progress
from relaunch.core.market.situation import Action, Choice, Place, Pool, Rule, Situation
from relaunch.core.selection.expected_cost import WorkAhead
from relaunch.core.selection.rejection import Rejection
from relaunch.core.selection.selection import RejectedOffering, Selection
from relaunch.core.selection.speeds import Speed, SpeedBasis

HOUR = timedelta(hours=1)
SPOT, OTHER_SPOT = make_offering(), make_offering("g6.xlarge", price_usd_per_hour=0.50)
ON_DEMAND = make_offering(purchase=PurchaseOption.ON_DEMAND)
UNPRICED = replace(ON_DEMAND, price_usd_per_hour=None, on_demand_usd_per_hour=None)
RESERVED = make_offering(purchase=PurchaseOption.RESERVED, price_usd_per_hour=0.0)
ALL = make_selection(kept=(SPOT, OTHER_SPOT, ON_DEMAND), rejected=(), filter_counts=(("any", 3, 3),))
DEFINITION = make_definition(
    estimated_duration=10 * HOUR, deadline=20 * HOUR, padding=0.0, policy=PolicyName.UNIFORM_PROGRESS
)
FREE, BUSY = Pool("g5.xlarge spot", 0.40), Pool("g5.xlarge spot", 0.40, has_capacity=False, seen_ago=0.0, state_age=1.0)
OTHER = Pool("g6.xlarge spot", 0.50)
START = Progress(0 * HOUR, 10 * HOUR)
MEASURED_NOTHING = Overheads()


def chosen(
    definition=DEFINITION,
    progress=START,
    selection=ALL,
    pools=(FREE, OTHER),
    now=NOW,
    overheads: Overheads = MEASURED_NOTHING,
    **job,
) -> MarketChoice:
    policy = policy_named(definition.policy, lambda: pytest.fail("the tests of thresholds are elsewhere"))
    measured = Measured(progress, overheads)
    made = choose(make_job(definition=definition, **job), policy, measured, selection, tuple(pools), now)
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("kept_hours", "action", "rule"), [(4, Action.TRY, Rule.SPOT_MAY_BE_HAD), (2, Action.STAY, Rule.STAYS_ON_DEMAND)]
)
def test_a_job_on_on_demand_pays_for_its_own_machine_while_it_may_leave(kept_hours, action, rule):
    placement = make_placement(price_usd_per_hour=1.25)
    job = make_job(definition=DEFINITION, attempt=make_running_attempt(placement=placement))
    measured = Measured(Progress(kept_hours * HOUR, (10 - kept_hours) * HOUR), MEASURED_NOTHING)

    market = choose_again(job, uniform_progress, measured, (FREE,), NOW + 5 * HOUR)

    assert (market.choice.action, market.choice.rule) == (action, rule)
    assert market == MarketChoice(market.choice, market.situation, NOW + 5 * HOUR, PolicyName.UNIFORM_PROGRESS)
    assert (market.situation.place, market.situation.on_demand_usd_per_hour) == (Place.ON_DEMAND, 1.25)


@pytest.mark.parametrize(
    ("fields", "is_in"),
    [
        ({}, True),
        ({"deadline": None}, False),
        ({"deadline": None, "patience": HOUR}, True),
        ({"target": Target.ACK}, False),
    ],
)
def test_a_policy_decides_for_jobs_with_a_limit_on_ecs(fields, is_in):
    assert is_in_market(make_job(definition=replace(DEFINITION, **fields))) is is_in


def test_the_situation_is_the_work_the_time_and_the_prices():
    situation = chosen(progress=Progress(4 * HOUR, 6 * HOUR), now=NOW + 5 * HOUR).situation

    assert situation == Situation(
        place=Place.IDLE,
        work_done=4.0,
        work_left=6.0,
        elapsed=5.0,
        time_left=15.0,
        overhead=pytest.approx(8 / 60),
        on_demand_usd_per_hour=1.00,
        pools=(FREE, OTHER),
        padding=0.0,
        reserve=0.75,
        retry_interval=pytest.approx(1 / 6),
    )


def test_what_was_measured_of_the_overheads_counts():
    situation = chosen(overheads=Overheads(timedelta(minutes=20), 2 * HOUR)).situation

    assert (situation.overhead, situation.reserve) == (pytest.approx(1 / 3), 2.25)


def test_without_checkpoints_an_interruption_may_lose_all_that_is_left():
    definition = replace(DEFINITION, checkpoint_uri=None)

    assert chosen(definition).situation.reserve == 10.25
    assert chosen(definition).choice.rule is Rule.SAFETY_NET
    assert chosen(replace(definition, deadline=21 * HOUR)).choice.action is Action.TRY


def test_an_interruption_may_lose_the_padding_too():
    padded = replace(DEFINITION, padding=0.1)

    assert chosen(replace(padded, checkpoint_uri=None)).situation.reserve == pytest.approx(0.25 + 11.0)
    assert chosen(padded, progress=Progress(10 * HOUR, 0 * HOUR)).situation.reserve == pytest.approx(0.25 + 0.5)


def test_the_last_minutes_of_work_are_all_that_an_interruption_may_lose():
    assert chosen(progress=Progress(9.9 * HOUR, 0.1 * HOUR)).situation.reserve == pytest.approx(0.35)


def test_the_padding_is_kept_once_for_all_work():
    situation = chosen(replace(DEFINITION, padding=0.1), progress=Progress(9 * HOUR, HOUR)).situation

    assert situation.slack == pytest.approx(20.0 - 2.0)


def test_patience_is_what_is_left_of_it_after_waits_for_capacity():
    definition = replace(DEFINITION, deadline=None, patience=3 * HOUR, padding=0.5)
    waited = chosen(definition, run_seconds=7200.0, now=NOW + 4 * HOUR).situation
    over = chosen(definition, now=NOW + 4 * HOUR)

    assert waited.spare == pytest.approx(1.0)
    assert over.situation.spare == pytest.approx(-1.0)
    assert over.choice.action is Action.ON_DEMAND


def test_a_running_task_is_no_wait():
    definition = replace(DEFINITION, deadline=None, patience=3 * HOUR)
    situation = chosen(definition, attempt=make_running_attempt(), now=NOW + 2 * HOUR).situation

    assert situation.spare == pytest.approx(3.0)


def test_a_wait_for_what_is_no_capacity_takes_nothing_of_the_patience():
    definition = replace(DEFINITION, deadline=None, patience=3 * HOUR)
    situation = chosen(
        definition,
        waiting=Waiting(WaitReason.SLOT, NOW + HOUR, ""),
        held_back_before_seconds=3600.0,
        now=NOW + 5 * HOUR,
    ).situation

    assert situation.spare == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("purchase", "selection", "price"),
    [
        pytest.param(PurchasePolicy.SPOT_THEN_ON_DEMAND, ALL, 1.00, id="kept"),
        pytest.param(PurchasePolicy.SPOT, ALL, None, id="not allowed"),
        pytest.param(PurchasePolicy.SPOT_THEN_ON_DEMAND, make_selection(), None, id="rejected for good"),
        pytest.param(
            PurchasePolicy.SPOT_THEN_ON_DEMAND,
            make_selection(rejected=(RejectedOffering(ON_DEMAND, "any", Rejection("", is_permanent=False)),)),
            1.00,
            id="rejected for now",
        ),
        pytest.param(
            PurchasePolicy.SPOT_THEN_ON_DEMAND,
            make_selection(kept=(UNPRICED,)),
            math.inf,
            id="at an unknown price",
        ),
        pytest.param(
            PurchasePolicy.SPOT_THEN_ON_DEMAND,
            make_selection(kept=(UNPRICED, ON_DEMAND)),
            1.00,
            id="some of it at an unknown price",
        ),
    ],
)
def test_on_demand_is_known_where_the_job_may_run_on_it(purchase, selection, price):
    definition = replace(DEFINITION, purchase=purchase)

    assert chosen(definition, selection=selection).situation.on_demand_usd_per_hour == price


@pytest.mark.parametrize("name", [each for each in PolicyName if each is not PolicyName.ON_DEMAND_FIRST])
def test_spot_is_cheaper_than_on_demand_at_an_unknown_price(name):
    job, measured = make_job(definition=replace(DEFINITION, policy=name)), Measured(START)
    selection = replace(ALL, kept=(SPOT, UNPRICED))

    def choice(pool: Pool) -> Choice:
        made = choose(job, policy_named(name, load_thresholds), measured, selection, (pool,), NOW)
        assert made is not None
        return made.choice

    assert choice(FREE).action is Action.TRY
    assert not math.isnan(choice(BUSY).threshold)
    assert choice(BUSY).action is Action.WAIT


def test_what_is_reserved_needs_no_policy():
    selection = replace(ALL, kept=(SPOT, RESERVED))

    assert choose(make_job(definition=DEFINITION), uniform_progress, Measured(START), selection, (FREE,), NOW) is None


def test_the_definition_names_the_policy():
    assert chosen(replace(DEFINITION, policy=PolicyName.ON_DEMAND_FIRST)).choice.rule is Rule.ON_DEMAND_FIRST
    assert chosen(replace(DEFINITION, policy=PolicyName.GREEDY), pools=(BUSY,)).choice.rule is Rule.OUTAGE


def kept(market: MarketChoice, selection=ALL):
    return narrow(selection, market).kept


def test_a_try_takes_spot_that_may_be_tried_that_of_the_policy_first():
    market = chosen(pools=(FREE, OTHER))

    assert kept(market) == (SPOT, OTHER_SPOT)
    assert kept(chosen(pools=(BUSY, OTHER))) == (OTHER_SPOT,)
    assert kept(_preferring(market, OTHER, FREE)) == (OTHER_SPOT, SPOT)


def test_a_try_takes_no_spot_that_does_not_pay():
    assert kept(_preferring(chosen(pools=(FREE, OTHER)), OTHER)) == (OTHER_SPOT,)


def _preferring(market: MarketChoice, first: Pool, *others: Pool) -> MarketChoice:
    choice = replace(market.choice, pool=first.name, alternatives=tuple(each.name for each in others))
    return replace(market, choice=choice)


def test_a_job_that_has_to_run_takes_on_demand_or_else_what_there_is():
    market = chosen(now=NOW + 10 * HOUR)

    assert market.choice.rule is Rule.SAFETY_NET
    assert kept(market) == (ON_DEMAND,)
    without = narrow(replace(ALL, kept=(SPOT, OTHER_SPOT)), market)
    assert without.kept == (SPOT, OTHER_SPOT)
    assert without.market_reason == f"{market.reason}; none is to be had just now, so that it takes what there is"


def test_what_is_slower_than_the_pace_is_rejected_beside_what_the_policy_does_not_want():
    speeds = {"g5.xlarge": 1.0, "g6.xlarge": 0.5}
    pace = Pace(ON_DEMAND, 1.0, lambda each: Speed(speeds[each.name], 1.0, SpeedBasis.PEAKS), 10 * HOUR)
    selection = replace(ALL, work=WorkAhead(10 * HOUR, has_checkpoint=True))
    market = replace(chosen(), pace=pace)

    unwanted = Rejection(market.reason, is_permanent=False, retry_at=market.until)
    assert narrow(selection, market) == Selection(
        (SPOT,),
        (
            RejectedOffering(ON_DEMAND, "market", unwanted),
            RejectedOffering(OTHER_SPOT, "market", pace.rejection(OTHER_SPOT)),
        ),
        (("any", 3, 3), ("market", 3, 1)),
        selection.work,
        market.reason,
    )


def test_a_job_that_waits_takes_nothing_and_says_why_and_until_when():
    market = chosen(progress=Progress(4 * HOUR, 6 * HOUR), pools=(BUSY,), now=NOW + HOUR)

    selection = narrow(ALL, market)

    reason = (
        "it is 7h ahead of even progress to its limit, and waits for spot; on-demand is taken from 22:25 UTC on "
        "at the latest; the next look is at 10:36 UTC"
    )
    wait = market_wait(selection)
    assert wait == Rejection(reason, is_permanent=False, retry_at=NOW + HOUR + timedelta(minutes=10))
    assert selection.kept == ()
    assert [each.offering for each in selection.rejected] == [SPOT, OTHER_SPOT, ON_DEMAND]
    assert selection.filter_counts == (("any", 3, 3), ("market", 3, 0))


def test_of_what_the_policy_wants_alone_nothing_is_rejected_and_it_says_why_all_the_same():
    selection, market = replace(ALL, kept=(ON_DEMAND,)), chosen(pools=(BUSY,), now=NOW + 4 * HOUR)

    narrowed = narrow(selection, market)

    assert market.choice.rule is Rule.BEHIND
    assert narrowed == replace(selection, market_reason=market.reason)
    assert with_market_reason(make_job(), narrowed).market.reason.startswith("it is ")
    assert market_wait(narrowed) is None


def test_the_pool_of_the_policy_is_the_first_also_where_nothing_is_rejected():
    selection, market = replace(ALL, kept=(SPOT, OTHER_SPOT)), chosen(pools=(FREE, OTHER))

    assert kept(market, selection) == (SPOT, OTHER_SPOT)
    assert kept(_preferring(market, OTHER, FREE), selection) == (OTHER_SPOT, SPOT)


def test_a_job_keeps_why_it_is_launched_there_until_it_is_launched_elsewhere():
    market = chosen(now=NOW + 10 * HOUR)
    launched = with_market_reason(make_job(), narrow(ALL, market))

    assert launched.market.reason == (
        "only on-demand instances keep its limit from now on: spot would need 1h1m more than it leaves"
    )
    assert with_market_reason(launched, None) is launched
    assert with_market_reason(launched, ALL).market.reason == ""


def test_what_other_filters_removed_waits_for_no_market():
    selection = make_selection(kept=(), filter_counts=(("price-cap", 1, 0),))

    assert market_wait(selection) is None


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "cheapest, takes other spot that may be had, waits for some while its limit leaves time, or else takes "
         "on-demand"),
        ({"policy": PolicyName.ON_DEMAND_FIRST}, "on-demand-first, takes on-demand, and spot only if there is none"),
        ({"purchase": PurchasePolicy.SPOT}, "cheapest, takes other spot that may be had, or waits for some: it may not "
         "run on on-demand"),
    ],
)  # fmt: skip
def test_on_spot_only_its_end_changes_anything(fields, text):
    definition = replace(DEFINITION, **{"policy": PolicyName.CHEAPEST, **fields})

    assert describe_run_on_spot(definition) == f"it runs on spot until that is taken away; then its policy, {text}"
