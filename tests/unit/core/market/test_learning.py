from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaunch.core.market.learning import (
    CONTINUOUS,
    HALF_LIFE,
    PRIOR_ENDS,
    PoolRecord,
    combined,
    granted,
    interrupted,
    left,
    pool_of,
    refused,
    seen,
    taken,
)
from relaunch.core.market.thresholds import OUTAGE_ENDS_PER_HOUR, SPELL_ENDS_PER_HOUR, expected_ends

NEW = PoolRecord("g5.xlarge a")


def test_a_pool_of_which_nothing_was_seen_is_as_usual():
    pool = pool_of(NEW, 0.4, 5.0)

    assert (pool.name, pool.usd_per_hour, pool.has_capacity) == ("g5.xlarge a", 0.4, None)
    assert (pool.outage_ends, pool.spell_ends) == (1.0, 1.0)


def test_what_was_seen_last_is_known_with_its_age():
    pool = pool_of(refused(refused(NEW, 1.0), 1.2), 0.4, 1.5)

    assert pool.has_capacity is False
    assert (pool.seen_ago, pool.state_age) == (pytest.approx(0.3), pytest.approx(0.5))


def test_a_pool_in_use_is_seen_now():
    pool = pool_of(granted(NEW, 1.0), 0.4, 3.0, is_used=True)

    assert (pool.has_capacity, pool.seen_ago, pool.state_age) == (True, 0.0, 2.0)


def test_an_outage_that_ends_counts_over_what_was_expected():
    record = granted(refused(refused(NEW, 0.0), 0.2), 0.4)

    assert record.has_capacity is True
    assert record.state_since == pytest.approx(0.3), "in the middle of two looks"
    assert record.outage_ends == pytest.approx(1.0)
    assert record.outage_expected == pytest.approx(expected_ends(OUTAGE_ENDS_PER_HOUR, 0.0, 0.4), rel=0.01)


def test_a_machines_life_is_seen_throughout():
    taken = interrupted(granted(NEW, 1.0), 1.0, 4.0)
    given_back = left(granted(NEW, 1.0), 1.0, 4.0)

    assert (taken.has_capacity, taken.state_since, taken.spell_ends) == (False, 4.0, 1.0)
    assert (given_back.has_capacity, given_back.state_since, given_back.spell_ends) == (True, 1.0, 0.0)
    # What was expected early has decayed by its end.
    expected = expected_ends(SPELL_ENDS_PER_HOUR, 0.0, 3.0)
    assert taken.spell_expected == given_back.spell_expected == pytest.approx(expected)


def test_a_machine_of_a_pool_that_is_not_known_tells_of_a_spell_of_its_own():
    record = interrupted(NEW, 2.0, 3.0)

    assert record.spell_expected == pytest.approx(expected_ends(SPELL_ENDS_PER_HOUR, 0.0, 1.0))
    assert left(refused(NEW, 1.0), 2.0, 3.0).has_capacity is True


def test_an_interruption_that_takes_several_machines_is_one_end():
    taken = interrupted(granted(NEW, 1.0), 1.0, 4.0)

    another = interrupted(taken, 2.0, 4.1)

    assert (another.has_capacity, another.state_since, another.seen_at) == (False, 4.0, 4.1)
    assert another.spell_ends == pytest.approx(taken.spell_ends, rel=0.01)
    assert interrupted(taken, 4.5, 6.0).spell_ends > taken.spell_ends, "a machine of a later spell is another end"


def test_an_interruption_after_launches_were_refused_is_the_end_of_a_life():
    refused_before = refused(refused(granted(NEW, 0.0), 5.0), 5.8)

    taken = interrupted(refused_before, 0.0, 6.0)
    another = interrupted(taken, 1.0, 6.1)

    assert taken.spell_ends == pytest.approx(1.0)
    assert taken.spell_expected == pytest.approx(expected_ends(SPELL_ENDS_PER_HOUR, 0.0, 6.0))
    assert (taken.has_capacity, taken.state_since, taken.seen_at) == (False, 4.0, 6.0)
    assert another.spell_ends == pytest.approx(1.0, rel=0.01), "the same outage takes it"
    # A spell that was seen to end between two tries is counted already.
    assert interrupted(refused(granted(NEW, 0.0), 0.2), 0.0, 0.3).spell_ends == pytest.approx(1.0, rel=0.01)


def test_a_machine_that_is_given_back_while_launches_are_refused_shows_no_capacity():
    refused_before = refused(granted(NEW, 0.0), 1.9)

    given_back = left(refused_before, 0.0, 2.0)

    assert (given_back.has_capacity, given_back.state_since) == (False, 0.95)
    expected = expected_ends(SPELL_ENDS_PER_HOUR, 0.0, 2.0)
    assert (given_back.spell_ends, given_back.spell_expected) == (0.0, pytest.approx(expected))
    assert left(given_back, 0.0, 2.0) == given_back
    # It outlived the others of a spell that has ended.
    others_taken = interrupted(granted(NEW, 0.0), 0.0, 1.9)
    assert left(others_taken, 0.0, 2.0) == others_taken


def test_what_is_taken_of_several_machines_shows_no_capacity_and_counts_no_end():
    in_spell = granted(NEW, 1.0)

    gone = taken(in_spell, 4.0)

    assert (gone.has_capacity, gone.seen_at, gone.state_since) == (False, 4.0, 4.0)
    assert (gone.spell_ends, gone.spell_expected) == (0.0, 0.0)
    assert taken(gone, 5.0) == replace(gone, seen_at=5.0), "the same outage"
    assert taken(gone, 3.0) == gone, "late news"
    assert taken(NEW, 4.0).summed_at == 4.0
    # A single machine that the outage takes too has a life that counts.
    assert interrupted(gone, 1.0, 4.1).spell_ends == pytest.approx(1.0)


def test_before_anything_was_seen_a_pool_is_as_it_is_expected_to_be():
    pool = pool_of(NEW, 0.4, 5.0, usual=(0.5, 2.0))

    assert (pool.outage_ends, pool.spell_ends) == (0.5, 2.0)
    # As many ends as expected teach nothing; twice as many, with the weight of what was expected, half of it.
    as_expected = replace(NEW, spell_ends=30.0, spell_expected=15.0, summed_at=5.0)
    assert pool_of(as_expected, 0.4, 5.0, usual=(1.0, 2.0)).spell_ends == pytest.approx(2.0)
    twice = replace(NEW, spell_ends=60.0, spell_expected=15.0, summed_at=5.0)
    assert pool_of(twice, 0.4, 5.0, usual=(1.0, 2.0)).spell_ends == pytest.approx(3.0)


def test_of_machines_that_outlive_the_capacity_for_more_each_hour_counts_once():
    refused_before = refused(granted(NEW, 0.0), 1.0)
    once = left(refused_before, 0.0, 10.0)
    often = once
    for number in range(1, 10):
        often = left(often, 0.0, 10.0 + number / 100)

    assert once.spell_expected == pytest.approx(expected_ends(SPELL_ENDS_PER_HOUR, 0.0, 10.0))
    assert often.spell_expected == pytest.approx(once.spell_expected, rel=0.01)


def test_pools_that_a_launch_may_be_granted_in_are_one_by_what_was_seen_last():
    first, second = refused(NEW, 8.0), interrupted(replace(granted(NEW, 1.0), name="b"), 1.0, 1.0 + HALF_LIFE)
    earlier = interrupted(granted(NEW, 1.0), 1.0, 4.0)

    both = combined("any", (first, second))

    assert (both.name, both.has_capacity, both.seen_at, both.state_since) == ("any", False, 25.0, 25.0)
    assert (both.spell_ends, both.spell_expected, both.summed_at) == (1.0, second.spell_expected, 25.0)
    assert combined("any", (second, earlier)).spell_ends == pytest.approx(1.0 + 0.5 ** (21.0 / HALF_LIFE))
    assert combined(NEW.name, (earlier,)) == earlier


def test_what_other_tries_saw_of_a_machines_life_counts_once():
    watched = granted(NEW, 0.0)
    for tick in range(1, 13):
        watched = seen(watched, tick / 6, has_capacity=True)

    assert interrupted(watched, 0.0, 2.0).spell_expected == pytest.approx(
        interrupted(granted(NEW, 0.0), 0.0, 2.0).spell_expected, rel=0.05
    )


def test_of_a_time_without_a_try_nothing_is_counted():
    long_after = granted(refused(NEW, 0.0), 5.0)

    assert (long_after.outage_ends, long_after.outage_expected) == (0.0, 0.0)
    assert long_after.state_since == 4.0, "not in the middle: it may have come and gone meanwhile"


def test_an_outage_is_likely_the_same_after_a_long_time_and_a_spell_is_not():
    assert refused(refused(NEW, 0.0), 5.0).state_since == 0.0
    assert granted(granted(NEW, 0.0), 5.0).state_since == 4.0
    assert granted(granted(NEW, 0.0), CONTINUOUS).state_since == 0.0


def test_what_was_seen_a_half_life_ago_counts_half():
    record = replace(NEW, has_capacity=False, outage_ends=PRIOR_ENDS * 2, outage_expected=0.0, summed_at=0.0)

    assert pool_of(record, 1.0, 0.0).outage_ends == pytest.approx(3.0)
    assert pool_of(record, 1.0, HALF_LIFE).outage_ends == pytest.approx(2.0)


def test_multiples_are_bounded():
    wild = replace(NEW, outage_ends=1e9, spell_expected=1e9)

    assert (pool_of(wild, 1.0, 0.0).outage_ends, pool_of(wild, 1.0, 0.0).spell_ends) == (4.0, 0.25)


TIMES = st.floats(0, 1000)
OBSERVATIONS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from([granted, refused]), TIMES),
        st.tuples(st.sampled_from([interrupted, left]), TIMES, st.floats(0, 50)),
    ),
    max_size=30,
)


def apply(record: PoolRecord, observation) -> PoolRecord:
    observe, at, *lived = observation
    return observe(record, at, at + lived[0]) if lived else observe(record, at)


@given(OBSERVATIONS)
def test_late_and_repeated_observations_do_no_harm(observations):
    record = NEW
    for observation in observations:
        record = apply(record, observation)
        assert apply(record, observation) == record
    now = 1100.0
    pool = pool_of(record, 1.0, now)

    assert 0.25 <= pool.outage_ends <= 4.0
    assert 0.25 <= pool.spell_ends <= 4.0
    assert 0.0 <= pool.seen_ago <= pool.state_age or not observations
