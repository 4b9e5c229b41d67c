"""The thresholds of the policy `cheapest`, by a dynamic programme.

The state is the work left, the slack (the time left less the work left), the place and its age group. Every tick the
job pays for its machine, the work or the slack becomes less, and the outage or the spell ends by its hazard. A start
costs the overhead at the price of its machine, and as much slack; it may be cut short at each of its ticks. A job that
is idle with less slack than two overheads goes on-demand for good ("Can't Be Late", section 3.3). Ages move to the next
group with the mean time in a group.

An idle job sees every outage that ends, by its tries. One on-demand sees nothing (Ladder.TRY), but what it believes
since the last refusal, or is told that the pool has capacity (Ladder.BACK, which is solved with availability seen).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from policy.hazards import Hazards
from relaunch.core.market.thresholds import AGE_EDGES, Ladder, Market

# Of values the axes are: markets, age groups, ticks of slack.
Array = np.ndarray[Any, np.dtype[np.float64]]
Flags = np.ndarray[Any, np.dtype[np.bool_]]
TICK = 1 / 6
_GROUPS = len(AGE_EDGES)
# The chance that an age leaves its group within a tick; the last group is never left.
_LEAVES = np.append(TICK / np.diff(np.array(AGE_EDGES)), 0.0)
# The ticks since a refusal that stand for the groups of that time.
_SINCE = (0.0, 1.0, 2.5, 5.5, 11.5, 23.5, 47.5, 96.0)
# What an outage was old when it refused, of which the ladder TRY is for all.
_REFUSED_AT_GROUP = 2
# What pays by no more than this is rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class _Chances:
    """The chance by age group that an outage or a spell ends within a tick, and what is believed since a refusal.

    `available` is the chance that the pool has capacity by the age group of the outage that refused and the group of
    the time since; `spell_groups` and `outage_groups` are the age groups of what is there then. The first axis of all
    is the market.
    """

    outage: Array
    spell: Array
    available: Array
    spell_groups: Array
    outage_groups: Array


def solve(markets: Sequence[Market], hazards: Hazards, work_hours: float, slack_hours: float) -> Array:
    """Return the spare hours (slack beyond two overheads) from which choices pay, up to some hours of work and slack.

    The axes are: markets, ladders, ticks of work left, age groups. The markets, all of one overhead, are solved side by
    side; their multiples scale the hazards.
    """
    (overhead,) = {each.overhead for each in markets}
    prices = np.array([1 / each.price_ratio for each in markets])
    programme = _Programme(overhead, prices, _chances(markets, hazards), slack_hours)
    ticks = round(work_hours / TICK)
    spare = np.zeros((len(markets), len(Ladder), ticks + 1, _GROUPS))
    for tick in range(1, ticks + 1):
        for ladder, hours in programme.step(tick).items():
            spare[:, ladder, tick] = hours
    return spare


class _Programme:
    """Values of all states with some work left, in ticks of on-demand; each step adds a tick of work."""

    def __init__(self, overhead: float, prices: Array, chances: _Chances, slack_hours: float) -> None:
        self._chances = chances
        self._price = prices[:, None, None]
        self._overhead = overhead / TICK
        self._slack = np.arange(round(slack_hours / TICK) + 1)
        self._is_late = self._slack < 2 * self._overhead - 1e-9
        # A start has some whole ticks, and a part of the next one, in the rest of which the job works.
        self._whole = int(self._overhead + 1e-9)
        self._part = max(self._overhead - self._whole, 0.0)
        shape = (len(prices), _GROUPS, len(self._slack))
        self._idle = np.zeros(shape)
        self._on_spot = np.zeros(shape)
        # On-demand: by what the pool is (seen), or by the outage that refused and the time since.
        self._with_outage = np.zeros(shape)
        self._with_spell = np.zeros(shape)
        self._unseen = np.zeros((len(prices), _GROUPS, *shape[1:]))

    def step(self, tick: int) -> dict[Ladder, Array]:
        """Add a tick of work, and return the spare hours of the ladders, by market and age group."""
        ends = self._chances.spell[..., None]
        self._on_spot = self._price + (1 - ends) * _older(self._on_spot) + ends * self._idle[:, :1]
        stay = 1 + _older(self._unseen)
        launched = self._overhead + self._later(stay[:, :, 0], self._overhead)
        start, waits = self._start_or_wait(launched, tick + self._overhead)
        back = self._step_seen(start)
        tried = self._step_unseen(start, stay)
        return {ladder: self._spare_from(pays) for ladder, pays in zip(Ladder, (waits, back, tried), strict=True)}

    def _start_or_wait(self, launched: Array, late: float) -> tuple[Array, Flags]:
        """Solve for an idle job; return the values of a start on spot by the age of the spell, and where waiting pays.

        A start that is cut short leaves the same work and less slack, as a wait does: both are solved by ascending
        slack. `late` is the value without the slack for anything but on-demand at once.
        """
        outage = self._chances.outage
        spell = self._chances.spell
        price = self._price[..., 0]
        last_part = self._price * self._part + self._later(self._on_spot, self._part)
        start = np.empty_like(last_part)
        waits = np.zeros(last_part.shape, bool)
        # By the whole ticks that a start still has.
        starting = np.full((self._whole + 1, *outage.shape), late)
        idle = np.full(outage.shape, late)
        for slack in self._slack:
            cut_short = price + spell * idle[:, :1]
            starting[1:] = cut_short + (1 - spell) * _aged(starting[:-1])
            starting[0] = last_part[..., slack]
            waiting = (1 - outage) * _aged(idle) + outage * (start[:, :1, slack - 1] if slack else late)
            if self._is_late[slack]:
                start[..., slack] = late + 1e-3
                idle = np.full(outage.shape, late)
            else:
                start[..., slack] = starting[-1]
                waits[..., slack] = waiting < launched[..., slack] - _ROUNDING
                idle = np.minimum(waiting, launched[..., slack])
            self._idle[..., slack] = idle
        return start, waits

    def _step_seen(self, start: Array) -> Flags:
        """Advance the values on-demand with availability seen; return where a start pays."""
        outage = self._chances.outage[..., None]
        spell = self._chances.spell[..., None]
        stay = 1 + (1 - spell) * _older(self._with_spell) + spell * self._with_outage[:, :1]
        self._with_outage = 1 + (1 - outage) * _older(self._with_outage) + outage * self._with_spell[:, :1]
        self._with_spell = np.minimum(stay, start)
        pays: Flags = start < stay - _ROUNDING
        return pays

    def _step_unseen(self, start: Array, stay: Array) -> Flags:
        """Advance the values on-demand with nothing seen; return where a try pays."""
        chances = self._chances
        granted = chances.spell_groups @ start[:, None]
        refused = chances.outage_groups @ stay[:, None, :, 0]
        tried = refused + chances.available[..., None] * (granted - refused)
        self._unseen = np.minimum(stay, tried)
        self._unseen[:, :, 0] = stay[:, :, 0]
        pays: Flags = (tried < stay - _ROUNDING)[:, _REFUSED_AT_GROUP]
        return pays

    def _later(self, values: Array, ticks: float) -> Array:
        """Return values at that much less slack, interpolated."""
        at = np.arange(len(self._slack)) - ticks
        lower = np.floor(at).astype(int)
        share = at - lower
        last = len(self._slack) - 1
        interpolated: Array = (
            values[..., lower.clip(0, last)] * (1 - share) + values[..., (lower + 1).clip(0, last)] * share
        )
        return interpolated

    def _spare_from(self, pays: Flags) -> Array:
        """Return the hours beyond two overheads from which on something pays; infinite if it never does."""
        size = len(self._slack)
        last_not = size - 1 - np.argmax(~pays[..., ::-1], axis=-1)
        slack = np.where(last_not >= size - 1, np.inf, (last_not + 0.5) * TICK)
        return np.where(pays.all(axis=-1), 0.0, np.maximum(slack - 2 * self._overhead * TICK, 0.0))


def _older(values: Array) -> Array:
    """Return the expected values after the age group (the last axis but one) may have been left."""
    older: Array = values * (1 - _LEAVES)[:, None]
    older[..., :-1, :] += values[..., 1:, :] * _LEAVES[:-1, None]
    return older


def _aged(values: Array) -> Array:
    """Return the same of values whose last axis is the age group."""
    aged: Array = values * (1 - _LEAVES)
    aged[..., :-1] += values[..., 1:] * _LEAVES[:-1]
    return aged


def _chances(markets: Sequence[Market], hazards: Hazards) -> _Chances:
    outage_ends = np.array([each.outage_ends for each in markets])[:, None]
    spell_ends = np.array([each.spell_ends for each in markets])[:, None]
    outage = 1 - np.exp(-np.array(hazards.outage) * outage_ends * TICK)
    spell = 1 - np.exp(-np.array(hazards.spell) * spell_ends * TICK)
    chain = np.zeros((len(markets), 2 * _GROUPS, 2 * _GROUPS))
    for group in range(_GROUPS):
        for ends, first, other in ((outage, 0, _GROUPS), (spell, _GROUPS, 0)):
            lasts = 1 - ends[:, group]
            chain[:, first + group, first + group] += lasts * (1 - _LEAVES[group])
            chain[:, first + group, first + min(group + 1, _GROUPS - 1)] += lasts * _LEAVES[group]
            chain[:, first + group, other] += ends[:, group]
    after = [np.tile(np.eye(2 * _GROUPS)[:_GROUPS], (len(markets), 1, 1))]
    for _ in range(int(_SINCE[-1]) + 1):
        after.append(after[-1] @ chain)
    believed = np.stack([_between(after, ticks) for ticks in _SINCE], axis=2)
    available = believed[..., _GROUPS:].sum(axis=-1)
    return _Chances(
        outage,
        spell,
        available,
        believed[..., _GROUPS:] / np.maximum(available, 1e-12)[..., None],
        believed[..., :_GROUPS] / np.maximum(1 - available, 1e-12)[..., None],
    )


def _between(after: list[Array], ticks: float) -> Array:
    whole = int(ticks)
    following = after[min(whole + 1, len(after) - 1)]
    between: Array = after[whole] * (1 - (ticks - whole)) + following * (ticks - whole)
    return between
