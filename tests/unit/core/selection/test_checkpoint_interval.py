"""How often a training should save: held against the figures of Daly's paper, and against a calculator."""

from datetime import timedelta

import pytest

from relaunch.core.selection.checkpoint_interval import SaveTimes, advise, best_work, lost_a_day

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@pytest.mark.parametrize(("between", "minutes"), [(24 * HOUR, 117), (6 * HOUR, 57), (15 * MINUTE, 9.1)])
def test_the_best_interval_is_that_of_the_figures_in_the_paper(between, minutes):
    assert best_work(5 * MINUTE, between) / MINUTE == pytest.approx(minutes, abs=0.5)


def test_the_best_interval_by_hand():
    # sqrt(2 * 8 * 1600) = 160; 8 / 3200 = 0.0025, whose root is 0.05: 160 * (1 + 0.05/3 + 0.0025/9) - 8.
    assert best_work(8 * SECOND, 1_600 * SECOND) / SECOND == pytest.approx(154.7111, abs=1e-4)
    assert best_work(2 * HOUR, HOUR) == HOUR


def test_what_an_interval_costs_by_hand():
    # 9 minutes of work and 1 of saving, an interruption in 100 minutes: 1 - 0.09 / (e^0.1 - 1) = 0.14425 of a day.
    assert lost_a_day(MINUTE, 9 * MINUTE, 100 * MINUTE) / DAY == pytest.approx(1 - 0.09 / 0.1051709, abs=1e-5)
    # Hardly any interruption: what the saves take.
    assert lost_a_day(MINUTE, 9 * MINUTE, 10**6 * HOUR) / DAY == pytest.approx(0.1, abs=1e-4)
    assert lost_a_day(MINUTE, 100 * HOUR, HOUR) == DAY
    assert lost_a_day(MINUTE, 0 * MINUTE, HOUR) == DAY


def test_the_best_interval_costs_no_more_than_others():
    best = best_work(30 * SECOND, 10 * HOUR)
    costs = [lost_a_day(30 * SECOND, best * factor, 10 * HOUR) for factor in (0.5, 0.8, 1, 1.25, 2)]

    assert min(costs) == costs[2]


def test_an_interval_that_costs_much_is_named_with_the_better_one():
    said = advise(SaveTimes(30 * SECOND, 4 * HOUR, 0.1), 2.0)

    # 1 - 0.399167 / (e^0.4 - 1) = 0.188396, of 24 h 4.52 h. sqrt(2 * 30 s * 10 h) = 24.495 min, in all 24.16 min of
    # work: 1 - 0.0402712 / (e^0.0411045 - 1) = 0.040271, of 24 h 0.967 h.
    assert said == (
        "it saves every 4h, each save stops it for 30 s, and 0.1 interruptions an hour are expected: "
        "that costs 4.5 h, $9.04, of a day that it runs; "
        "every 25m would cost 1.0 h, $1.93, of a day that it runs (Young, Daly)"
    )


def test_an_interval_that_is_about_right_is_said_to_be():
    said = advise(SaveTimes(30 * SECOND, 30 * MINUTE, 0.1), None)

    assert said.endswith("that costs 1.0 h of a day that it runs; another interval would not save 10 minutes a day")


@pytest.mark.parametrize(
    "times",
    [
        None,
        SaveTimes(0 * SECOND, HOUR, 0.1),
        SaveTimes(MINUTE, HOUR, 0.0),
        SaveTimes(MINUTE, MINUTE, 0.1),
    ],
)
def test_what_is_not_measured_is_no_advice(times):
    assert advise(times, 1.0) == ""


def test_seconds_are_said_as_seconds():
    assert "it saves every 20 s, each save stops it for 5 s" in advise(SaveTimes(5 * SECOND, 20 * SECOND, 0.1), 1.0)
