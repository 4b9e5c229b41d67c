"""Every choice of the market policy says why it was made, and what would change it."""

import math
from functools import partial

import pytest

from fakes.builders import NOW
from relaunch.core.lifecycle.market_choice import MarketChoice
from relaunch.core.market.policies import PolicyName
from relaunch.core.market.situation import Action, Choice, Place, Rule, Situation


def reason_of(
    rule: Rule,
    until: float | None = None,
    spare: float | None = 30.0,
    *,
    value: float = 0.0,
    on_demand: float | None = 1.0,
    threshold: float = 0.0,
    policy: PolicyName = PolicyName.CHEAPEST,
    place: Place = Place.IDLE,
) -> str:
    situation = Situation(place, 0.0, 0.0, 0.0, spare, 0.0, on_demand, ())
    choice = Choice(Action.WAIT, rule, until=until, value=value, threshold=threshold)
    return MarketChoice(choice, situation, NOW, policy).reason


of = partial(partial, reason_of)
"""Makes what a test calls: what is called when tests are collected is not measured."""


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (of(Rule.OUTAGE, 0.5), "no spot is to be had, and its limit leaves time to wait; on-demand is "
         "taken from 2026-03-15 15:26 UTC on at the latest; the next look is at 09:56 UTC"),
        (of(Rule.OUTAGE, None, None, threshold=math.inf), "no spot is to be had, and its limit leaves time to wait"),
        (of(Rule.NO_ON_DEMAND), "no spot is to be had, and it may not run on on-demand"),
        (of(Rule.BEHIND, value=-0.5), "it is 30m behind even progress to its limit, so that it takes "
         "on-demand"),
        (of(Rule.SPOT_MAY_BE_HAD, spare=-1.0), "spot may be had, and is cheaper; on-demand is taken "
         "from 09:26 UTC on at the latest"),
        (of(Rule.AHEAD, spare=0.0), "it is 0m ahead of even progress to its limit, and waits for spot; on-demand is "
         "taken from 09:26 UTC on at the latest"),
        (of(Rule.SPOT_MAY_BE_HAD, on_demand=None), "spot may be had, and is cheaper"),
        (of(Rule.SPOT_MAY_BE_HAD, place=Place.ON_DEMAND), "spot may be had, and is cheaper"),
        (of(Rule.SAFETY_NET, spare=-0.5), "only on-demand instances keep its limit from now on: spot would need "
         "30m more than it leaves"),
        (of(Rule.COMES_BACK, value=5.0, threshold=4.5), "leaving on-demand for spot pays: it has 5h to spare, "
         "and a move needs 4h30m"),
    ],
)  # fmt: skip
def test_a_choice_says_why_and_what_would_change_it(reason, text):
    assert reason() == text


STAYS = Rule.STAYS_ON_DEMAND
EVEN = PolicyName.UNIFORM_PROGRESS


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (of(STAYS, value=2.0, threshold=4.5), "does not pay: it has 2h to spare, and a move needs more than "
         "4h30m"),
        (of(STAYS, value=4.5, threshold=4.5), "does not pay: it has 4h30m to spare, and a move needs more than "
         "4h30m"),
        (of(STAYS, 3.0, value=2.0, threshold=math.inf), "does not pay: it has 2h to spare, and no time to "
         "spare is enough for a move; if nothing changes, a move may pay from 12:26 UTC on"),
        (of(STAYS, 0.1, value=5.0, threshold=4.5), "has to wait: what it could be moved to was refused lately; "
         "if nothing changes, a move may pay from 09:32 UTC on"),
        (of(STAYS, 1.0, value=0.25, policy=EVEN), "does not pay: with two more starts it would be 15m behind "
         "even progress to its limit; if nothing changes, a move may pay from 10:26 UTC on"),
        (of(STAYS, 0.1, policy=EVEN), "has to wait: what it could be moved to was refused lately; if nothing "
         "changes, a move may pay from 09:32 UTC on"),
    ],
)  # fmt: skip
def test_a_job_that_stays_says_what_a_move_would_need(reason, text):
    assert reason() == f"leaving on-demand for spot {text}"


def test_a_job_that_waits_no_longer_is_not_said_to_have_time_to_wait():
    situation = Situation(Place.IDLE, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, ())
    market = MarketChoice(Choice(Action.ON_DEMAND, Rule.OUTAGE), situation, NOW)

    assert market.reason.startswith("no spot that costs less is to be had, and to wait for it does not pay")


def test_every_rule_has_a_sentence():
    assert all(reason_of(rule) for rule in Rule)
