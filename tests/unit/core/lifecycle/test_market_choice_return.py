"""Whether a job without a limit leaves on-demand: what it is known to have left, and the words for it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_placement
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.overheads import Overheads
from relaunch.core.jobs.progress import Progress
from relaunch.core.lifecycle.market_choice import MarketChoice, choose_return
from relaunch.core.market.policies import PolicyName
from relaunch.core.market.situation import Action, Place, Pool, Situation
from relaunch.core.offerings.offering import OfferingKey
from unit.core.lifecycle.table_matrix import with_attempt

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
ON_DEMAND = OfferingKey("g5.xlarge", zone="eu-central-1a", purchase=PurchaseOption.ON_DEMAND)
JOB = with_attempt("rd", placement=make_placement(offering=ON_DEMAND, price_usd_per_hour=1.0))
POOL = Pool("spot", 0.3)
OVERHEADS = Overheads(start=6 * MINUTE, checkpoint_interval=30 * MINUTE)


def chosen(after: timedelta, progress: Progress | None = None, pool: Pool = POOL, **fields) -> MarketChoice:
    return choose_return(replace(JOB, **fields), OVERHEADS, progress, 6 * MINUTE, (pool,), NOW + after)


@pytest.mark.parametrize(
    ("after", "progress", "left"),
    [
        pytest.param(HOUR, None, 1.0, id="as-long-again-as-it-has-run"),
        pytest.param(12 * HOUR, None, 12.0, id="as-long-again-as-it-has-run-for-long"),
        pytest.param(HOUR, Progress(HOUR, 20 * HOUR), 20.0, id="what-is-known"),
        pytest.param(30 * HOUR, Progress(30 * HOUR, timedelta(0)), 30.0, id="beyond-its-estimate"),
    ],
)
def test_what_is_left_is_what_is_known_or_as_long_as_it_has_run(after, progress, left):
    assert chosen(after, progress).situation.work_left == left


def test_the_situation_of_a_job_without_a_limit_has_no_time_that_is_left():
    market = chosen(3 * HOUR, definition=replace(JOB.definition, policy=PolicyName.GREEDY))

    situation = Situation(
        place=Place.ON_DEMAND,
        work_done=3.0,
        work_left=3.0,
        elapsed=3.0,
        time_left=None,
        overhead=0.1,
        on_demand_usd_per_hour=1.0,
        pools=(POOL,),
        retry_interval=pytest.approx(1 / 6),
        unsaved=0.1,
        between_checkpoints=0.5,
    )
    assert market == MarketChoice(market.choice, situation, NOW + 3 * HOUR, PolicyName.GREEDY)


def test_it_says_why_it_goes_and_why_it_stays_and_when_that_is_looked_at_again():
    goes = chosen(12 * HOUR)
    assert (goes.choice.action, goes.until) == (Action.TRY, None)
    assert goes.reason == ("leaving on-demand for spot pays: it is expected to run there for 1h24m, and 49m are enough")
    assert chosen(HOUR).reason == (
        "leaving on-demand for spot does not pay: it is expected to run there for 29m, and a move needs more than 49m"
    )
    waits = chosen(12 * HOUR, pool=replace(POOL, has_capacity=False, seen_ago=0.05))
    assert waits.reason == (
        "leaving on-demand for spot has to wait: what it could be moved to was refused lately; the next look is at "
        f"{waits.until:%H:%M} UTC"
    )
    assert waits.until == NOW + 12 * HOUR + 7 * MINUTE


def test_a_price_of_on_demand_that_is_not_known_is_higher_than_any():
    unknown = with_attempt("rd", placement=make_placement(offering=ON_DEMAND, price_usd_per_hour=0.0))

    market = choose_return(unknown, OVERHEADS, None, 6 * MINUTE, (POOL,), NOW + 12 * HOUR)

    assert market.choice.action is Action.TRY
