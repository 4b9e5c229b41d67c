"""The least that a job costs if the future is known: exact, by dynamic programming over ticks, slack and places."""

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from policy.replay import Job, ticks_of
from policy.series import Series

_NEVER = 1e9
_PER_HOUR = 3_600_000
# Starts are solved side by side, as many as keep so many values at a time.
_VALUES = 4_000_000

Costs = np.ndarray[Any, np.dtype[np.float64]]
_Following = deque[Costs]


def least_costs(pools: Sequence[Series], starts: Sequence[int], job: Job) -> list[float]:
    """Return the least cost in hours of on-demand of a job from each start, with all pools together.

    A change to another machine of spot costs a start, from pool to pool too. A job of several pools may stay on a
    machine for as long as its own pool has capacity. If it leaves on-demand for spot it works on there for its overlap.
    """
    times = _Times.of(job, pools[0])
    at_once = max(_VALUES // ((times.slack + 1) * times.ticks_kept * (len(pools) + 1)), 1)
    batches = (starts[first : first + at_once] for first in range(0, len(starts), at_once))
    return [float(cost) for batch in batches for cost in _Programme(pools, batch, job, times).solve()]


@dataclass(frozen=True, slots=True)
class _Times:
    """Times in the largest unit that all are multiples of; `start_ticks` are those that a start reaches into."""

    gap: int
    overhead: int
    overlap: int
    slack: int
    start_ticks: int
    hours: float

    @property
    def ticks_kept(self) -> int:
        """For how many ticks values are needed: those of a start, and of the start before it that a move cuts short."""
        return max(2 * self.start_ticks if self.overlap else self.start_ticks, 1)

    @classmethod
    def of(cls, job: Job, series: Series) -> "_Times":
        hours = (series.gap_hours, job.overhead, job.overlap, job.work)
        exact = [round(each * _PER_HOUR) for each in hours]
        unit = math.gcd(*exact)
        gap, overhead, overlap, work = (each // unit for each in exact)
        slack = max(ticks_of(job, series) * gap - work, 0)
        return cls(gap, overhead, overlap, slack, -(-overhead // gap), unit / _PER_HOUR)


class _Programme:
    """Costs to go by slack: the time left less the work left, which a machine that works leaves as it is.

    With the future known no start is worth it that is cut short, so that a start is one step of all its ticks. (A move
    that is never completed may save a part of the last tick, for its overlap is paid by the second: that is left out.)
    """

    def __init__(self, pools: Sequence[Series], starts: Sequence[int], job: Job, times: _Times) -> None:
        self._times = times
        self._ticks = ticks_of(job, pools[0])
        self._prices = [times.gap * times.hours / job.price_ratio] * len(pools) + [times.gap * times.hours]
        self._is_in_vain = self._ticks * times.gap * times.hours < job.work - 1e-9
        self._starts = len(starts)
        at = np.array(starts)[:, None] + np.arange(self._ticks)
        up = np.array([each.available[: at.max() + 1] for each in pools], bool)[:, at]
        # By pool, start and tick: for how many ticks on the pool has capacity. On-demand has it always.
        self._lasts = np.zeros((*up.shape[:2], self._ticks + 1), int)
        for tick in range(self._ticks - 1, -1, -1):
            self._lasts[..., tick] = np.where(up[..., tick], self._lasts[..., tick + 1] + 1, 0)

    def solve(self) -> Costs:
        if self._is_in_vain:
            return np.full(self._starts, _NEVER)
        # On each machine after its start, at the ticks that follow.
        on: list[_Following] = [deque([self._over(0)], self._times.ticks_kept) for _ in self._prices]
        idle = self._over(0)
        for tick in range(self._ticks - 1, -1, -1):
            done = self._over(self._ticks - tick)
            running = [price + ticks[0] for price, ticks in zip(self._prices, on, strict=True)]
            for number, values in enumerate(running[:-1]):
                values[self._lasts[number, :, tick] < 1] = _NEVER
            starts = (start for machine in range(len(on)) for start in self._starts_on(machine, tick, on, running))
            idle = np.minimum.reduce([_spent(idle, self._times.gap), done, *starts])
            for move in self._moves(tick, on, after=self._times.start_ticks):
                np.minimum(running[-1], move, out=running[-1])
            for values, ticks in zip(running, on, strict=True):
                ticks.appendleft(np.minimum(values, idle))
        return idle[:, self._times.slack]

    def _over(self, ticks_left: int) -> Costs:
        """Return the costs of all starts where nothing is worked any more: 0 if the work is done."""
        costs = np.full((self._starts, self._times.slack + 1), _NEVER)
        costs[:, self._times.gap * ticks_left :] = 0
        return costs

    def _starts_on(self, machine: int, tick: int, on: list[_Following], running: list[Costs]) -> Iterator[Costs]:
        """Yield the costs of a start on a machine, for on-demand also with a move before that start is over."""
        ticks = self._times.start_ticks
        if ticks == 0:
            yield running[machine]
            return
        if tick + ticks <= self._ticks:
            started = ticks * self._prices[machine] + _spent(on[machine][ticks - 1], self._times.overhead)
            yield self._lasting(started, machine, tick) if machine < len(on) - 1 else started
        if machine == len(on) - 1 and self._times.overlap:
            for after in range(1, ticks):
                yield from self._moves(tick, on, after, is_start=True)

    def _moves(self, tick: int, on: list[_Following], after: int, *, is_start: bool = False) -> Iterator[Costs]:
        """Yield the costs of moves from on-demand to each pool, `after` ticks from its start on.

        Both machines are paid for in the overlap, in which on-demand works as soon as its own start is over.
        """
        times = self._times
        waited = after if is_start else 0
        if not times.overlap or tick + waited + times.start_ticks > self._ticks:
            return
        worked = max(times.overlap - max(times.overhead - after * times.gap, 0), 0)
        paid = waited * self._prices[-1] + times.overlap * times.hours
        spent = waited * times.gap + times.overhead - worked
        for pool in range(len(on) - 1):
            moved = paid + times.start_ticks * self._prices[pool]
            costs = moved + _spent(on[pool][waited + times.start_ticks - 1], spent)
            yield self._lasting(costs, pool, tick + waited)

    def _lasting(self, costs: Costs, pool: int, tick: int) -> Costs:
        costs[self._lasts[pool, :, tick] < self._times.start_ticks] = _NEVER
        return costs


def _spent(values: Costs, slack: int) -> Costs:
    """Return the values with that much less slack."""
    costs = np.full_like(values, _NEVER)
    if slack < values.shape[1]:
        costs[:, slack:] = values[:, : values.shape[1] - slack]
    return costs
