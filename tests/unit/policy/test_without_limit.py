"""Jobs without a limit on their time: what going back to spot saves, and how often they go."""

import pytest

from policy.replay import Job, Knowledge, Run
from policy.series import Series
from policy.without_limit import POLICIES, Returning, saved

TICK = 1 / 6
JOB = Job(work=24.0, time=48.0, overhead=0.1, price_ratio=3.145, overlap=0.05)


def series(*pattern: int) -> Series:
    return Series("a", TICK, tuple(bool(each) for each in (pattern * 600)[:600]))


LATE = Series("a", TICK, (False,) * 60 + (True,) * 540)


def test_after_the_first_refusal_it_stays_on_on_demand():
    assert saved([LATE], JOB, POLICIES["first refusal"], 1) == (pytest.approx(0.0, abs=0.01), 1)


@pytest.mark.parametrize("name", ["back, length known", "back, length unknown"])
def test_it_goes_back_once_there_is_spot(name):
    share, starts = saved([LATE], JOB, POLICIES[name], 1)

    assert starts == 2
    # Ten of 24 hours on on-demand, the rest at a third.
    assert share == pytest.approx(14 / 24 * (1 - 1 / 3.145), abs=0.02)


def test_spot_that_comes_and_goes_moves_it_once_an_hour_and_eight_times_a_day():
    policy = Returning(is_known=True)
    run = Run([series(1, 0)], 1, JOB, policy, Knowledge.TRIES)

    outcome = run.to_end()

    starts = outcome.starts
    assert starts <= 2 * 9 + 1
    assert saved([series(1, 0)], JOB, POLICIES["back, length known"], 1)[0] > -0.1
