from itertools import pairwise
from statistics import median

import pytest

from policy.gangs import GAP_HOURS, ZONES, Zone, draw_counts, draw_gangs
from policy.series import SeriesError


def spells(up: list[bool]) -> tuple[list[float], list[float]]:
    """Return the hours of the times with and without that have begun and ended."""
    found: dict[bool, list[float]] = {True: [], False: []}
    begun = 0
    for tick in range(1, len(up)):
        if up[tick] != up[tick - 1]:
            if begun:
                found[up[tick - 1]].append((tick - begun) * GAP_HOURS)
            begun = tick
    return found[True], found[False]


@pytest.mark.parametrize("zone", ZONES, ids=lambda zone: f"{zone.size} in {zone.name}")
def test_drawn_gangs_last_and_come_back_as_those_that_were_counted(zone: Zone):
    up = [count == zone.size for count in draw_counts(zone, 200_000, seed=1)]

    full, without = spells(up)
    assert sum(up) / len(up) == pytest.approx(zone.share, abs=0.06)
    assert sum(full) / len(full) == pytest.approx(zone.mean, rel=0.15)
    assert median(full) == pytest.approx(zone.median, abs=0.1)
    assert median(without) == pytest.approx(zone.back_median, abs=0.1)


def test_losses_of_a_full_gang_take_all_or_one_as_often_as_was_counted():
    zone = ZONES[0]
    counts = draw_counts(zone, 200_000, seed=2)

    after = [later for now, later in pairwise(counts) if now == zone.size and later != now]
    assert after.count(0) / len(after) == pytest.approx(zone.all_lost, abs=0.03)
    assert after.count(zone.size - 1) / len(after) == pytest.approx(zone.one_lost, abs=0.03)
    assert set(after) == set(range(zone.size))


def test_gangs_are_drawn_of_the_smallest_zones_that_held_as_many():
    assert [each.name for each in draw_gangs(4, days=1, each_zone=1)] == [
        "us-east-1f-4-0",
        "us-east-2a-4-0",
        "us-west-2c-4-0",
    ]
    assert {each.name.split("-")[3] for each in draw_gangs(5, days=1)} == {"16"}
    assert draw_gangs(16, days=2) == draw_gangs(16, days=2)
    assert draw_gangs(16, days=2) != draw_gangs(16, days=2, seed=1)
    # Fewer are there for longer: what a loss leaves is enough for some.
    few, many = (sum(map(sum, (each.available for each in draw_gangs(nodes, days=60)))) for nodes in (8, 16))
    assert few > many


def test_more_than_were_ever_counted_are_not_drawn():
    with pytest.raises(SeriesError, match="gangs of 32 cannot be drawn: there are figures of 16 machines at most"):
        draw_gangs(32)
