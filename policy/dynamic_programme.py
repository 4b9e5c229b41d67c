"""The thresholds of the policy `cheapest`, by a dynamic programme.

The state is the work left, the slack (the time left less the work left), the place and its age group. Every tick the
job pays for its machine, the work or the slack becomes less, and the outage or the spell ends by its hazard. A start
costs the overhead at the price of its machine, and as much slack. A job that is idle with less slack than two overheads
goes on-demand for good ("Can't Be Late", section 3.3). Ages move to the next group with the mean time in a group.

An idle job sees every outage that ends, by its tries. One on-demand sees nothing (Ladder.TRY), but what it believes
since the last refusal, or is told that the pool has capacity (Ladder.BACK, which is solved with availability seen).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from policy.hazards import Hazards
from relaunch.core.market.thresholds import AGE_EDGES, Ladder, Market

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


@dataclass(frozen=True, slots=True)
class Solution:
    """Hours of slack beyond two overheads from which a choice pays, by ladder, tick of work and age group."""

    spare: Array


@dataclass(frozen=True, slots=True)
class _Chances:
    """The chance by age group that an outage or a spell ends within a tick, and what is believed since a refusal.

    `available` is the chance that the pool has capacity by the age group of the outage that refused and the group of
    the time since; `spell` and `outage` are the age groups of what is there then.
    """

    outage: Array
    spell: Array
    available: Array
    spell_groups: Array
    outage_groups: Array


def solve(market: Market, hazards: Hazards, work_hours: float, slack_hours: float) -> Solution:
    """Solve for up to some hours of work and slack; the multiples of the market scale the hazards."""
    programme = _Programme(market, _chances(market, hazards), slack_hours)
    ticks = round(work_hours / TICK)
    spare = np.zeros((len(Ladder), ticks + 1, _GROUPS))
    for tick in range(1, ticks + 1):
        for ladder, hours in programme.step(tick).items():
            spare[ladder, tick] = hours
    return Solution(spare)


class _Programme:
    """Values of all states with some work left, in on-demand hours; each step adds a tick of work."""

    def __init__(self, market: Market, chances: _Chances, slack_hours: float) -> None:
        self._chances = chances
        self._overhead, self._spot = market.overhead, 1 / market.price_ratio
        self._slack = np.arange(round(slack_hours / TICK) + 1) * TICK
        self._is_late = self._slack < 2 * market.overhead - 1e-9
        size = len(self._slack)
        self._idle, self._idle_before = np.zeros((_GROUPS, size)), np.zeros((_GROUPS, size))
        self._on_spot = np.zeros((_GROUPS, size))
        # On-demand: by what the pool is (seen), or by the outage that refused and the time since.
        self._with_outage, self._with_spell = np.zeros((_GROUPS, size)), np.zeros((_GROUPS, size))
        self._unseen = np.zeros((_GROUPS, _GROUPS, size))
        # The age groups after a start, of spells that last until then.
        aging = np.diag(1 - _LEAVES) + np.diag(_LEAVES[:-1], 1)
        self._started = _power((1 - chances.spell)[:, None] * aging, market.overhead / TICK)

    def step(self, tick: int) -> dict[Ladder, Array]:
        """Add a tick of work, and return the spare hours of the ladders."""
        late = tick * TICK + self._overhead
        ends = self._chances.spell[:, None]
        on_spot = self._spot * TICK + (1 - ends) * _older(self._on_spot) + ends * self._idle[0]
        start = self._start(on_spot, tick, late)
        found: dict[Ladder, Array] = {}
        self._step_seen(start, found)
        launched = self._overhead + self._later(self._step_unseen(start, found), self._overhead)
        self._idle_before, self._idle = self._idle, self._wait(start[0], launched, late, found)
        self._on_spot = on_spot
        return found

    def _start(self, on_spot: Array, tick: int, late: float) -> Array:
        """Return the value of a start on spot, by the age of the spell."""
        # With the same work an idle job is not computed yet: what it costs more than with a tick less is extrapolated.
        idle = self._idle[0] + (self._idle[0] - self._idle_before[0] if tick > 1 else TICK)
        half, ends = self._overhead / 2, 1 - self._started.sum(axis=1)[:, None]
        lasting = self._started @ (self._spot * self._overhead + self._later(on_spot, self._overhead))
        value: Array = lasting + ends * (self._spot * half + self._later(idle, half))
        value[:, self._is_late] = late + 1e-3
        return value

    def _step_seen(self, start: Array, found: dict[Ladder, Array]) -> None:
        """Advance the values on-demand with availability seen."""
        outage, spell = self._chances.outage[:, None], self._chances.spell[:, None]
        stay = TICK + (1 - spell) * _older(self._with_spell) + spell * self._with_outage[0]
        found[Ladder.BACK] = self._spare_from(start < stay - 1e-12)
        with_outage = TICK + (1 - outage) * _older(self._with_outage) + outage * self._with_spell[0]
        self._with_spell, self._with_outage = np.minimum(stay, start), with_outage

    def _step_unseen(self, start: Array, found: dict[Ladder, Array]) -> Array:
        """Advance the values on-demand with nothing seen; return those of a refusal just now."""
        chances = self._chances
        stay = TICK + _older(self._unseen)
        granted = np.einsum("aub,bs->aus", chances.spell_groups, start)
        refused = np.einsum("auz,zs->aus", chances.outage_groups, stay[:, 0])
        tried = chances.available[..., None] * granted + (1 - chances.available)[..., None] * refused
        found[Ladder.TRY] = self._spare_from(tried[_REFUSED_AT_GROUP] < stay[_REFUSED_AT_GROUP] - 1e-12)
        self._unseen = np.minimum(stay, tried)
        self._unseen[:, 0] = stay[:, 0]
        just_refused: Array = self._unseen[:, 0]
        return just_refused

    def _wait(self, start: Array, launched: Array, late: float, found: dict[Ladder, Array]) -> Array:
        """Return the values of an idle job whose pool has an outage."""
        outage, size = self._chances.outage, len(self._slack)
        idle, waits = np.empty((_GROUPS, size)), np.zeros((_GROUPS, size), bool)
        idle[:, self._is_late] = late
        before = np.full(_GROUPS, late)
        for index in range(int(self._is_late.sum()), size):
            taken = start[index - 1] if index else late
            waiting = (1 - outage) * (before * (1 - _LEAVES) + np.append(before[1:], before[-1]) * _LEAVES)
            waiting += outage * taken
            waits[:, index] = waiting < launched[:, index] - 1e-12
            before = np.minimum(waiting, launched[:, index])
            idle[:, index] = before
        found[Ladder.WAIT] = self._spare_from(waits)
        return idle

    def _later(self, values: Array, hours: float) -> Array:
        """Return values at that much less slack, interpolated."""
        at = np.arange(len(self._slack)) - hours / TICK
        lower = np.floor(at).astype(int)
        share, last = at - lower, len(self._slack) - 1
        interpolated: Array = (
            values[..., lower.clip(0, last)] * (1 - share) + values[..., (lower + 1).clip(0, last)] * share
        )
        return interpolated

    def _spare_from(self, pays: Flags) -> Array:
        """Return the hours beyond two overheads from which on something pays; infinite if it never does."""
        size = len(self._slack)
        last_not = size - 1 - np.argmax(~pays[..., ::-1], axis=-1)
        slack = np.where(last_not >= size - 1, np.inf, (last_not + 0.5) * TICK)
        spare: Array = np.where(pays.all(axis=-1), 0.0, np.maximum(slack - 2 * self._overhead, 0.0))
        return spare


def _power(matrix: Array, exponent: float) -> Array:
    """Return a power of a matrix, interpolated between whole ones."""
    whole = int(exponent)
    lower: Array = np.linalg.matrix_power(matrix, whole)
    power: Array = lower + (exponent - whole) * (lower @ matrix - lower)
    return power


def _older(values: Array) -> Array:
    """Return the expected values after the age group (the last axis but one) may have been left."""
    older: Array = values * (1 - _LEAVES)[:, None]
    older[..., :-1, :] += values[..., 1:, :] * _LEAVES[:-1, None]
    return older


def _chances(market: Market, hazards: Hazards) -> _Chances:
    outage = 1 - np.exp(-np.array(hazards.outage) * market.outage_ends * TICK)
    spell = 1 - np.exp(-np.array(hazards.spell) * market.spell_ends * TICK)
    chain = np.zeros((2 * _GROUPS, 2 * _GROUPS))
    for group in range(_GROUPS):
        for ends, first, other in ((outage, 0, _GROUPS), (spell, _GROUPS, 0)):
            lasts = 1 - ends[group]
            chain[first + group, first + group] += lasts * (1 - _LEAVES[group])
            chain[first + group, first + min(group + 1, _GROUPS - 1)] += lasts * _LEAVES[group]
            chain[first + group, other] += ends[group]
    after = [np.eye(2 * _GROUPS)[:_GROUPS]]
    for _ in range(int(_SINCE[-1]) + 1):
        after.append(after[-1] @ chain)
    believed = np.stack([_between(after, ticks) for ticks in _SINCE], axis=1)
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
