from itertools import groupby

import pytest

from policy.generator import MULTIPLES, ZONES_AVAILABLE, draw_series, draw_zones
from policy.hazards import Hazards, count_hazards
from relaunch.core.market.thresholds import OUTAGE_ENDS_PER_HOUR, SPELL_ENDS_PER_HOUR

HAZARDS = Hazards(OUTAGE_ENDS_PER_HOUR, SPELL_ENDS_PER_HOUR)


def test_the_same_seed_draws_the_same_series():
    assert draw_series(HAZARDS, days=2) == draw_series(HAZARDS, days=2)
    assert draw_series(HAZARDS, days=2) != draw_series(HAZARDS, days=2, seed=1)
    assert len(draw_series(HAZARDS, days=2)) == len(MULTIPLES)


def test_drawn_series_end_as_their_hazards_say():
    usual = draw_series(HAZARDS, days=300)[2:4]

    found = count_hazards(usual)

    assert found.outage[:4] == pytest.approx(HAZARDS.outage[:4], rel=0.25)
    assert found.spell[:4] == pytest.approx(HAZARDS.spell[:4], rel=0.25)


def test_some_pools_have_little_and_some_have_much():
    shares = [sum(each.available) / len(each.available) for each in draw_series(HAZARDS, days=100)]

    assert min(shares) < 0.45
    assert max(shares) > 0.6


def test_zones_have_capacity_for_as_much_of_the_time_as_published_and_spells_as_long():
    drawn = [draw_zones(days=400.0, seed=seed) for seed in (0, 100, 200)]

    for zone, published in enumerate(ZONES_AVAILABLE):
        available = [each[zone].available for each in drawn]
        assert sum(map(sum, available)) / sum(map(len, available)) == pytest.approx(published, abs=0.08)
    lives = [sum(1 for _ in run) for each in drawn[0] for is_up, run in groupby(each.available) if is_up]
    hours = [life * drawn[0][0].gap_hours for life in lives]
    assert sum(each >= 1 for each in hours) / len(hours) == pytest.approx(0.41, abs=0.03)
    assert sum(each >= 4 for each in hours) / len(hours) == pytest.approx(0.20, abs=0.02)
    assert draw_zones(days=1.0) == draw_zones(days=1.0)
