"""What this stack has seen of the spot pools that a job may use: one pool for each offering.

A launch that was refused, a start, an interruption and the end of a run each say whether a pool had capacity at that
moment. What all jobs saw of a pool is kept in one record (core.offerings.spot_runs), which also says how often its
outages and its spells end. Jobs of several nodes have records of their own, for each number of nodes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.job import Job
from relaunch.core.machines.refusals import POOL_AVOIDED
from relaunch.core.market.learning import combined, gang_pool_of, pool_of, refused
from relaunch.core.market.situation import Pool
from relaunch.core.offerings.capacity_memory import is_scope
from relaunch.core.offerings.offering import CapacityFailure, CapacityMemory, Offering, capacity_factor
from relaunch.core.offerings.spot_runs import DOUBTED_FOR, SpotPool, pool_hours, unknown_pool
from relaunch.core.selection.selection import Selection

RETRY_INTERVAL = timedelta(minutes=10)
"""After this time a pool that refused is tried again: EC2 answers a request for a machine at once and for nothing."""

# Past its safety net a job has on-demand alone, and its reserve for that is a quarter of an hour (ON_DEMAND_RESERVE):
# several tries are to fit into it.
_RETRY_INTERVALS = MappingProxyType({PurchaseOption.SPOT: RETRY_INTERVAL, PurchaseOption.ON_DEMAND: POOL_AVOIDED})
_LEAST_HOURS = 1 / 60
# After this time what a launch saw says little more than a score does: nine of ten shortages have ended.
_SEEN_LATELY = DOUBTED_FOR / timedelta(hours=1)


def retried_sooner(memory: CapacityMemory) -> CapacityMemory:
    """Return the memory for a job that a market policy launches: what refused is avoided for a few minutes only.

    That is RETRY_INTERVAL for spot, and POOL_AVOIDED for on-demand, however often launches were refused before: a time
    that doubles up to hours would be longer than what the deadline of a job has left for on-demand. It holds for
    machines of our own. A capacity provider takes minutes to say that it has no instance, and what several offerings
    share does not change with the market.
    """
    return {key: _sooner(failure) for key, failure in memory.items()}


def _sooner(failure: CapacityFailure) -> CapacityFailure:
    interval = _RETRY_INTERVALS.get(failure.offering.purchase)
    if interval is None or not _is_answer(failure):
        return failure
    return replace(failure, until=min(failure.until, failure.at + interval))


def _is_answer(failure: CapacityFailure) -> bool:
    """Return whether EC2 answered so for a machine of our own."""
    return failure.offering.zone is not None and not failure.capacity_provider and not is_scope(failure.offering)


def find_pools(selection: Selection, known: Sequence[SpotPool], now: datetime, nodes: int = 1) -> tuple[Pool, ...]:
    """Return the spot pools that selection kept, or rejected until a known time; those without any price are left out.

    They are as they are for so many machines at once. The name of a pool is that of its offering. An offering without
    a zone may run in any: it is what is known of all.
    """
    return tuple(
        replace(_pool(offering, price, known, now, nodes), avoided_for=_avoided_for(avoided_until, now))
        for offering, avoided_until in _spot_offerings(selection)
        if (price := offering.expected_usd_per_hour) is not None
    )


def with_warning(known: Sequence[SpotPool], job: Job) -> tuple[SpotPool, ...]:
    """Return what is known of the pools, with what the warning of the job's current machine says of the one it is in.

    The interruption itself is learned for all jobs when the task has stopped.
    """
    attempt = job.attempt
    if attempt is None or attempt.warned_at is None:
        return tuple(known)
    offering = attempt.placement.offering
    ran_on = replace(offering, zone=attempt.zone or offering.zone)
    nodes = job.definition.nodes
    here = [each for each in known if (each.offering, each.nodes) == (ran_on, nodes)]
    before = here[0] if here else unknown_pool(ran_on, nodes)
    warned = replace(before, record=refused(before.record, pool_hours(attempt.warned_at)))
    return (*(each for each in known if each not in here), warned)


def _spot_offerings(selection: Selection) -> Iterator[tuple[Offering, datetime | None]]:
    for offering in selection.kept:
        if offering.purchase is PurchaseOption.SPOT:
            yield offering, None
    for each in selection.rejected:
        if each.offering.purchase is PurchaseOption.SPOT and each.rejection.retry_at is not None:
            yield each.offering, each.rejection.retry_at


def _pool(offering: Offering, price: float, known: Sequence[SpotPool], now: datetime, nodes: int) -> Pool:
    key = offering.key
    name = str(key)
    if nodes > 1:
        by_size = {each.nodes: each.record for each in known if each.offering == key}
        return _by_score(gang_pool_of(name, by_size, nodes, price, pool_hours(now)), offering.placement_score)
    in_any_zone = offering.zone is None
    records = [
        each.record
        for each in known
        if each.nodes == 1 and (each.offering == key or (in_any_zone and replace(each.offering, zone=None) == key))
    ]
    pool = pool_of(combined(name, records), price, pool_hours(now)) if records else Pool(name, price)
    return _by_score(pool, offering.placement_score)


def _by_score(pool: Pool, score: int | None) -> Pool:
    """Return a pool that was not seen lately with what EC2's placement score says of it."""
    is_seen = pool.has_capacity is not None and pool.seen_ago < _SEEN_LATELY
    if score is None or is_seen:
        return pool
    factor = capacity_factor(score)
    return replace(pool, outage_ends=pool.outage_ends * factor, spell_ends=pool.spell_ends / factor)


def _avoided_for(until: datetime | None, now: datetime) -> float:
    """Return for how long a pool is left out; one that selection rejected is not tried in the same moment."""
    return 0.0 if until is None else max((until - now) / timedelta(hours=1), _LEAST_HOURS)
