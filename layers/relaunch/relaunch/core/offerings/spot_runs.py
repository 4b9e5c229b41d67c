"""What the runs of this stack say of spot: what ran where, for how long, and what was interrupted.

Runs are added up per offering, zone (where it is known) and day (UTC). One that ended a HALF_LIFE ago counts half. The
rate is the mean of the posterior distribution of a Poisson process with a gamma prior: before anything was seen, the
usual rate of the type (core.offerings.offering) weighs as much as PRIOR_HOURS of running.

A run on several machines at once (`nodes`) is lost with the first of them. For one machine of its pool it counts as
one that runs for as much longer as one machine is expected to live (core.offerings.offering), and for runs on as many
machines as what it was: their rate is the mean of a posterior of its own, before which that of one machine, without
their own runs, is expected to grow as usual.

A pool is one offering on spot. The facts are those of the capacity memory and of the runs on spot; the record says what
was seen last, and how often outages and spells ended compared with the usual (core.market.learning). Its times are
hours since 1970 (UTC). What several machines at once saw of a pool is a record of its own for each number of them.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from functools import partial

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.market.learning import PoolRecord, granted, interrupted, left, refused, taken
from relaunch.core.offerings.capacity_memory import is_scope
from relaunch.core.offerings.offering import CapacityFailure, Offering, OfferingKey, hazard_of
from relaunch.core.records import dataclass

HALF_LIFE = timedelta(days=1)
KEPT_FOR = timedelta(days=5)
"""After this time a run counts a thirty-second, less than the prior is uncertain by."""
# At the highest usual rate, 0.1 per hour, one interruption is expected in this time: the first one doubles the rate.
PRIOR_HOURS = 10.0
REBALANCE_WEIGHT = 0.5
"""A rebalance recommendation is a sign of an interruption; if that follows, it counts by itself."""
DOUBTED_FOR = timedelta(hours=4)
"""After this time nine of ten shortages have ended."""
# Of the outages in the traces of "Can't Be Late" (NSDI 2024; October 2022, eight series) a half ended within 20
# minutes, 22 % lasted longer than 80 and 10 % longer than four hours: about 20 minutes / (20 minutes + age).
_HALF_ENDED = timedelta(minutes=20)


class Observed(StrEnum):
    """What was observed of a run on spot."""

    START = "start"
    END = "end"
    INTERRUPTION = "interruption"
    REBALANCE = "rebalance"


ShortageRisks = Mapping[OfferingKey, float]
"""How often each offering was interrupted since something last started there, less by age: the more, the likelier a
shortage that still lasts."""

_INTERRUPTIONS = {Observed.INTERRUPTION: 1.0, Observed.REBALANCE: REBALANCE_WEIGHT}


@dataclass(frozen=True, slots=True)
class SpotRun:
    """One observation of a run on spot: its start, or its end after `hours`.

    `run_id` tells runs apart; the zone of `offering` is where it ran. Of a machine of our own
    (`on_own_machine`) its launch said what EC2 had, and the start of a task on it says no more. It ran on so many
    `nodes`, and `hours` are then those of one machine (`hours_of_one`), as releases count it that know no more.
    """

    offering: OfferingKey
    run_id: str
    what: Observed
    at: datetime
    hours: float = 0.0
    on_own_machine: bool = False
    nodes: int = 1

    @property
    def lasted_hours(self) -> float:
        """Return for how many hours it ran, on all its nodes together."""
        return self.hours / hazard_of(self.nodes)

    @property
    def interruptions(self) -> float:
        """Return how many interruptions it counts as."""
        return _INTERRUPTIONS.get(self.what, 0.0)


def hours_of_one(hours: float, nodes: int) -> float:
    """Return for how many hours one machine runs until as many interruptions as so many at once have in some hours."""
    return hours * hazard_of(nodes)


@dataclass(frozen=True, slots=True)
class GangRuns:
    """The runs on so many machines at once, added up: their hours, each counted once, and their interruptions."""

    nodes: int
    hours: float
    interruptions: float


@dataclass(frozen=True, slots=True)
class SpotRuns:
    """The runs of an offering on one day (UTC), added up, and when the latest was interrupted or started.

    `interrupted_in_a_row` is the number of interruptions since the latest start. Those of several machines are among
    them, as those of one; `gangs` are what they were.
    """

    offering: OfferingKey
    day: date
    hours: float = 0.0
    interruptions: float = 0.0
    interrupted_at: datetime | None = None
    started_at: datetime | None = None
    interrupted_in_a_row: int = 0
    gangs: tuple[GangRuns, ...] = ()


def first_day(now: datetime) -> date:
    """Return the first day whose runs still count."""
    return (now - KEPT_FOR).astimezone(UTC).date()


def with_observed_rates(
    offerings: Iterable[Offering], observed: Iterable[SpotRuns], now: datetime
) -> tuple[Offering, ...]:
    """Return the offerings, with the observed interruption rates where there were runs.

    An offering without a zone may run in any: the runs in all zones count for it. One in a zone has those of the zone.
    """
    seen: dict[OfferingKey, _Seen] = defaultdict(_Seen)
    for key, runs in _by_key(observed):
        seen[key].add(runs, _weight(runs.day, now))
    return tuple(
        replace(each, interruptions_per_hour=seen[each.key].rate(each), gang_rates=seen[each.key].gang_rates(each))
        if each.purchase is PurchaseOption.SPOT and each.key in seen
        else each
        for each in offerings
    )


class _Seen:
    """The hours and interruptions that were seen of an offering, weighted by age; by number of machines too."""

    def __init__(self) -> None:
        self._hours = 0.0
        self._interruptions = 0.0
        self._gangs: dict[int, tuple[float, float]] = defaultdict(lambda: (0.0, 0.0))

    def add(self, runs: SpotRuns, weight: float) -> None:
        self._hours += weight * runs.hours
        self._interruptions += weight * runs.interruptions
        for each in runs.gangs:
            hours, interruptions = self._gangs[each.nodes]
            self._gangs[each.nodes] = (hours + weight * each.hours, interruptions + weight * each.interruptions)

    def rate(self, offering: Offering) -> float:
        return _rate(offering.interruption_rate, self._hours, self._interruptions)

    def gang_rates(self, offering: Offering) -> tuple[tuple[int, float], ...]:
        return tuple((nodes, self._gang_rate(offering, nodes)) for nodes in sorted(self._gangs))

    def _gang_rate(self, offering: Offering, nodes: int) -> float:
        hours, interruptions = self._gangs[nodes]
        # What others have seen: their own runs count once.
        others = max(self._hours - hours_of_one(hours, nodes), 0.0)
        of_one = _rate(offering.interruption_rate, others, max(self._interruptions - interruptions, 0.0))
        return _rate(of_one * hazard_of(nodes), hours, interruptions)


def find_shortage_risks(observed: Sequence[SpotRuns], now: datetime) -> ShortageRisks:
    """Return the offerings with an interruption in the last DOUBTED_FOR, and nothing started since.

    Interruptions count by the share of shortages that last longer than the age of the latest. None of the offerings is
    avoided: selection prefers others that cost about the same (core.selection.selection).
    """
    started: dict[OfferingKey, datetime] = {}
    for key, runs in _by_key(observed):
        if runs.started_at is not None:
            started[key] = max(runs.started_at, started.get(key, runs.started_at))
    risks: dict[OfferingKey, float] = defaultdict(float)
    for key, runs in _by_key(observed):
        at = runs.interrupted_at
        if at is not None and now - at < DOUBTED_FOR and at >= started.get(key, at):
            age = max(now - at, timedelta(0))
            risks[key] += runs.interrupted_in_a_row * (_HALF_ENDED / (_HALF_ENDED + age))
    return risks


def _by_key(observed: Iterable[SpotRuns]) -> Iterator[tuple[OfferingKey, SpotRuns]]:
    """Yield the runs under their offering, and those of a zone under the offering in any zone too."""
    for runs in observed:
        for key in {runs.offering, replace(runs.offering, zone=None)}:
            yield key, runs


def _weight(day: date, now: datetime) -> float:
    noon = datetime.combine(day, time(12), UTC)
    weight: float = 0.5 ** (max(now - noon, timedelta(0)) / HALF_LIFE)
    return weight


def _rate(prior_per_hour: float, hours: float, interruptions: float) -> float:
    return (prior_per_hour * PRIOR_HOURS + interruptions) / (PRIOR_HOURS + hours)


_MINUTE = 1 / 60
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

PoolChange = Callable[[PoolRecord], PoolRecord]
"""What a fact changes in a record. A fact that comes twice, or after a later one, changes nothing."""


@dataclass(frozen=True, slots=True)
class SpotPool:
    """The record of a pool for so many machines at once, as the jobs table has it; `version` is that of its item.

    It is 0 if there is none.
    """

    offering: OfferingKey
    record: PoolRecord
    version: int = 0
    nodes: int = 1

    @property
    def forgotten_at(self) -> datetime:
        """Return when nothing that the record says counts any more."""
        return pool_time(self.record.seen_at) + KEPT_FOR


def unknown_pool(offering: OfferingKey, nodes: int = 1) -> SpotPool:
    """Return a pool of which nothing is known for so many machines at once."""
    return SpotPool(offering, PoolRecord(str(offering)), nodes=nodes)


def pool_hours(at: datetime) -> float:
    """Return a time as records have it."""
    return (at - _EPOCH) / timedelta(hours=1)


def pool_time(hours: float) -> datetime:
    """Return a time that records have."""
    return _EPOCH + timedelta(hours=hours)


def is_news(before: PoolRecord, after: PoolRecord) -> bool:
    """Return whether a changed record says more than was known a minute ago.

    A hundred machines that start in one pool, or that one outage takes, all say the same, and would all write one item.
    """
    is_other_state = (before.has_capacity, before.is_end_counted) != (after.has_capacity, after.is_end_counted)
    return is_other_state or after.seen_at - before.seen_at >= _MINUTE


def change_by_failure(failure: CapacityFailure) -> PoolChange | None:
    """Return what a launch without capacity changes in the record of its offering; None if it says nothing of a pool.

    It does if EC2 answered that it has none, or a capacity provider got no instance in time. What several offerings
    share, or a request that EC2 could not serve for another reason, is no refusal of a pool, nor is a provider whose
    machines run other tasks: a group at its maximum size asks EC2 for nothing.
    """
    is_refusal = failure.is_shortage or (bool(failure.capacity_provider) and not failure.is_queue)
    return partial(refused, at=pool_hours(failure.at)) if is_refusal and _is_pool(failure.offering) else None


def change_by_launch(offering: OfferingKey, at: datetime) -> PoolChange | None:
    """Return what an instance that EC2 launched changes in the record of its offering."""
    return partial(granted, at=pool_hours(at)) if _is_pool(offering) else None


def change_by_arrival(failure: CapacityFailure, at: datetime) -> PoolChange | None:
    """Return what the instance of a launch without capacity that arrives at `at`, too late for it, changes.

    None for one that was there before, and is free now.
    """
    return change_by_launch(failure.offering, at) if at > failure.at else None


def change_by_run(run: SpotRun) -> PoolChange | None:
    """Return what a run on spot changes in the record of where it ran; None if it says nothing of its capacity.

    The record is that of as many machines at once as it ran on.
    """
    at = pool_hours(run.at)
    match run.what:
        case Observed.START if not run.on_own_machine:
            return partial(granted, at=at)
        case Observed.INTERRUPTION if run.hours <= 0:
            # Nothing ran: since when the machine was there is not known, and so no life of one.
            return partial(refused, at=at)
        case Observed.INTERRUPTION:
            return partial(_after_run, run, interrupted)
        case Observed.END:
            return partial(_after_run, run, left)
        case _:
            return None


def change_by_gang(run: SpotRun) -> PoolChange | None:
    """Return what the end of a run on several machines changes in the record of one machine; None if nothing."""
    is_taken = run.nodes > 1 and run.what is Observed.INTERRUPTION
    return partial(taken, at=pool_hours(run.at)) if is_taken else None


def _after_run(
    run: SpotRun, change: Callable[[PoolRecord, float, float], PoolRecord], record: PoolRecord
) -> PoolRecord:
    at = pool_hours(run.at)
    started_at = at - run.lasted_hours
    if run.on_own_machine and record.has_capacity is False:
        # Its launch showed capacity, before its task ran: what is refused now is so since then.
        started_at = min(started_at, record.state_since)
    return change(record, started_at, at)


def _is_pool(offering: OfferingKey) -> bool:
    return offering.purchase is PurchaseOption.SPOT and not is_scope(offering)
