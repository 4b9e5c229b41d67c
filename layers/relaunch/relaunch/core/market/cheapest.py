"""The policy `cheapest`: be where the job is expected to finish in time for the least money.

It follows three ladders of thresholds on the time to spare (core.market.thresholds): how much of it a wait for spot is
worth by the age of the outage, and from how much on a running on-demand machine is left for spot, by the age of the
spell if the pool is known to have capacity, else by the time since it last refused. The longer an outage lasts the
longer it is going to, and the same holds for a spell; Uniform Progress has one line for all ages instead.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial

from relaunch.core.market.published import greedy, stay, take_safety_net, try_any, wait
from relaunch.core.market.situation import Action, Choice, Place, Policy, Pool, Rule, Situation
from relaunch.core.market.thresholds import (
    AGE_EDGES,
    OUTAGE_ENDS_PER_HOUR,
    SPELL_ENDS_PER_HOUR,
    Ladder,
    Market,
    Rungs,
    Thresholds,
    age_group,
)
from relaunch.core.records import dataclass

# A crossing within an age group is found to a minute of this many halvings of at most 64 ticks.
_HALVINGS = 10
# Pools go down together more than by chance: the ends of the outages of other pools count half.
_OTHERS = 0.5
# How soon fresh spells end differs most between pools, by twice and more: leaving on-demand for one that is known to
# have capacity needs so much more than the thresholds say (docs/market-policy.md).
_CAUTION = 1.4

Needed = Callable[[float], float]
"""The spare hours needed after some hours."""


def cheapest(thresholds: Thresholds) -> Policy:
    """Return the policy that follows these thresholds."""
    return partial(_choose, thresholds)


def _choose(thresholds: Thresholds, situation: Situation) -> Choice:
    if situation.place is Place.SPOT:
        return stay(situation)
    if situation.spare is None or situation.on_demand_usd_per_hour is None:
        return greedy(situation)
    if situation.place is Place.ON_DEMAND:
        return _on_demand(thresholds, situation)
    return take_safety_net(situation) or _take_spot(situation) or _idle(thresholds, situation)


def _take_spot(situation: Situation) -> Choice | None:
    return try_any(_by_cost(situation, situation.pools_to_try))


def _by_cost(situation: Situation, pools: Iterable[Pool]) -> list[Pool]:
    """Return the pools that cost less than on-demand, by what an hour of work costs there with its interruptions."""
    limit = situation.on_demand_usd_per_hour or 0.0
    return sorted((each for each in pools if each.usd_per_hour < limit), key=lambda each: _hour(each, situation))


def _hour(pool: Pool, situation: Situation) -> float:
    age = pool.state_age if pool.is_to_be_had(situation.retry_interval) else 0.0
    ends = SPELL_ENDS_PER_HOUR[age_group(age)] * pool.spell_ends
    return pool.usd_per_hour * (1 + ends * situation.overhead)


def _idle(thresholds: Thresholds, situation: Situation) -> Choice:
    pools = _by_cost(situation, situation.pools)
    spare = situation.spare or 0.0
    if not pools:
        return Choice(Action.ON_DEMAND, Rule.OUTAGE, value=spare)
    # A pool that is left out for another reason has no outage that could end, and its state is that of another time.
    closed = [each for each in pools if each.has_capacity is False] or pools
    age = min(each.state_age for each in closed)
    ends = sum(_outage_ends_per_hour(each) for each in closed)
    market = _market(situation, pools[0], outage_ends=ends / OUTAGE_ENDS_PER_HOUR[age_group(age)])
    rungs = thresholds.rungs(Ladder.WAIT, market)

    def needed(after: float) -> float:
        return rungs.spare_needed(situation.work_left, age_group(age + after))

    if spare <= needed(0.0):
        return Choice(Action.ON_DEMAND, Rule.OUTAGE, value=spare, threshold=needed(0.0))
    crossing = _first(lambda after: spare - after <= needed(after), _group_edges(age), spare)
    choice = wait(situation, Rule.OUTAGE, crossing)
    return Choice(choice.action, choice.rule, until=choice.until, value=spare, threshold=needed(0.0))


def _on_demand(thresholds: Thresholds, situation: Situation) -> Choice:
    spare = situation.spare or 0.0
    if spare < 0:
        return Choice(Action.STAY, Rule.SAFETY_NET, value=spare)
    pools = _by_cost(situation, situation.pools)
    offers = _offers(thresholds, situation, pools)
    paying = [each for each in offers if each.pays(spare, 0.0)]
    if paying:
        first = paying[0]
        others = tuple(each.pool for each in paying[1:])
        needed = first.needed(0.0)
        return Choice(Action.TRY, Rule.COMES_BACK, first.pool, value=spare, threshold=needed, alternatives=others)
    until = None
    for offer in offers:
        sooner = offer.pays_in(spare, situation.work_left if until is None else until)
        until = until if sooner is None else sooner
    lowest = min((offer.needed(0.0) for offer in offers), default=0.0)
    return Choice(Action.STAY, Rule.STAYS_ON_DEMAND, until=until, value=spare, threshold=lowest)


@dataclass(frozen=True, slots=True)
class _Offer:
    """Leaving on-demand for a pool: `needed` spare hours, by an age that it goes by, and not before `not_before`."""

    pool: str
    needed: Needed
    age: float
    not_before: float

    def pays(self, spare: float, after: float) -> bool:
        return after >= self.not_before and spare > self.needed(after)

    def pays_in(self, spare: float, at_most: float) -> float | None:
        # Less is needed with time, so that what does not pay at the end pays at no time before.
        if not self.pays(spare, at_most - 1e-6):
            return None
        return _first(partial(self.pays, spare), [self.not_before, *_group_edges(self.age)], at_most)


def _offers(thresholds: Thresholds, situation: Situation, pools: Sequence[Pool]) -> list[_Offer]:
    rungs = cache(thresholds.rungs)  # pools of which nothing was learned share theirs
    all_ends = sum(_outage_ends_per_hour(each) for each in pools)
    return [_leaving(rungs, situation, each, all_ends - _outage_ends_per_hour(each)) for each in pools]


def _leaving(
    rungs_of: Callable[[Ladder, Market], Rungs], situation: Situation, pool: Pool, others_end_per_hour: float
) -> _Offer:
    # The sooner any other pool can be had, the longer on-demand can wait for a spell that has lasted.
    outage_ends = pool.outage_ends + _OTHERS * others_end_per_hour / OUTAGE_ENDS_PER_HOUR[0]
    market = _market(situation, pool, outage_ends=outage_ends)
    ladder = Ladder.TRY
    caution = 1.0
    age = pool.seen_ago if pool.has_capacity is False else AGE_EDGES[-1]
    if pool.is_to_be_had(situation.retry_interval):
        ladder = Ladder.BACK
        caution = _CAUTION
        age = pool.state_age
    rungs = rungs_of(ladder, market)

    def needed(after: float) -> float:
        left = max(situation.work_left - after, 0.0)
        return caution * rungs.spare_needed(left, age_group(age + after))

    return _Offer(pool.name, needed, age, pool.may_be_tried_in(situation.retry_interval))


def _outage_ends_per_hour(pool: Pool) -> float:
    """Return how often an outage of the pool ends, at its age; of one that has no outage, a fresh one's."""
    age = pool.state_age if pool.has_capacity is False else 0.0
    return pool.outage_ends * OUTAGE_ENDS_PER_HOUR[age_group(age)]


def _market(situation: Situation, pool: Pool, *, outage_ends: float) -> Market:
    ratio = (situation.on_demand_usd_per_hour or 0.0) / max(pool.usd_per_hour, 1e-9)
    return Market(situation.overhead, ratio, outage_ends, pool.spell_ends)


def _group_edges(age: float) -> list[float]:
    """Return in how many hours an age comes into each of the later groups."""
    return [edge - age for edge in AGE_EDGES[age_group(age) + 1 :]]


def _first(is_so: Callable[[float], bool], edges: Iterable[float], at_most: float) -> float | None:
    """Return the first time within `at_most` hours when something is so, to a minute; None if it never is.

    Between two edges it becomes so at most once, and stays so until the later one.
    """
    start = 0.0
    for edge in sorted({*(each for each in edges if 0 < each < at_most), at_most}):
        end = edge - 1e-6
        if end > start and is_so(end):
            return start if is_so(start) else _bisect(is_so, start, end)
        start = edge
    return start if is_so(start) else None


def _bisect(is_so: Callable[[float], bool], start: float, end: float) -> float:
    for _ in range(_HALVINGS):
        middle = (start + end) / 2
        start, end = (start, middle) if is_so(middle) else (middle, end)
    return end
