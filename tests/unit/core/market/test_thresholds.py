import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaunch.core.market.thresholds import (
    AGE_EDGES,
    NEVER,
    OUTAGE_ENDS_PER_HOUR,
    Ladder,
    Market,
    Thresholds,
    age_group,
    decode,
    encode,
    expected_ends,
)

OVERHEADS, RATIOS, OUTAGES, SPELLS, WORK = (0.1, 1.0), (1.4, 3.0), (0.5, 2.0), (1.0,), (1.0, 4.0)


def thresholds(code=lambda **point: 100) -> Thresholds:
    """Make thresholds whose codes are computed of their place."""
    codes = bytes(
        code(ladder=ladder, overhead=overhead, ratio=ratio, outages=outages, work=work, group=group)
        for ladder in Ladder
        for overhead in OVERHEADS
        for ratio in RATIOS
        for outages in OUTAGES
        for _ in SPELLS
        for work in WORK
        for group in range(len(AGE_EDGES))
    )
    return Thresholds(OVERHEADS, RATIOS, OUTAGES, SPELLS, WORK, codes)


def spare(table: Thresholds, market: Market, work_left: float = 1.0, group: int = 0, ladder: Ladder = Ladder.WAIT):
    return table.spare_needed(ladder, market, work_left, group)


def test_at_a_point_of_the_grid_its_own_code_holds():
    table = thresholds(lambda ladder, overhead, group, **_: 10 * (ladder + 1) + group + (50 if overhead > 0.5 else 0))

    assert spare(table, Market(0.1, 1.4, 0.5), ladder=Ladder.TRY, group=3) == decode(33)
    assert spare(table, Market(1.0, 3.0, 2.0), ladder=Ladder.WAIT, group=7) == decode(67)


def test_between_two_points_codes_are_interpolated_in_the_logarithm():
    table = thresholds(lambda overhead, **_: 20 if overhead < 0.5 else 60)

    assert spare(table, Market(math.sqrt(0.1), 1.4)) == pytest.approx(decode(40))


def test_beyond_the_grid_the_nearest_point_holds_but_work_scales():
    table = thresholds(lambda work, **_: 40 if work == 1.0 else 80)

    assert spare(table, Market(9.0, 99.0, 9.0, 9.0)) == spare(table, Market(1.0, 3.0, 2.0, 1.0))
    assert spare(table, Market(0.1, 1.4), work_left=8.0) == pytest.approx(2 * decode(80))
    assert spare(table, Market(0.1, 1.4), work_left=0.5) == pytest.approx(decode(40) / 2)
    assert spare(table, Market(0.1, 1.4), work_left=0.0) == 0.0


def test_what_never_pays_needs_infinite_time():
    assert spare(thresholds(lambda **_: NEVER), Market(0.3, 2.0)) == math.inf
    assert spare(thresholds(lambda **_: NEVER), Market(0.3, 2.0), work_left=0.0) == math.inf


@given(st.floats(0, 200))
def test_a_code_stands_for_hours_to_four_percent(hours):
    assert hours <= decode(encode(hours)) + 1e-9
    assert decode(encode(hours)) <= max(hours * 1.04, 0.02)


def test_codes_are_bounded():
    assert (encode(-1.0), encode(0.0), encode(math.inf), encode(1e9)) == (0, 0, NEVER, NEVER - 2)
    assert (decode(0.0), decode(NEVER)) == (0.0, math.inf)
    assert decode(0.5) == pytest.approx(decode(1.0) / 2, rel=0.05)


def test_ages_are_in_the_group_that_they_begin():
    assert [age_group(edge) for edge in AGE_EDGES] == list(range(8))
    assert [age_group(later - 0.01) for _, later in pairwise(AGE_EDGES)] == list(range(7))
    assert age_group(3 * (1 / 6) - 1 / 6) == 2
    assert age_group(1e6) == 7


def test_expected_ends_are_the_hazards_over_the_time():
    first, second, *_, last = OUTAGE_ENDS_PER_HOUR

    assert expected_ends(OUTAGE_ENDS_PER_HOUR, 0.0, 0.1) == pytest.approx(0.1 * first)
    assert expected_ends(OUTAGE_ENDS_PER_HOUR, 0.1, 0.2) == pytest.approx(
        (1 / 6 - 0.1) * first + (0.2 - 1 / 6) * second
    )
    assert expected_ends(OUTAGE_ENDS_PER_HOUR, 20.0, 30.0) == pytest.approx(10 * last)
    assert expected_ends(OUTAGE_ENDS_PER_HOUR, 5.0, 5.0) == 0.0
