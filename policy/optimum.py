"""The least that a job costs if the future is known: exact, by dynamic programming over ticks, work and places."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from policy.replay import Job, ticks_of
from policy.series import Series

_UNITS_PER_HOUR = 60
_NEVER = np.float32(1e9)

Costs = np.ndarray[Any, np.dtype[np.float32]]


def least_costs(pools: Sequence[Series], starts: Sequence[int], job: Job) -> list[float]:
    """Return the least cost in hours of on-demand of a job from each start, with all pools together.

    A change to another machine of spot costs a start, from pool to pool too. Work is counted in minutes. A job of
    several pools may stay on a machine for as long as its own pool has capacity. If it leaves on-demand for spot it
    works on there for its overlap.
    """
    return [float(cost) for cost in _Programme(pools, starts, job).solve()]


@dataclass(frozen=True, slots=True)
class _Move:
    """A move from on-demand: the pool it goes to, for how many ticks on-demand had run, and how many ticks it took."""

    pool: int
    left: int
    stage: int


class _Programme:
    """Values of all states at a tick, for all starts at once: costs to go by minutes of work left."""

    def __init__(self, pools: Sequence[Series], starts: Sequence[int], job: Job) -> None:
        gap_hours = pools[0].gap_hours
        self._gap = round(gap_hours * _UNITS_PER_HOUR)
        self._work = round(job.work * _UNITS_PER_HOUR)
        self._overhead = round(job.overhead * _UNITS_PER_HOUR)
        self._overlap = round(job.overlap * _UNITS_PER_HOUR)
        # A start lasts for as many ticks as its overhead reaches into; what is left of the last one is work.
        self._stages, self._overlap_stages = -(-self._overhead // self._gap), -(-self._overlap // self._gap)
        self._ticks = ticks_of(job, pools[0])
        self._prices = [np.float32(gap_hours / job.price_ratio)] * len(pools) + [np.float32(gap_hours)]
        up = np.array([each.available for each in pools], bool)
        at = np.array(starts)[:, None] + np.arange(self._ticks)
        self._up = up[:, at]
        self._starts = len(starts)

    def solve(self) -> Costs:
        idle = self._blank()
        machines = [[self._blank() for _ in range(self._stages + 1)] for _ in self._prices]
        # A move: to a pool, by the stage of the on-demand machine that it left and by its own.
        moves = {move: self._blank() for move in self._all_moves()}
        for tick in range(self._ticks - 1, -1, -1):
            run = [
                [self._advanced(stages, stage, price) for stage in range(self._stages + 1)]
                for stages, price in zip(machines, self._prices, strict=True)
            ]
            moved = {move: self._moved(move, moves, machines) for move in moves}
            for number in range(len(self._prices) - 1):
                gone = ~self._up[number, :, tick]
                for values in (*run[number], *(each for move, each in moved.items() if move.pool == number)):
                    values[gone] = _NEVER
                    values[gone, 0] = 0
            # From anywhere: wait, or start anew on any machine.
            idle = np.minimum.reduce([idle, *(stages[0] for stages in run)])
            machines = [[np.minimum(idle, values) for values in stages] for stages in run]
            moves = {move: np.minimum(idle, values) for move, values in moved.items()}
            for move in (each for each in moves if each.stage == 0):
                left = machines[-1][move.left]
                np.minimum(left, moves[move], out=left)
        return idle[:, self._work]

    def _all_moves(self) -> Iterator[_Move]:
        pools, left, stages = range(len(self._prices) - 1), range(1, self._stages + 1), range(self._overlap_stages)
        return (_Move(*each) for each in product(pools, left, stages))

    def _moved(self, move: _Move, moves: Mapping[_Move, Costs], machines: Sequence[Sequence[Costs]]) -> Costs:
        """Return the values of a tick of a move, in which both machines are paid for and on-demand works."""
        begin, end = self._gap * move.stage, min(self._gap * (move.stage + 1), self._overlap)
        starting = max(self._overhead - self._gap * move.left, 0)
        after = moves.get(replace(move, stage=move.stage + 1), machines[move.pool][min(move.stage + 1, self._stages)])
        on_demand = np.float32((end - begin) / _UNITS_PER_HOUR)
        worked = max(end - max(begin, starting), 0)
        return _ticked(after, worked + self._progress(move.stage), self._prices[move.pool] + on_demand)

    def _blank(self) -> Costs:
        costs = np.full((self._starts, self._work + 1), _NEVER, np.float32)
        costs[:, 0] = 0
        return costs

    def _advanced(self, stages: Sequence[Costs], stage: int, price: np.float32) -> Costs:
        """Return the values of a tick on a machine in a stage of its start."""
        return _ticked(stages[min(stage + 1, self._stages)], self._progress(stage), price)

    def _progress(self, stage: int) -> int:
        """Return the minutes of work in a tick of a machine that has run for so many ticks."""
        return min(max(self._gap * (stage + 1) - self._overhead, 0), self._gap)


def _ticked(after: Costs, progress: int, price: np.float32) -> Costs:
    """Return the values before a tick with some minutes of work and a price."""
    costs = np.empty_like(after)
    costs[:, progress:] = after[:, : after.shape[1] - progress] + price
    costs[:, :progress] = price
    costs[:, 0] = 0
    return costs
