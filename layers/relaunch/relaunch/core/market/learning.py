"""What is learned of a spot pool from tries, and from the lives of machines.

A pool's outages and spells end as often as usual for their age (core.market.thresholds), times a multiple that is
learned: the ends that were seen over those that were expected in the time that was seen. What is not seen, because
nothing was tried, counts for neither. Before anything was seen the multiple is 1, with the weight of PRIOR_ENDS ends;
what was seen a HALF_LIFE ago counts half. Times are hours from any fixed origin.

Gangs, several machines of a pool at once, all or none, are lost with the first of them. EC2 takes many of a zone at
once, so that this is far from N times as often. What gangs of N have seen is a record of its own, per pool and N
(core.offerings.spot_runs). Before they have seen much, their spells are taken to end N^0.1 times as often as those of
one machine, and their outages as soon. In the traces of several machines of "Can't Be Late" (NSDI 2024; V100, 2023)
spells of 16 and of 4 at once ended 1.0 to 1.4 times as often, for their age, as those of any one of them (exponents of
0.0 to 0.3, 0.07 on average), and outages 0.9 to 1.8 times, 1.0 by the median. That is less than selection reckons with,
whose rates are of single machines (core.offerings.offering): a pool may go on having some after it has taken one.
Thresholds for losses that are too frequent do not wait at all, which costs more than the other way round
(docs/market-policy.md). All prices grow by N alike, what a start loses too, so that thresholds, which are of ratios,
stay what they are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from relaunch.core.market.situation import Pool
from relaunch.core.market.thresholds import OUTAGE_ENDS_PER_HOUR, SPELL_ENDS_PER_HOUR, expected_ends
from relaunch.core.records import dataclass

HALF_LIFE = 24.0
# The least that loses little where pools are as usual and wins most where they are not (docs/market-policy.md).
PRIOR_ENDS = 30.0
CONTINUOUS = 0.5
"""Between two tries that are not further apart, the state of a pool is taken to be seen."""
# What is seen for the first time began between two looks: in the middle, but no earlier than this.
_LONGEST_UNSEEN = 1.0
_LEAST = 0.25
_MOST = 4.0
_GANG_EXPONENT = 0.1


@dataclass(frozen=True, slots=True)
class PoolRecord:
    """What was seen of a pool: the state at `seen_at`, since when, and the decayed sums of ends at `summed_at`.

    `is_end_counted` says of an outage whether the spell that it ended is among the sums.
    """

    name: str
    has_capacity: bool | None = None
    seen_at: float = 0.0
    state_since: float = 0.0
    outage_ends: float = 0.0
    outage_expected: float = 0.0
    spell_ends: float = 0.0
    spell_expected: float = 0.0
    summed_at: float = 0.0
    is_end_counted: bool = False


def granted(record: PoolRecord, at: float) -> PoolRecord:
    """Return the record after a try that was granted."""
    return seen(record, at, has_capacity=True)


def refused(record: PoolRecord, at: float) -> PoolRecord:
    """Return the record after a try that was refused."""
    return seen(record, at, has_capacity=False)


def seen(record: PoolRecord, at: float, *, has_capacity: bool) -> PoolRecord:
    """Return the record after the state of the pool was seen; what was seen later before is kept."""
    if record.has_capacity is not None and at <= record.seen_at:
        return record
    if record.has_capacity is None:
        return replace(record, has_capacity=has_capacity, seen_at=at, state_since=at, summed_at=at)
    is_changed = has_capacity is not record.has_capacity
    is_continuous = at - record.seen_at <= CONTINUOUS
    counted = _counted(record, record.seen_at, at, is_end=is_changed) if is_continuous else record
    # An outage that is seen again after a long time is likely still the same; of a spell that is less sure.
    is_same = not is_changed and (is_continuous or not has_capacity)
    since = record.state_since if is_same else at - min((at - record.seen_at) / 2, _LONGEST_UNSEEN)
    is_end_counted = is_continuous if is_changed else record.is_end_counted
    return replace(counted, has_capacity=has_capacity, seen_at=at, state_since=since, is_end_counted=is_end_counted)


def interrupted(record: PoolRecord, started_at: float, at: float) -> PoolRecord:
    """Return the record after EC2 took a machine away that had run since `started_at`; late news are left out."""
    if record.has_capacity is not None and (record.seen_at > at or record.state_since >= at):
        return record
    is_refused = _is_refused_since(record, started_at)
    if is_refused and record.is_end_counted:
        # The spell that it ran in has ended already, with another machine: one end, however many machines it took.
        return refused(record, at)
    spell = _in_spell(record, started_at)
    counted = _counted(spell, _not_counted_since(record, spell, started_at), at, is_end=True)
    # Where launches were refused before, the outage began then: machines outlive the capacity for more of them.
    since = record.state_since if is_refused else at
    return replace(counted, has_capacity=False, seen_at=at, state_since=since, is_end_counted=True)


def taken(record: PoolRecord, at: float) -> PoolRecord:
    """Return the record after EC2 took one of several machines away that a job had there.

    The pool has no capacity then. Whether the spell of a single machine would have ended is not known, so that no end
    is counted: that is for the record of so many machines.
    """
    if record.has_capacity is not None and at <= record.seen_at:
        return record
    if record.has_capacity is False:
        return replace(record, seen_at=at)
    summed_at = at if record.has_capacity is None else record.summed_at
    return replace(record, has_capacity=False, seen_at=at, state_since=at, summed_at=summed_at, is_end_counted=False)


def left(record: PoolRecord, started_at: float, at: float) -> PoolRecord:
    """Return the record after a machine that had run since `started_at` was given back."""
    if record.has_capacity is not None and record.seen_at >= at:
        return record
    is_refused = _is_refused_since(record, started_at)
    if is_refused and record.is_end_counted:
        return record
    spell = _in_spell(record, started_at)
    counted = replace(_counted(spell, _not_counted_since(record, spell, started_at), at, is_end=False), seen_at=at)
    # That a machine was left to the job does not mean that there are more of them.
    return replace(counted, has_capacity=False, state_since=record.state_since) if is_refused else counted


def combined(name: str, records: Sequence[PoolRecord]) -> PoolRecord:
    """Return one record of several pools that a launch may be granted in: what was seen last, and the sums of all."""
    latest = max(records, key=lambda each: each.seen_at)
    summed_at = max(each.summed_at for each in records)
    weights = [_weight(each.summed_at, summed_at) for each in records]

    def total(sums: Callable[[PoolRecord], float]) -> float:
        return sum(weight * sums(each) for weight, each in zip(weights, records, strict=True))

    return replace(
        latest,
        name=name,
        outage_ends=total(lambda each: each.outage_ends),
        outage_expected=total(lambda each: each.outage_expected),
        spell_ends=total(lambda each: each.spell_ends),
        spell_expected=total(lambda each: each.spell_expected),
        summed_at=summed_at,
    )


def pool_of(
    record: PoolRecord,
    usd_per_hour: float,
    now: float,
    *,
    is_used: bool = False,
    usual: tuple[float, float] = (1.0, 1.0),
) -> Pool:
    """Return what is known of a pool now; `is_used`: the job runs in it.

    `usual` are the multiples of the ends of outages and of spells that are expected before anything was seen.
    """
    outages, spells = usual
    return Pool(
        name=record.name,
        usd_per_hour=usd_per_hour,
        has_capacity=True if is_used else record.has_capacity,
        seen_ago=0.0 if is_used else max(now - record.seen_at, 0.0),
        state_age=max(now - record.state_since, 0.0),
        outage_ends=_multiple(record.outage_ends, record.outage_expected, record.summed_at, now, outages),
        spell_ends=_multiple(record.spell_ends, record.spell_expected, record.summed_at, now, spells),
    )


def gang_spell_ends(nodes: int) -> float:
    """Return how many times as often a spell of so many machines of a pool at once ends as one of a single machine."""
    return float(nodes**_GANG_EXPONENT)


def gang_pool_of(name: str, records: Mapping[int, PoolRecord], nodes: int, usd_per_hour: float, now: float) -> Pool:
    """Return a pool as it is for so many machines at once; `records` are by how many were asked for.

    Its state is the newest that holds for so many: as many or more were granted, or as many or fewer
    refused. How often its outages and spells end is what gangs of this size have seen, beside what the record of one
    machine leads to expect.
    """
    own = records.get(nodes, PoolRecord(name))
    one = pool_of(records.get(1, PoolRecord(name)), usd_per_hour, now)
    telling = (each for size, each in records.items() if _holds_for(nodes, size, each))
    last = max(telling, key=lambda each: each.seen_at, default=own)
    is_same = own.has_capacity is last.has_capacity
    since = min(last.state_since, own.state_since) if is_same else last.state_since
    known = replace(own, name=name, has_capacity=last.has_capacity, seen_at=last.seen_at, state_since=since)
    return pool_of(known, usd_per_hour, now, usual=(one.outage_ends, one.spell_ends * gang_spell_ends(nodes)))


def _holds_for(nodes: int, size: int, record: PoolRecord) -> bool:
    if record.has_capacity is None:
        return False
    return size >= nodes if record.has_capacity else size <= nodes


def _is_refused_since(record: PoolRecord, started_at: float) -> bool:
    """Return whether launches are refused since a moment in the life of a machine that was started then."""
    return record.has_capacity is False and started_at <= record.state_since


def _not_counted_since(record: PoolRecord, spell: PoolRecord, started_at: float) -> float:
    """Return since when the life of a machine is not among the sums: others of its spell may have been counted."""
    return max(started_at, record.summed_at if _is_refused_since(record, started_at) else spell.seen_at)


def _in_spell(record: PoolRecord, started_at: float) -> PoolRecord:
    """Return the record as in the spell in which a machine was started."""
    if record.has_capacity and record.state_since <= started_at:
        return record
    summed_at = started_at if record.has_capacity is None else record.summed_at
    return replace(record, has_capacity=True, seen_at=started_at, state_since=started_at, summed_at=summed_at)


def _counted(record: PoolRecord, start: float, end: float, *, is_end: bool) -> PoolRecord:
    """Return the record with a time in its state added to the sums; `is_end`: the state ended with it."""
    kept = _weight(record.summed_at, end)
    ages = (start - record.state_since, end - record.state_since)
    outage = (record.outage_ends, record.outage_expected)
    spell = (record.spell_ends, record.spell_expected)
    if record.has_capacity:
        spell = (spell[0] + is_end / kept, spell[1] + expected_ends(SPELL_ENDS_PER_HOUR, *ages) / kept)
    else:
        outage = (outage[0] + is_end / kept, outage[1] + expected_ends(OUTAGE_ENDS_PER_HOUR, *ages) / kept)
    return replace(
        record,
        outage_ends=outage[0] * kept,
        outage_expected=outage[1] * kept,
        spell_ends=spell[0] * kept,
        spell_expected=spell[1] * kept,
        summed_at=max(end, record.summed_at),
    )


def _weight(since: float, now: float) -> float:
    weight: float = 0.5 ** (max(now - since, 0.0) / HALF_LIFE)
    return weight


def _multiple(ends: float, expected: float, summed_at: float, now: float, usual: float) -> float:
    kept = _weight(summed_at, now)
    multiple = usual * (ends * kept + PRIOR_ENDS) / (usual * expected * kept + PRIOR_ENDS)
    return min(max(multiple, _LEAST), _MOST)
