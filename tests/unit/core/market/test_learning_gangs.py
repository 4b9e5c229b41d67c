"""What a pool is for several machines at once."""

from dataclasses import replace
from functools import reduce

import pytest

from relaunch.core.market.learning import (
    PoolRecord,
    gang_pool_of,
    gang_spell_ends,
    granted,
    interrupted,
    pool_of,
    refused,
)
from relaunch.core.market.situation import Pool

NAME = "g5.xlarge spot us-east-1a"
NEW = PoolRecord(NAME)
NOW = 40.0


def found(nodes: int = 4, **records: PoolRecord) -> Pool:
    """Return the pool by the records of so many machines: `of_1`, `of_4`."""
    return gang_pool_of(NAME, {int(name[3:]): each for name, each in records.items()}, nodes, 0.4, NOW)


def lives(hours: float, count: int) -> PoolRecord:
    """Return the record of some lives of a pool, one after the other, the last of which ends now."""
    ends = [NOW - number * (hours + 0.2) for number in reversed(range(count))]
    return reduce(lambda record, end: interrupted(granted(record, end - hours), end - hours, end), ends, NEW)


def test_a_pool_of_which_nothing_is_known_loses_gangs_more_often_and_has_them_again_as_soon():
    for nodes in (2, 4, 16, 32):
        assert found(nodes) == Pool(NAME, 0.4, None, NOW, NOW, 1.0, gang_spell_ends(nodes))


def test_what_one_machine_has_seen_of_a_pool_is_expected_of_gangs_too():
    short = lives(0.3, 30)
    one = pool_of(short, 0.4, NOW)
    assert one.spell_ends > 1.2

    assert found(of_1=short).spell_ends == pytest.approx(one.spell_ends * gang_spell_ends(4))
    assert found(of_1=short).outage_ends == one.outage_ends


def test_what_gangs_of_a_size_have_seen_is_known_of_that_size_alone():
    long = lives(5.0, 8)
    short = lives(0.3, 30)

    assert found(of_4=long).spell_ends < found().spell_ends < found(of_4=short).spell_ends
    assert found(8, of_4=short).spell_ends == gang_spell_ends(8)
    # Seen without end, it is what was seen, whatever was expected.
    much = replace(
        granted(NEW, NOW), outage_ends=500.0, outage_expected=1000.0, spell_ends=3000.0, spell_expected=2000.0
    )
    assert found(of_4=much).spell_ends == pytest.approx(1.5, rel=0.01)
    assert found(of_4=much).outage_ends == pytest.approx(0.51, rel=0.02)


def test_as_many_ends_as_are_expected_teach_nothing():
    some = replace(granted(NEW, NOW), spell_ends=30.0, spell_expected=30.0 / gang_spell_ends(4))

    assert found(of_4=some).spell_ends == pytest.approx(gang_spell_ends(4))


@pytest.mark.parametrize(
    ("records", "state", "seen_ago", "state_age"),
    [
        pytest.param({}, None, NOW, NOW, id="nothing"),
        pytest.param({"of_4": NEW, "of_8": NEW}, None, NOW, NOW, id="nothing of any"),
        pytest.param({"of_1": granted(NEW, 39.0)}, None, NOW, NOW, id="one granted says nothing of four"),
        pytest.param({"of_1": refused(NEW, 39.0)}, False, 1.0, 1.0, id="one refused: four neither"),
        pytest.param({"of_8": granted(NEW, 39.0)}, True, 1.0, 1.0, id="eight granted: four too"),
        pytest.param({"of_8": refused(NEW, 39.0)}, None, NOW, NOW, id="eight refused says nothing of four"),
        pytest.param({"of_4": refused(NEW, 38.0), "of_1": granted(NEW, 39.0)}, False, 2.0, 2.0, id="one alone again"),
        pytest.param({"of_4": granted(NEW, 38.0), "of_1": refused(NEW, 39.0)}, False, 1.0, 1.0, id="now not even one"),
        pytest.param({"of_4": refused(NEW, 38.0), "of_2": refused(NEW, 39.0)}, False, 1.0, 2.0, id="still the same"),
        pytest.param({"of_4": refused(NEW, 39.0), "of_1": refused(NEW, 38.0)}, False, 1.0, 1.0, id="its own is newer"),
    ],
)
def test_its_state_is_the_newest_that_says_something_of_so_many(records, state, seen_ago, state_age):
    pool = found(**records)

    assert pool.has_capacity is state
    assert (pool.seen_ago, pool.state_age) == (seen_ago, state_age)
