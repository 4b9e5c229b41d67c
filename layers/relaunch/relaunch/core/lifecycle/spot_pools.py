"""What this stack has seen of the spot pools that a job may use: one pool for each offering.

A launch that was refused, an interruption and a start each say whether a pool had capacity at that moment. They are
those of the capacity memory and of the runs on spot, which all jobs share.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.job import Job
from relaunch.core.market.situation import Pool
from relaunch.core.offerings.capacity_scopes import is_scope
from relaunch.core.offerings.offering import CapacityFailure, CapacityMemory, Offering, OfferingKey
from relaunch.core.offerings.spot_runs import SpotRuns
from relaunch.core.selection.selection import Selection

RETRY_INTERVAL = timedelta(minutes=10)
"""After this time a pool that refused is tried again: EC2 answers a request for a machine at once and for nothing."""

_LEAST_HOURS = 1 / 60


def retried_sooner(memory: CapacityMemory) -> CapacityMemory:
    """Return the memory for a job that a market policy launches: a spot pool is avoided for RETRY_INTERVAL only.

    That holds for machines of our own. A capacity provider takes minutes to say that it has no instance, and what
    several offerings share does not change with the market.
    """
    return {key: _sooner(failure) if _is_answer(failure) else failure for key, failure in memory.items()}


def _is_answer(failure: CapacityFailure) -> bool:
    key = failure.offering
    is_own_machine = key.zone is not None and not failure.capacity_provider
    return is_own_machine and key.purchase is PurchaseOption.SPOT and not is_scope(key)


def _sooner(failure: CapacityFailure) -> CapacityFailure:
    return replace(failure, until=min(failure.until, failure.at + RETRY_INTERVAL))


def find_pools(
    selection: Selection, memory: CapacityMemory, runs: Sequence[SpotRuns], now: datetime
) -> tuple[Pool, ...]:
    """Return the spot pools that selection kept, or rejected until a known time; those without any price are left out.

    The name of a pool is that of its offering.
    """
    seen = _latest_runs(runs)
    return tuple(
        _pool(offering, price, avoided_until, memory, seen, now)
        for offering, avoided_until in _spot_offerings(selection)
        if (price := offering.expected_usd_per_hour) is not None
    )


def warnings_of(job: Job) -> tuple[SpotRuns, ...]:
    """Return what the warning of its current machine says of that pool; empty if there was none.

    The interruption itself is counted for all jobs when the task has stopped.
    """
    attempt = job.attempt
    if attempt is None or attempt.warned_at is None:
        return ()
    offering = attempt.placement.offering
    ran_on = replace(offering, zone=attempt.zone or offering.zone)
    return (SpotRuns(ran_on, attempt.warned_at.date(), interrupted_at=attempt.warned_at),)


def _spot_offerings(selection: Selection) -> Iterator[tuple[Offering, datetime | None]]:
    for offering in selection.kept:
        if offering.purchase is PurchaseOption.SPOT:
            yield offering, None
    for each in selection.rejected:
        if each.offering.purchase is PurchaseOption.SPOT and each.rejection.retry_at is not None:
            yield each.offering, each.rejection.retry_at


_Seen = Mapping[OfferingKey, tuple[datetime | None, datetime | None]]
"""When something last started in a pool, and when something was last interrupted there."""


def _latest_runs(runs: Sequence[SpotRuns]) -> _Seen:
    seen: dict[OfferingKey, tuple[datetime | None, datetime | None]] = {}
    for each in runs:
        for key in {each.offering, replace(each.offering, zone=None)}:
            started_at, interrupted_at = seen.get(key, (None, None))
            seen[key] = _later(started_at, each.started_at), _later(interrupted_at, each.interrupted_at)
    return seen


def _later(first: datetime | None, second: datetime | None) -> datetime | None:
    return max((at for at in (first, second) if at is not None), default=None)


def _pool(
    offering: Offering,
    price: float,
    avoided_until: datetime | None,
    memory: CapacityMemory,
    seen: _Seen,
    now: datetime,
) -> Pool:
    granted_at, interrupted_at = seen.get(offering.key, (None, None))
    failure = memory.get(offering.key)
    refused_at = failure.at if failure is not None and not failure.is_refuted else None
    missed = [at for at in (interrupted_at, refused_at) if at is not None and (granted_at is None or at >= granted_at)]
    pool = Pool(str(offering.key), price, avoided_for=_avoided_for(avoided_until, now))
    if missed:
        return replace(
            pool, has_capacity=False, seen_ago=_hours(now - max(missed)), state_age=_hours(now - min(missed))
        )
    if granted_at is None:
        return pool
    age = _hours(now - granted_at)
    return replace(pool, has_capacity=True, seen_ago=age, state_age=age)


def _avoided_for(until: datetime | None, now: datetime) -> float:
    """Return for how long a pool is left out; one that selection rejected is not tried in the same moment."""
    return 0.0 if until is None else max(_hours(until - now), _LEAST_HOURS)


def _hours(time: timedelta) -> float:
    return max(time / timedelta(hours=1), 0.0)
