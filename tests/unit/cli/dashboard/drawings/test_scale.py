"""Where moments and numbers lie in a drawing, and the ticks of its axes."""

import math
import sys
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fakes.builders import NOW
from relaunch_cli.dashboard.drawings.scale import MOST_TICKS, NumberScale, TimeScale, format_number, scale_of

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


def test_moments_are_to_scale_and_what_is_beyond_an_edge_is_at_it():
    scale = TimeScale.between(NOW, NOW + 4 * HOUR)

    at = [scale.position(NOW + hours * HOUR) for hours in (-1, 0, 1, 4, 5)]

    assert at == [0.0, 0.0, 250.0, 1000.0, 1000.0]
    assert scale.width(NOW + HOUR, NOW + 2 * HOUR) == 250.0


def test_a_span_without_an_end_reaches_the_right_edge_and_one_that_ends_before_it_begins_has_no_width():
    scale = TimeScale.between(NOW, NOW + 4 * HOUR)

    assert scale.width(NOW + 3 * HOUR, None) == 250.0
    assert scale.width(NOW + 3 * HOUR, NOW + 2 * HOUR) == 0.0
    assert scale.width(NOW - HOUR, NOW + HOUR) == 250.0


@pytest.mark.parametrize("duration", [timedelta(0), -HOUR])
def test_a_time_that_is_none_counts_as_a_second(duration):
    scale = TimeScale.between(NOW, NOW + duration)

    assert scale.ended_at - scale.began_at == timedelta(seconds=1)
    assert scale.position(NOW) == 0.0
    assert len(scale.ticks) >= 1


@settings(max_examples=40, deadline=None)
@given(
    began=st.floats(0, 3000 * DAY.total_seconds()),
    seconds=st.floats(4, 100 * DAY.total_seconds()),
)
def test_an_axis_has_four_to_eight_ticks_in_their_order(began, seconds):
    began_at = NOW + timedelta(seconds=began)

    ticks = TimeScale.between(began_at, began_at + timedelta(seconds=seconds)).ticks

    assert 4 <= len(ticks) <= MOST_TICKS
    assert [each.position for each in ticks] == sorted(each.position for each in ticks)


@pytest.mark.parametrize(
    ("duration", "labels"),
    [
        (timedelta(seconds=6), ["09:26:53", "09:26:54", "09:26:55", "09:26:56", "09:26:57", "09:26:58", "09:26:59"]),
        (timedelta(minutes=6), ["09:27", "09:28", "09:29", "09:30", "09:31", "09:32"]),
        (6 * HOUR, ["10:00", "11:00", "12:00", "13:00", "14:00", "15:00"]),
        (DAY, ["12:00", "15:00", "18:00", "21:00", "15 Mar", "03:00", "06:00", "09:00"]),
        (35 * DAY, ["18 Mar", "23 Mar", "28 Mar", "2 Apr", "7 Apr", "12 Apr", "17 Apr"]),
    ],
)
def test_ticks_are_round_in_utc_and_a_day_has_its_date(duration, labels):
    assert [each.label for each in TimeScale.between(NOW, NOW + duration).ticks] == labels


def test_the_time_of_a_life_has_ticks_too():
    assert 4 <= len(TimeScale.between(NOW, NOW + 4000 * DAY).ticks) <= MOST_TICKS


def test_losses_of_one_order_of_magnitude_are_on_a_straight_scale():
    scale = scale_of([0.5, 2.0], logarithmic_above=50)

    assert not scale.is_logarithmic
    assert [each.label for each in scale.ticks] == ["0.5", "1", "1.5", "2"]
    assert scale.position(1.25) == 500.0


def test_losses_of_several_orders_are_on_a_logarithmic_one():
    scale = scale_of([0.001, 100.0], logarithmic_above=50)

    assert scale.is_logarithmic
    assert [each.label for each in scale.ticks] == ["0.001", "0.01", "0.1", "1", "10", "100"]
    assert scale.position(1.0) == 600.0


def test_a_logarithmic_scale_of_few_orders_has_ticks_between_the_powers_of_ten_and_one_of_many_leaves_some_out():
    few = scale_of([0.05, 4.0], logarithmic_above=50).ticks
    many = scale_of([1e-300, 1e300], logarithmic_above=50).ticks

    assert [each.label for each in few] == ["0.05", "0.1", "0.2", "0.5", "1", "2"]
    assert 4 <= len(many) <= MOST_TICKS


@pytest.mark.parametrize("values", [[0.0, 1000.0], [-1.0, 1000.0]])
def test_what_is_not_above_nothing_has_no_logarithm(values):
    assert not scale_of(values, logarithmic_above=50).is_logarithmic


@pytest.mark.parametrize("value", [0.0, 3.0, -2.5, sys.float_info.max, -sys.float_info.max, 5e-324])
def test_one_number_lies_in_the_middle_or_at_an_edge_that_a_float_has(value):
    scale = scale_of([value, value])

    assert scale.low < scale.high
    assert 0 <= scale.position(value) <= 1000
    assert all(0 <= each.position <= 1000 for each in scale.ticks)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5))
def test_any_finite_numbers_have_a_scale_with_few_ticks_within_it(values):
    scale = scale_of(values, logarithmic_above=50)

    assert all(math.isfinite(scale.position(each)) for each in values)
    assert len(scale.ticks) <= 9


def test_steps_of_a_training_have_round_ticks():
    labels = [each.label for each in NumberScale(0, 120_000).ticks]

    assert labels == ["0", "20,000", "40,000", "60,000", "80,000", "100,000", "120,000"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.25, "0.25"),
        (1e-5, "1e-05"),
        (12_500, "12,500"),
        (3_200_000, "3.2M"),
        (5e9, "5G"),
        (7e12, "7T"),
        (1e18, "1e+18"),
        (-1500, "-1,500"),
    ],
)
def test_numbers_are_short(value, text):
    assert format_number(value) == text
