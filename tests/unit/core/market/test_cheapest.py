import math
import random
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relaunch.adapters.market_thresholds import load_thresholds
from relaunch.core.market.cheapest import cheapest
from relaunch.core.market.learning import PoolRecord, granted, interrupted, pool_of, refused
from relaunch.core.market.published import greedy, on_demand_first, uniform_progress
from relaunch.core.market.situation import Action, Choice, Place, Policy, Pool, Rule, Situation
from relaunch.core.market.thresholds import Ladder, Market, age_group

POLICY = cheapest(load_thresholds())
REFUSED = Pool("a", 1.0, has_capacity=False)
FRESH = Situation(Place.IDLE, 0.0, 48.0, 0.0, 60.0, 0.2, 3.145, (Pool("a", 1.0),))
TICK = 1 / 6


def idle(age: float, slack: float = 12.0, **changes) -> Situation:
    pool = replace(REFUSED, state_age=age)
    return replace(FRESH, time_left=48.0 + slack, pools=(pool,), **changes)


def on_demand(pool: Pool, slack: float = 6.0, **changes) -> Situation:
    situation = replace(FRESH, place=Place.ON_DEMAND, work_left=24.0, time_left=24.0 + slack, pools=(pool,))
    return replace(situation, **changes)


def test_what_is_not_known_is_tried_and_what_is_granted_is_kept():
    assert POLICY(FRESH) == Choice(Action.TRY, Rule.SPOT_MAY_BE_HAD, pool="a")
    assert POLICY(replace(FRESH, place=Place.SPOT, pool="a")).action is Action.STAY


def test_a_fresh_outage_is_waited_for_with_little_time_to_spare_and_an_old_one_is_not():
    fresh, old = POLICY(idle(0.0, slack=6.0)), POLICY(idle(8.0, slack=6.0))

    assert (fresh.action, fresh.rule) == (Action.WAIT, Rule.OUTAGE)
    assert fresh.value > fresh.threshold > 0
    assert (old.action, old.rule) == (Action.ON_DEMAND, Rule.OUTAGE)
    assert old.value <= old.threshold


def test_a_wait_ends_with_the_next_try_or_when_its_threshold_is_crossed():
    assert POLICY(idle(0.0, slack=12.0)).until == pytest.approx(TICK)
    refused_at_once = idle(0.0, slack=6.0, retry_interval=50.0)
    crossing = POLICY(refused_at_once).until

    def after(hours: float) -> Choice:
        pool = replace(REFUSED, state_age=hours)
        return POLICY(replace(refused_at_once, time_left=54.0 - hours, pools=(pool,)))

    assert crossing is not None
    assert after(crossing - 0.02).action is Action.WAIT
    assert after(crossing + 0.02).action is Action.ON_DEMAND


def test_several_pools_are_waited_for_by_the_youngest_outage_and_all_that_may_end_it():
    old = idle(20.0, slack=9.0)
    with_young = replace(old, pools=(*old.pools, replace(REFUSED, name="b", state_age=0.2)))

    assert POLICY(old).action is Action.ON_DEMAND
    assert POLICY(with_young).action is Action.WAIT


def test_of_several_pools_the_one_whose_hour_of_work_costs_least_is_tried():
    lasting = Pool("lasting", 1.05, has_capacity=True, state_age=20.0)
    pools = (Pool("cheap", 1.0), lasting, Pool("dear", 1.2), Pool("above on-demand", 4.0))

    assert POLICY(replace(FRESH, pools=pools)).pool == "lasting"


def test_what_was_seen_of_a_spell_days_ago_makes_no_pool_better():
    pools = (Pool("b", 1.2, has_capacity=True, seen_ago=95.0, state_age=96.0), Pool("a", 1.0))

    assert POLICY(replace(FRESH, pools=pools)).pool == "a"


def test_a_pool_that_is_left_out_for_another_reason_makes_no_outage_younger():
    old = idle(8.0, slack=6.0)
    left_out = (Pool("b", 1.0, avoided_for=0.5), Pool("c", 1.0, has_capacity=True, avoided_for=0.5))

    beside = POLICY(replace(old, pools=(*old.pools, *left_out)))

    assert beside == POLICY(old)
    assert POLICY(replace(old, pools=left_out)).action is Action.WAIT, "nothing says that they refused for long"


def test_on_demand_is_left_for_any_pool_that_pays_and_for_no_other():
    lasting, fresh, short = (
        Pool(name, 1.0, has_capacity=True, state_age=age) for name, age in (("a", 12.0), ("b", 0.0), ("c", 3.0))
    )

    choice = POLICY(replace(on_demand(lasting, slack=1.6), pools=(lasting, fresh, short)))

    assert (choice.rule, choice.pool, choice.alternatives) == (Rule.COMES_BACK, "a", ("c",))


def test_without_a_pool_below_the_price_of_on_demand_nothing_is_waited_for():
    dear = replace(FRESH, pools=(Pool("a", 3.2),))

    assert POLICY(dear).action is Action.ON_DEMAND
    assert POLICY(replace(dear, place=Place.ON_DEMAND)) == Choice(
        Action.STAY, Rule.STAYS_ON_DEMAND, value=pytest.approx(11.6)
    )


def test_on_demand_is_left_for_a_spell_that_has_lasted_and_not_for_a_fresh_one():
    fresh = Pool("a", 1.0, has_capacity=True, state_age=0.0)

    stays = POLICY(on_demand(fresh, slack=2.0))
    leaves = POLICY(on_demand(replace(fresh, state_age=3.0), slack=2.0))

    assert (stays.action, stays.rule) == (Action.STAY, Rule.STAYS_ON_DEMAND)
    assert stays.value <= stays.threshold
    assert leaves == Choice(Action.TRY, Rule.COMES_BACK, "a", value=leaves.value, threshold=leaves.threshold)
    assert leaves.value > leaves.threshold


def threshold_beside(*others: Pool) -> float:
    lasting = Pool("a", 1.0, has_capacity=True, state_age=0.5)
    return POLICY(on_demand(lasting, slack=0.5, pools=(lasting, *others))).threshold


def test_on_demand_is_not_left_for_a_young_spell_beside_pools_that_can_be_had_soon():
    alone, old = threshold_beside(), threshold_beside(replace(REFUSED, name="b", state_age=20.0))
    fresh, two = threshold_beside(replace(REFUSED, name="b")), threshold_beside(REFUSED, replace(REFUSED, name="b"))

    assert 0 < alone < old < fresh < two


def test_a_pool_that_costs_more_than_on_demand_shortens_no_outage():
    assert threshold_beside(Pool("dear", 9.0, has_capacity=False)) == threshold_beside()


def test_leaving_for_a_spell_needs_more_than_the_threshold_says():
    thresholds, lasting = load_thresholds(), Pool("a", 1.0, has_capacity=True, state_age=3.0)
    market = Market(FRESH.overhead, 3.145)

    choice = POLICY(on_demand(lasting, slack=0.41))

    assert choice.threshold == pytest.approx(1.4 * thresholds.spare_needed(Ladder.BACK, market, 24.0, age_group(3.0)))
    assert choice.threshold > choice.value


def test_a_pool_that_refused_is_tried_again_when_that_is_long_ago():
    just_refused = POLICY(on_demand(REFUSED, slack=3.0))

    assert just_refused.action is Action.STAY
    assert just_refused.until is not None
    later = replace(REFUSED, seen_ago=just_refused.until + 0.02, state_age=just_refused.until + 0.02)
    left = 24.0 - just_refused.until
    assert POLICY(on_demand(later, work_left=left, time_left=left + 3.0)).action is Action.TRY
    earlier = replace(REFUSED, seen_ago=just_refused.until - 0.05, state_age=just_refused.until)
    assert POLICY(on_demand(earlier, slack=3.0)).action is Action.STAY


def later(situation: Situation, hours: float) -> Situation:
    pools = tuple(
        replace(each, seen_ago=each.seen_ago + hours, state_age=each.state_age + hours) for each in situation.pools
    )
    left, time_left = situation.work_left - hours, (situation.time_left or 0.0) - hours
    return replace(situation, work_left=left, time_left=time_left, pools=pools)


@pytest.mark.parametrize("ages", [(0.0, 2.0), (2.0, 0.0), (0.5, 0.5)], ids=["dear first", "cheap first", "together"])
def test_of_several_pools_the_next_look_is_when_the_first_of_them_pays(ages):
    pools = tuple(
        Pool(name, price, has_capacity=False, seen_ago=age, state_age=9.0)
        for name, price, age in zip("ab", (1.0, 1.1), ages, strict=True)
    )
    situation = on_demand(pools[0], slack=1.2, pools=pools)

    stays = POLICY(situation)

    assert stays.action is Action.STAY
    assert stays.until is not None
    assert POLICY(later(situation, stays.until - 0.02)).action is Action.STAY
    assert POLICY(later(situation, stays.until + 0.01)).action is Action.TRY


def test_what_was_granted_long_ago_is_as_good_as_not_known():
    granted_long_ago = Pool("a", 1.0, has_capacity=True, seen_ago=9.0, state_age=9.0)

    assert POLICY(on_demand(granted_long_ago)) == POLICY(on_demand(Pool("a", 1.0)))


def test_on_demand_is_kept_once_nothing_else_meets_the_deadline():
    assert POLICY(on_demand(Pool("a", 1.0), slack=0.3)) == Choice(
        Action.STAY, Rule.SAFETY_NET, value=pytest.approx(-0.1)
    )
    assert POLICY(idle(0.0, slack=0.3)).rule is Rule.SAFETY_NET


def test_without_a_limit_or_without_on_demand_it_waits_for_spot():
    assert POLICY(replace(idle(9.0), time_left=None)).action is Action.WAIT
    assert POLICY(replace(idle(9.0), on_demand_usd_per_hour=None)).rule is Rule.NO_ON_DEMAND


def test_a_job_with_no_time_to_spare_waits_no_longer_than_it_has():
    choice = POLICY(replace(idle(0.0), work_left=0.0, time_left=0.4 + 5e-7))

    assert (choice.action, choice.until) == (Action.WAIT, pytest.approx(0.0, abs=1e-6))


@pytest.mark.parametrize("work_left", [0.0, 1e-9, 0.1])
def test_where_no_wait_pays_a_job_that_has_outlived_its_estimate_does_not_wait_either(work_left):
    never_worth_it = idle(0.0, work_left=work_left, overhead=1.0, on_demand_usd_per_hour=1.1, padding=0.1)
    (pool,) = never_worth_it.pools
    short = replace(never_worth_it, pools=(replace(pool, spell_ends=3.0),), time_left=work_left + 12.0)

    assert POLICY(short).action is Action.ON_DEMAND


def test_a_finished_job_needs_no_crossing():
    assert POLICY(on_demand(REFUSED, work_left=0.0)).until is None


WORK, OVERHEAD, PADDING, RESERVE = 12.0, 0.2, 0.2, 1.0
POLICIES = {"cheapest": POLICY, "uniform": uniform_progress, "greedy": greedy, "on-demand": on_demand_first}


@dataclass
class Run:
    """A job of 12 h, with a padding of a fifth, against pools and on-demand starts that fail at random."""

    policy: Policy
    chance: random.Random
    deadline: float
    failing: float
    wrong_by: float
    records: list[PoolRecord]
    up: list[bool] = field(default_factory=list)
    place: Place = Place.IDLE
    pool: int = -1
    begun: float = 0.0
    starting: float = 0.0
    done: float = 0.0

    def late_by(self) -> float:
        """Run to the end, and return how late it is, in hours."""
        self.up = [self.chance.random() < 0.5 for _ in self.records]
        tick = 0
        while self.done < WORK * self.wrong_by - 1e-9:
            self._step(tick * TICK)
            if self.place is not Place.IDLE:
                self.done += max(TICK - self.starting, 0.0)
                self.starting = max(self.starting - TICK, 0.0)
            tick += 1
        return tick * TICK - self.deadline

    def _step(self, now: float) -> None:
        self.up = [each if self.chance.random() > 0.25 else not each for each in self.up]
        if self.place is Place.SPOT and not self.up[self.pool]:
            self.records[self.pool] = interrupted(self.records[self.pool], self.begun, now)
            self.place = Place.IDLE
        while (choice := self.policy(self._situation(now))).action is Action.TRY:
            number = int(choice.pool)
            if self.up[number]:
                self.records[number], self.pool, self.begun = granted(self.records[number], now), number, now
                self.place, self.starting = Place.SPOT, OVERHEAD
                return
            self.records[number] = refused(self.records[number], now)
        if choice.action is Action.ON_DEMAND and self.chance.random() >= self.failing:
            self.place, self.starting = Place.ON_DEMAND, OVERHEAD

    def _situation(self, now: float) -> Situation:
        used = self.pool if self.place is Place.SPOT else -1
        known = [
            pool_of(each, 1.0 + number / 10, now, is_used=number == used) for number, each in enumerate(self.records)
        ]
        left, name = max(WORK - self.done, 0.0), str(used) if used >= 0 else ""
        situation = Situation(
            self.place, self.done, left, now, self.deadline - now, OVERHEAD, 3.145, tuple(known), pool=name
        )
        return replace(situation, padding=PADDING, reserve=RESERVE)


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    slack=st.floats(1.6, 12.0),
    pools=st.integers(1, 3),
    failing=st.sampled_from([0.0, 0.05]),
    wrong_by=st.floats(0.8, 1.2),
)
def test_every_deadline_that_on_demand_could_meet_is_met(policy, seed, slack, pools, failing, wrong_by):
    records = [PoolRecord(str(number)) for number in range(pools)]
    job = Run(
        POLICIES[policy],
        random.Random(seed),  # noqa: S311
        WORK * (1 + PADDING) + slack,
        failing,
        wrong_by,
        records,
    )

    # Ten minutes are the tick of this test, which rounds a job's end up.
    assert job.late_by() <= TICK + 1e-9


def test_a_choice_says_when_it_is_made_again_within_the_work_left():
    for slack in (0.5, 2.0, 8.0, 20.0):
        for age in (0.0, 0.5, 3.0):
            choice = POLICY(on_demand(replace(REFUSED, seen_ago=age, state_age=age), slack=slack))
            assert choice.until is None or 0 <= choice.until <= 24.0
            assert not math.isnan(choice.threshold)
