import pytest

from policy.generator import MULTIPLES, draw_series
from policy.hazards import Hazards, count_hazards
from relaunch.core.market.hazards import OUTAGE_ENDS_PER_HOUR, SPELL_ENDS_PER_HOUR

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
