"""What is kept of a spot pool: its record, and what each fact that a launch or a machine leaves changes in it.

A pool is one offering on spot. The facts are those of the capacity memory and of the runs on spot; the record says what
was seen last, and how often outages and spells ended compared with the usual (core.market.learning). Its times are
hours since 1970 (UTC).
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.market.learning import PoolRecord, granted, interrupted, left, refused
from relaunch.core.offerings.capacity_scopes import is_scope
from relaunch.core.offerings.offering import CapacityFailure, OfferingKey
from relaunch.core.offerings.spot_runs import KEPT_FOR, Observed, SpotRun

_MINUTE = 1 / 60
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

PoolChange = Callable[[PoolRecord], PoolRecord]
"""What a fact changes in a record. A fact that comes twice, or after a later one, changes nothing."""


@dataclass(frozen=True, slots=True)
class SpotPool:
    """The record of a pool, as the jobs table has it; `version` is that of its item, 0 if there is none."""

    offering: OfferingKey
    record: PoolRecord
    version: int = 0

    @property
    def forgotten_at(self) -> datetime:
        """Return when nothing that the record says counts any more."""
        return _EPOCH + timedelta(hours=self.record.seen_at) + KEPT_FOR


def unknown_pool(offering: OfferingKey) -> SpotPool:
    """Return a pool of which nothing is known."""
    return SpotPool(offering, PoolRecord(str(offering)))


def pool_hours(at: datetime) -> float:
    """Return a time as records have it."""
    return (at - _EPOCH) / timedelta(hours=1)


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
    """Return what a run on spot changes in the record of where it ran; None if it says nothing of its capacity."""
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


def _after_run(
    run: SpotRun, change: Callable[[PoolRecord, float, float], PoolRecord], record: PoolRecord
) -> PoolRecord:
    at = pool_hours(run.at)
    started_at = at - run.hours
    if run.on_own_machine and record.has_capacity is False:
        # Its launch showed capacity, before its task ran: what is refused now is so since then.
        started_at = min(started_at, record.state_since)
    return change(record, started_at, at)


def _is_pool(offering: OfferingKey) -> bool:
    return offering.purchase is PurchaseOption.SPOT and not is_scope(offering)
