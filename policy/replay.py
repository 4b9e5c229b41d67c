"""Replays of a job over series of spot availability, through the policies that production runs.

A tick is the gap of the series. A job pays for the tick wherever it runs, works in it but for the overhead of its
start, and loses a spot machine at the tick at which the series turns 0 ("Can't Be Late", NSDI 2024, section 5). With
`Knowledge.TRIES` the policy knows what a launcher knows: its tries, each of which is a launch, and the lives of its
machines. With `Knowledge.EVERY_TICK` it is told the state of every pool at every tick, as in the paper.

A job that leaves on-demand for spot stops at once, as in the paper. With an overlap it works on until its new machine
has booted, and pays for both; if the spell ends before that, nothing has happened to it (core.lifecycle.moves).
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from policy.series import Series
from relaunch.core.market.learning import PoolRecord, gang_pool_of, granted, interrupted, pool_of, refused, seen
from relaunch.core.market.situation import Action, Choice, Place, Policy, Pool, Situation

_DONE = 1e-9


class Knowledge(StrEnum):
    """What a policy is told of the market."""

    TRIES = "tries only"
    EVERY_TICK = "every tick seen"


@dataclass(frozen=True, slots=True)
class Job:
    """A job in hours; on-demand costs 1 per hour, spot `1 / price_ratio`.

    `overlap` is the part of the overhead in which on-demand works on, if it is left for spot. `estimate` is what the
    policy is told of the work, as a share of the real one. `failing` is the share of on-demand starts that fail.
    With several `nodes` the series are those of as many at once, which start, work and are lost together; prices and
    costs are those of one of them.
    """

    work: float = 48.0
    time: float = 60.0
    overhead: float = 0.2
    price_ratio: float = 3.145
    overlap: float = 0.0
    estimate: float = 1.0
    padding: float = 0.0
    reserve: float = 0.0
    failing: float = 0.0
    nodes: int = 1


@dataclass(frozen=True, slots=True)
class Decided:
    """A choice at a tick of a run."""

    tick: int
    choice: Choice


class Activity(StrEnum):
    """What a job does during a tick."""

    WAITING = "waiting"
    STARTING = "starting"
    SPOT = "on spot"
    ON_DEMAND = "on-demand"


@dataclass(frozen=True, slots=True)
class Moment:
    """A tick of a run, and the hours of work that are done at its end; a tick with any work in it is no start."""

    activity: Activity
    done: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: `cost` in hours of on-demand, `late` in hours (0 or less: in time), and how often it started."""

    cost: float
    late: float
    starts: int
    decided: tuple[Decided, ...]


def start_ticks(series: Series, job: Job, count: int) -> list[int]:
    """Return evenly spaced ticks of a series at which a job may begin and have all of its time."""
    last = len(series.available) - ticks_of(job, series) - 1
    if last < 0:
        return []
    return sorted({round(last * number / max(count - 1, 1)) for number in range(count)})


def ticks_of(job: Job, series: Series) -> int:
    """Return the ticks of a job's time."""
    return math.ceil(job.time / series.gap_hours - _DONE)


@dataclass(slots=True)
class Run:
    """A job that runs from a tick of series, one for each pool, at the same gap; its `course` grows with each tick."""

    pools: Sequence[Series]
    start: int
    job: Job
    policy: Policy
    knowledge: Knowledge
    chance: random.Random = field(default_factory=lambda: random.Random(0))  # noqa: S311 - draws failing starts
    course: list[Moment] = field(default_factory=list)
    _place: Place = Place.IDLE
    _pool: int = -1
    _begun: float = 0.0
    _starting: float = 0.0
    _overlapping: float = 0.0
    _left_starting: float = 0.0
    _done: float = 0.0
    _cost: float = 0.0
    _starts: int = 0
    _records: list[PoolRecord] = field(default_factory=list)
    _decided: list[Decided] = field(default_factory=list)

    def to_end(self) -> Outcome:
        """Run until the work is done; without a machine for as long as the series last, until their end."""
        gap = self.pools[0].gap_hours
        tick = 0
        self._records = [PoolRecord(each.name) for each in self.pools]
        while self._done < self.job.work - _DONE and self.start + tick < len(self.pools[0].available):
            self._decide(tick, tick * gap)
            is_overlapping = self._overlapping > _DONE
            if self._place is not Place.IDLE:
                self._work(gap)
            self.course.append(Moment(Activity.ON_DEMAND if is_overlapping else self._activity(), self._done))
            tick += 1
        late = tick - ticks_of(self.job, self.pools[0]) if self._done >= self.job.work - _DONE else math.inf
        return Outcome(self._cost, max(late, 0) * gap, self._starts, tuple(self._decided))

    def _work(self, gap: float) -> None:
        self._cost += gap / (self.job.price_ratio if self._place is Place.SPOT else 1.0)
        overlapping = min(gap, self._overlapping)
        self._cost += overlapping
        self._done += max(overlapping - self._left_starting, 0.0)
        self._left_starting = max(self._left_starting - overlapping, 0.0)
        self._overlapping -= overlapping
        alone = gap - overlapping
        self._done += max(alone - self._starting, 0.0)
        self._starting = max(self._starting - alone, 0.0)

    def _activity(self) -> Activity:
        if self._place is Place.IDLE:
            return Activity.WAITING
        if self._starting > _DONE:
            return Activity.STARTING
        return Activity.SPOT if self._place is Place.SPOT else Activity.ON_DEMAND

    def _decide(self, tick: int, now: float) -> None:
        up = [each.available[self.start + tick] for each in self.pools]
        if self._place is Place.SPOT and not up[self._pool]:
            self._records[self._pool] = interrupted(self._records[self._pool], self._begun, now)
            self._place = Place.ON_DEMAND if self._overlapping > _DONE else Place.IDLE
            self._starting = self._left_starting
            self._overlapping = 0.0
        if self.knowledge is Knowledge.EVERY_TICK:
            states = zip(self._records, up, strict=True)
            self._records = [seen(record, now, has_capacity=is_up) for record, is_up in states]
        # On spot every policy stays until the machine is taken away.
        while self._place is not Place.SPOT:
            choice = self.policy(self._situation(now))
            self._decided.append(Decided(tick, choice))
            if choice.action is not Action.TRY:
                if choice.action is Action.ON_DEMAND and self.chance.random() >= self.job.failing:
                    self._begin(Place.ON_DEMAND, -1, now)
                return
            number = next(index for index, each in enumerate(self.pools) if each.name == choice.pool)
            if up[number]:
                self._records[number] = granted(self._records[number], now)
                self._begin(Place.SPOT, number, now)
            else:
                self._records[number] = refused(self._records[number], now)

    def _begin(self, place: Place, pool: int, now: float) -> None:
        overlap = self.job.overlap if self._place is Place.ON_DEMAND else 0.0
        self._overlapping = overlap
        self._left_starting = self._starting
        self._place = place
        self._pool = pool
        self._begun = now
        self._starting = self.job.overhead - overlap
        self._starts += 1

    def _known(self, record: PoolRecord, now: float) -> Pool:
        """Return a pool as the policy knows it; none is asked while the job is on spot."""
        usd_per_hour = 1 / self.job.price_ratio
        nodes = self.job.nodes
        if nodes == 1:
            return pool_of(record, usd_per_hour, now)
        return gang_pool_of(record.name, {nodes: record}, nodes, usd_per_hour, now)

    def _situation(self, now: float) -> Situation:
        known = tuple(self._known(each, now) for each in self._records)
        situation = Situation(
            self._place,
            self._done,
            max(self.job.work * self.job.estimate - self._done, 0.0),
            now,
            self.job.time - now,
            self.job.overhead,
            1.0,
            known,
        )
        gap = self.pools[0].gap_hours
        # It can act at ticks alone: after one more tick of waiting an on-demand start has to be in time.
        reserve = self.job.reserve + max(gap - self.job.overhead, 0.0)
        return replace(situation, padding=self.job.padding, reserve=reserve, retry_interval=gap)
