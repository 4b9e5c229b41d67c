"""When a job without a limit on its time leaves on-demand for spot: when the spell is expected to earn the move's cost.

A move costs, in hours of on-demand: on spot the start, and the work since the newest checkpoint once more; later, when
spot is taken away, another start and half the time between two checkpoints, on-demand at the worst. An hour on spot
earns the difference of the prices. How many hours there will be is reckoned from the age of the spell and
from how often spells end in this pool: the mean of what is left of such a spell, and at most what is left of the job.
"""

from collections.abc import Iterable

from relaunch.core.market.situation import Action, Choice, Pool, Rule, Situation
from relaunch.core.market.thresholds import SPELL_ENDS_PER_HOUR, expected_hours
from relaunch.core.records import dataclass

# A job that earns its costs and no more would go to and fro: how soon fresh spells end differs by twice between pools
# (core.market.cheapest).
_CAUTION = 1.4


@dataclass(frozen=True, slots=True)
class _Offer:
    """Leaving on-demand for a pool: how many hours it is expected to last, has to last, and earns (of on-demand)."""

    pool: Pool
    lasts: float
    needed: float
    gain: float

    @property
    def pays(self) -> bool:
        return self.lasts > self.needed


def return_to_spot(situation: Situation) -> Choice:
    """Try the pools for which leaving on-demand pays, the one that earns most first; else stay."""
    offers = sorted(_offers(situation), key=lambda each: -each.gain)
    paying = [each for each in offers if each.pays]
    if not paying:
        lasts, needed = next(((each.lasts, each.needed) for each in offers), (0.0, 0.0))
        return Choice(Action.STAY, Rule.EARNS_TOO_LITTLE, value=lasts, threshold=needed)
    waits = [each.pool.may_be_tried_in(situation.retry_interval) for each in paying]
    ready = [each for each, wait in zip(paying, waits, strict=True) if wait <= 0]
    if not ready:
        return Choice(Action.STAY, Rule.REFUSED_LATELY, until=min(waits), value=paying[0].lasts)
    first = ready[0]
    others = tuple(each.pool.name for each in ready[1:])
    return Choice(
        Action.TRY, Rule.EARNS, first.pool.name, value=first.lasts, threshold=first.needed, alternatives=others
    )


def _offers(situation: Situation) -> Iterable[_Offer]:
    price = situation.on_demand_usd_per_hour or 0.0
    for pool in situation.pools:
        ratio = pool.usd_per_hour / price if price else 1.0
        if ratio < 1:
            yield _offer(situation, pool, ratio)


def _offer(situation: Situation, pool: Pool, ratio: float) -> _Offer:
    # A spell that is not known to have begun is a fresh one, whatever was seen before.
    age = pool.state_age if pool.is_to_be_had(situation.retry_interval) else 0.0
    lasts = expected_hours(SPELL_ENDS_PER_HOUR, age, pool.spell_ends, situation.work_left)
    on_spot = situation.overhead + situation.unsaved
    cost = ratio * on_spot + situation.overhead + situation.between_checkpoints / 2
    return _Offer(pool, lasts, _CAUTION * cost / (1 - ratio), lasts * (1 - ratio) - cost)
