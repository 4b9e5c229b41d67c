"""Times, spans and money as people read them."""

from datetime import timedelta

import pytest

from fakes.builders import NOW, make_running_attempt, make_running_job
from relaunch.core.jobs.job import Stop, StopKind
from relaunch_cli.views.formats import (
    present_cost_usd,
    shorten_arns,
    write_cost,
    write_count,
    write_moment,
    write_price,
    write_share,
    write_span,
    write_time,
)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (-5, "0s"), (59, "59s"), (61, "1m01s"), (3600, "1h00m"), (7 * 3600 + 65, "7h01m"), (90000, "1d01h")],
)
def test_spans_show_their_two_largest_units(seconds, text):
    assert write_span(timedelta(seconds=seconds)) == text


def test_times_of_another_day_show_the_day():
    assert write_time(NOW, NOW + timedelta(hours=1)) == "09:26:53"
    assert write_time(NOW, NOW + timedelta(days=1)) == "03-14 09:26"


def test_moments_say_how_far_away_they_are():
    assert write_moment(NOW, NOW + timedelta(minutes=5)) == "09:26:53 UTC (5m00s ago)"
    assert write_moment(NOW + timedelta(minutes=5), NOW) == "09:31:53 UTC (in 5m00s)"


@pytest.mark.parametrize(("usd", "text"), [(0, "-"), (0.4, "$0.40"), (999.5, "$999.50"), (12345.6, "$12,346")])
def test_costs(usd, text):
    assert write_cost(usd) == text


def test_unknown_prices_and_shares_are_not_made_up():
    assert (write_price(None), write_price(0.4)) == ("?", "0.4000")
    assert (write_share(None), write_share(0.6)) == ("", "60%")


def test_counts_have_their_plural():
    assert (write_count(1, "failure"), write_count(0, "failure")) == ("1 failure", "0 failures")


def test_tasks_are_written_by_their_id():
    arn = "arn:aws:ecs:us-east-1:111122223333:task/relaunch/00000000000000000000000000000001"

    assert shorten_arns(f"task placed: {arn}") == "task placed: 00000000000000000000000000000001"


def test_the_cost_of_a_running_task_is_reckoned_to_the_minute():
    job = make_running_job(cost_usd=1.0)

    assert present_cost_usd(job, NOW + timedelta(hours=2)) == pytest.approx(1.8)
    stopped = make_running_job(cost_usd=1.0, attempt=make_running_attempt(stop=Stop(StopKind.SUCCESS, NOW)))
    assert present_cost_usd(stopped, NOW + timedelta(hours=2)) == 1.0
