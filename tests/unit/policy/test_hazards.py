import math

import pytest

from policy.hazards import count_hazards
from policy.series import Series

TICK = 1 / 6


def test_ends_are_counted_over_the_ticks_of_their_age():
    # Outages of two ticks and spells of three; what was there at the beginning is of unknown age.
    series = Series("a", TICK, (False, *(True, True, True, False, False) * 200, True))

    found = count_hazards([series])

    # Of the first two ticks no spell ends, in the third (20 minutes old) every one.
    assert found.spell[0] < 0.02
    assert found.spell[1] < 0.02
    assert found.spell[2] > 10
    assert found.outage[0] < 0.02
    assert found.outage[1] > 10


def test_a_hazard_is_that_of_a_continuous_time():
    # After a tick half of the outages end.
    series = Series("a", TICK, (True, False, True, False, False) * 400)

    assert count_hazards([series]).outage[0] == pytest.approx(-math.log(0.5) / TICK, rel=0.02)


def test_ages_that_were_never_seen_end_seldom():
    assert 0 < count_hazards([Series("a", TICK, (True, True))]).spell[7] < 0.5
