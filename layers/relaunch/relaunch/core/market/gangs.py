"""What is known of a spot pool for a gang: several machines of it at once, all or none.

A gang is lost with the first of its machines. EC2 takes many of a zone at once, so that this is far from N times as
often. What gangs of N have seen is kept by itself, per pool and N (core.offerings.spot_runs). Before they have seen
much, their spells are taken to end N^0.1 times as often as those of one machine, and their outages as soon. In the
traces of several machines of "Can't Be Late" (NSDI 2024; V100, 2023) spells of 16 and of 4 at once ended 1.0 to 1.4
times as often, for their age, as those of any one of them (exponents of 0.0 to 0.3, 0.07 on average), and outages 0.9
to 1.8 times, 1.0 by the median. That is less than selection reckons with, whose rates are of single machines
(core.market.gang_hazard): a pool may go on having some after it has taken one. Thresholds for losses that are too
frequent do not wait at all, which costs more than the other way round (docs/market-policy.md).

All prices grow by N alike, what a start loses too, so that thresholds, which are of ratios, stay what they are.
"""

from collections.abc import Mapping
from dataclasses import replace

from relaunch.core.market.learning import PoolRecord, pool_of
from relaunch.core.market.situation import Pool

_SPELL_EXPONENT = 0.1


def spell_hazard_of(nodes: int) -> float:
    """Return how many times as often a spell of so many machines of a pool at once ends as one of a single machine."""
    return float(nodes**_SPELL_EXPONENT)


def gang_pool_of(name: str, records: Mapping[int, PoolRecord], nodes: int, usd_per_hour: float, now: float) -> Pool:
    """Return what is known of a pool now for so many machines at once; `records` are by how many were asked for.

    Its state is what was seen last that says something of so many: as many or more were granted, or as many or fewer
    refused. How often its outages and spells end is what gangs of this size have seen, beside what the record of one
    machine leads to expect.
    """
    own = records.get(nodes, PoolRecord(name))
    one = pool_of(records.get(1, PoolRecord(name)), usd_per_hour, now)
    says = (each for size, each in records.items() if _says_of(size, each, nodes))
    last = max(says, key=lambda each: each.seen_at, default=own)
    is_same = own.has_capacity is last.has_capacity
    since = min(last.state_since, own.state_since) if is_same else last.state_since
    known = replace(own, name=name, has_capacity=last.has_capacity, seen_at=last.seen_at, state_since=since)
    return pool_of(known, usd_per_hour, now, usual=(one.outage_ends, one.spell_ends * spell_hazard_of(nodes)))


def _says_of(size: int, record: PoolRecord, nodes: int) -> bool:
    if record.has_capacity is None:
        return False
    return size >= nodes if record.has_capacity else size <= nodes
