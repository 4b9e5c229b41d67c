"""Times, spans and money as people read them."""

from datetime import timedelta

import pytest

from fakes.builders import NOW
from relaunch.core.jobs.state import CostBasis
from relaunch_cli.views.formatting import (
    format_cost,
    format_count,
    format_duration,
    format_percentage,
    format_price,
    format_time,
    format_timestamp,
    shorten_task_arns,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (-5, "0s"), (59, "59s"), (61, "1m01s"), (3600, "1h00m"), (7 * 3600 + 65, "7h01m"), (90000, "1d01h")],
)
def test_durations_show_their_two_largest_units(seconds, text):
    assert format_duration(timedelta(seconds=seconds)) == text


def test_times_of_another_day_show_the_day():
    assert format_time(NOW, NOW + timedelta(hours=1)) == "09:26:53"
    assert format_time(NOW, NOW + timedelta(days=1)) == "03-14 09:26"


def test_timestamps_show_their_distance_from_now():
    assert format_timestamp(NOW, NOW + timedelta(minutes=5)) == "09:26:53 UTC (5m00s ago)"
    assert format_timestamp(NOW + timedelta(minutes=5), NOW) == "09:31:53 UTC (in 5m00s)"


@pytest.mark.parametrize(
    ("usd", "text"),
    [(0.003, "<$0.01"), (0.01, "$0.01"), (0, "-"), (0.4, "$0.40"), (999.5, "$999.50"), (12345.6, "$12,346")],
)
def test_costs(usd, text):
    assert format_cost(usd) == text


@pytest.mark.parametrize(("usd", "text"), [(0, "-"), (0.4, "<=$0.40"), (12345.6, "<=$12,346")])
def test_an_upper_limit_of_a_cost_is_marked(usd, text):
    assert format_cost(usd, CostBasis.LIMIT) == text


def test_an_unknown_cost_is_no_amount():
    assert (format_cost(0, CostBasis.UNKNOWN), format_cost(0.4, CostBasis.UNKNOWN)) == ("?", "?")


def test_unknown_prices_and_percentages():
    assert (format_price(None), format_price(0.4)) == ("?", "0.4000")
    assert (format_percentage(None), format_percentage(0.6)) == ("", "60%")


def test_counts_have_their_plural():
    assert (format_count(1, "failure"), format_count(0, "failure")) == ("1 failure", "0 failures")


def test_arns_of_tasks_are_replaced_by_their_ids():
    arn = "arn:aws:ecs:us-east-1:111122223333:task/relaunch/00000000000000000000000000000001"

    assert shorten_task_arns(f"task placed: {arn}") == "task placed: 00000000000000000000000000000001"
