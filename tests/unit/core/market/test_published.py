from dataclasses import replace

import pytest

from relaunch.core.market.published import greedy, on_demand_first, uniform_progress
from relaunch.core.market.situation import Action, Choice, Place, Policy, Pool, Rule, Situation

UNKNOWN = Pool("a", 1.0)
REFUSED = Pool("a", 1.0, has_capacity=False)
FREE = Pool("a", 1.0, has_capacity=True)
# 48 h of work in 60 h, a start of 0.2 h: the line rises by 0.8 per hour.
FRESH = Situation(Place.IDLE, 0.0, 48.0, 0.0, 60.0, 0.2, 3.0, (UNKNOWN,))


def at(elapsed: float, work_done: float, place: Place = Place.IDLE, *pools: Pool) -> Situation:
    return replace(
        FRESH,
        place=place,
        elapsed=elapsed,
        time_left=60.0 - elapsed,
        work_done=work_done,
        work_left=48.0 - work_done,
        pools=pools or (REFUSED,),
    )


@pytest.mark.parametrize("policy", [greedy, uniform_progress])
def test_spot_is_tried_while_nothing_is_known_and_kept(policy: Policy):
    assert policy(FRESH) == Choice(Action.TRY, Rule.SPOT_MAY_BE_HAD, pool="a")
    assert policy(replace(FRESH, place=Place.SPOT, pool="a")) == Choice(Action.STAY, Rule.RUNS_ON_SPOT)


def test_the_cheapest_pool_that_may_be_tried_is():
    pools = (Pool("a", 0.5, has_capacity=False, seen_ago=0.1), Pool("b", 2.0), Pool("c", 1.0, has_capacity=True))

    assert greedy(replace(FRESH, pools=pools)).pool == "c"


def test_a_pool_that_refused_is_tried_again_after_the_interval():
    refused = replace(REFUSED, seen_ago=0.1)

    waits = greedy(at(1.0, 0.0, Place.IDLE, refused))

    assert (waits.action, waits.until) == (Action.WAIT, pytest.approx(1 / 6 - 0.1))
    assert greedy(at(1.0, 0.0, Place.IDLE, replace(refused, seen_ago=1 / 6))).action is Action.TRY


def test_greedy_waits_until_the_safety_net_and_then_stays_on_demand():
    assert greedy(at(11.5, 0.0)) == Choice(Action.WAIT, Rule.OUTAGE, until=pytest.approx(0.1), value=pytest.approx(0.1))
    assert greedy(at(11.7, 0.0)).action is Action.ON_DEMAND
    assert greedy(at(11.7, 0.0, Place.IDLE, FREE)) == greedy(at(11.7, 0.0))
    assert greedy(at(12.0, 0.2, Place.ON_DEMAND, FREE)) == Choice(Action.STAY, Rule.STAYS_ON_DEMAND)


def test_the_safety_net_comes_earlier_with_a_padding_and_a_reserve():
    situation = at(5.0, 0.0)

    assert greedy(situation).action is Action.WAIT
    assert greedy(replace(situation, padding=0.2)).rule is Rule.SAFETY_NET
    assert greedy(replace(situation, reserve=7.0)).rule is Rule.SAFETY_NET


def test_uniform_progress_waits_only_while_it_is_ahead_of_the_line():
    assert uniform_progress(at(1.0, 0.0)).rule is Rule.BEHIND
    ahead = uniform_progress(at(1.0, 0.88))
    assert (ahead.action, ahead.rule, ahead.until) == (Action.WAIT, Rule.AHEAD, pytest.approx(0.1))
    assert uniform_progress(at(11.7, 0.0)).rule is Rule.SAFETY_NET


def test_uniform_progress_waits_no_longer_than_the_safety_net_leaves():
    # 40 of 48 h are done after 45 of 60: 5 h ahead, and the padding leaves 15 - 8 - 4.8 - 0.4 h.
    ahead = uniform_progress(replace(at(45.0, 40.0), padding=0.1, retry_interval=9.0))

    assert (ahead.rule, ahead.until, ahead.value) == (Rule.AHEAD, pytest.approx(1.8), pytest.approx(5.0))


def test_uniform_progress_goes_back_to_spot_only_if_it_stays_ahead_with_both_starts():
    behind = uniform_progress(at(10.0, 8.1, Place.ON_DEMAND, FREE))

    assert (behind.action, behind.rule) == (Action.STAY, Rule.STAYS_ON_DEMAND)
    # The line is 0.22 h ahead, and comes 0.2 h nearer with each hour.
    assert behind.until == pytest.approx(0.22 / 0.2)
    assert uniform_progress(at(10.0, 8.4, Place.ON_DEMAND, FREE)).action is Action.TRY
    refused = uniform_progress(at(10.0, 8.4, Place.ON_DEMAND))
    assert (refused.action, refused.until) == (Action.STAY, pytest.approx(1 / 6))


def test_uniform_progress_leaves_on_demand_no_more_once_only_that_meets_the_deadline():
    assert uniform_progress(at(59.0, 47.6, Place.ON_DEMAND, FREE)).action is Action.TRY
    assert uniform_progress(at(59.0, 47.3, Place.ON_DEMAND, FREE)) == Choice(Action.STAY, Rule.SAFETY_NET)


def test_a_job_without_slack_never_comes_ahead_of_its_line():
    tight = replace(FRESH, place=Place.ON_DEMAND, time_left=48.5, elapsed=0.0, work_left=48.5)

    assert uniform_progress(replace(tight, reserve=-1.0)).until is None


def test_a_job_without_any_work_is_not_behind():
    nothing_left = replace(FRESH, work_left=0.0, pools=(REFUSED,))

    assert uniform_progress(nothing_left).action is Action.WAIT


def test_without_a_limit_or_without_on_demand_every_policy_waits_for_spot():
    endless = replace(FRESH, time_left=None, pools=(REFUSED,))
    for policy in (greedy, uniform_progress):
        assert policy(endless) == Choice(Action.WAIT, Rule.OUTAGE, until=pytest.approx(1 / 6))
    spot_only = replace(at(59.0, 0.0), on_demand_usd_per_hour=None)
    for policy in (greedy, uniform_progress, on_demand_first):
        assert policy(spot_only) == Choice(Action.WAIT, Rule.NO_ON_DEMAND, until=pytest.approx(1 / 6))
    assert greedy(replace(endless, pools=())) == Choice(Action.WAIT, Rule.OUTAGE)


def test_on_demand_first_is_on_demand_and_takes_nothing_away_from_spot():
    assert on_demand_first(FRESH).action is Action.ON_DEMAND
    assert on_demand_first(at(1.0, 1.0, Place.ON_DEMAND, FREE)).action is Action.STAY
    assert on_demand_first(at(1.0, 1.0, Place.SPOT, FREE)).action is Action.STAY
