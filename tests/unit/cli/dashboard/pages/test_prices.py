"""/market/TYPE."""

import re
from dataclasses import replace
from datetime import timedelta
from unittest.mock import Mock

import pytest
from botocore.exceptions import ClientError

from fakes.builders import make_offering
from fakes.cli_machines import MachineSession, own_machine
from fakes.dashboard_pages import HOSTILE, Pages, text_of
from relaunch.ports import NotGrantedError, TransientError

HOUR = timedelta(hours=1)
WEEK = timedelta(days=7)


@pytest.fixture
def session():
    session = MachineSession()
    session.offerings.available = (own_machine("g6.xlarge", "us-east-1a", 0.40),)
    return session


def ask(session, prices):
    """Let EC2 answer with these prices; return the calls."""
    spot_prices = Mock(side_effect=prices)
    session.deps = replace(session.deps, fleet=Mock(spot_prices=spot_prices))
    return spot_prices


def test_each_zone_has_a_step_line_from_the_price_in_effect_a_week_ago(session):
    now = session.clock.now()
    steps = [
        (now - WEEK - 2 * HOUR, 0.2),
        (now - WEEK - HOUR, 0.25),
        (now - WEEK / 2, 0.5),
        (now - WEEK / 4, 0.75),
        (now, 0.75),
    ]
    calls = ask(session, lambda *_: steps)

    html = Pages(session).html("/market/g6.xlarge")

    (key, since), _ = calls.call_args
    assert (str(key), since) == ("g6.xlarge spot us-east-1a", now - WEEK)
    (path,) = re.findall(r'class="chart-line zone-0" d="([^"]*)"', html)
    # 0 is at 880 of 1000, and 1.06 times the on-demand price of 1.00 at 60.
    assert path == "M0.0 686.6H500.0V493.2H750.0V299.8H1000.0V299.8H1000"
    assert '<line class="on-demand" x1="0" x2="100%" y1="10.642%" y2="10.642%"/>' in html
    text = text_of(html)
    assert "us-east-1a $0.7500 $0.2500 $0.4375 $0.7500 56% 2" in text
    assert "On demand it costs $1.0000" in text
    first = now - WEEK + timedelta(days=1)
    assert f"{first:%b} {first.day}" in text


def test_every_zone_is_asked_for_once_in_ten_minutes(session):
    session.offerings.available = (make_offering("g6.xlarge", offered_zones=("us-east-1b", "us-east-1a")),)
    prices = {"us-east-1a": 0.3, "us-east-1b": 0.2}
    calls = ask(session, lambda key, since: [(since - HOUR, prices[key.zone])])
    pages = Pages(session)

    html = pages.html("/market/g6.xlarge")
    session.clock.advance(9 * 60)
    pages.html("/market/g6.xlarge")

    assert calls.call_count == 2
    assert html.index("us-east-1a") < html.index("us-east-1b")
    assert 'class="chart-line zone-1"' in html


def test_a_group_of_unknown_zones_may_use_those_of_the_region(session):
    session.offerings.available = (make_offering("g6.xlarge"),)
    session.offerings.refreshed = replace(session.offerings.refreshed, zones={"g6.xlarge": ("us-east-1f",)})
    calls = ask(session, lambda *_: [])

    text = Pages(session).text("/market/g6.xlarge")

    assert calls.call_args.args[0].zone == "us-east-1f"
    assert "EC2 has no spot price of it in these seven days" in text


def test_a_price_that_began_within_the_week_begins_there(session):
    now = session.clock.now()
    ask(session, lambda *_: [(now - WEEK / 2, 0.5)])

    assert 'd="M500.0 493.2H1000"' in Pages(session).html("/market/g6.xlarge")


def denied():
    answer = {"Error": {"Code": "UnauthorizedOperation", "Message": "You are not authorized"}}
    error = NotGrantedError("reading the spot prices")
    error.__cause__ = ClientError(answer, "DescribeSpotPriceHistory")
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (denied(), "AWS denies DescribeSpotPriceHistory: You are not authorized. ask for permission to call"),
        (TransientError("no answer"), "no answer. this is temporary: try again"),
    ],
)
def test_where_ec2_does_not_say_it_is_said_why(session, error, words):
    ask(session, [error])

    text = Pages(session).text("/market/g6.xlarge")

    assert f"EC2 did not say what it has cost: {words}" in text
    assert "no spot price of it" not in text


def test_a_type_that_is_not_on_offer_is_not_asked_about(session):
    calls = ask(session, lambda *_: [])

    response = Pages(session).answer("/market/g6.xlarg")
    hostile = Pages(session).answer("/market/%3Cscript%3Ealert(1)")

    assert response.status == hostile.status == 404
    assert "did you mean g6.xlarge?" in text_of(response.body.decode())
    assert b"<script>alert" not in hostile.body
    calls.assert_not_called()


def test_what_others_named_is_text(session):
    session.offerings.available = (own_machine("g6.xlarge", HOSTILE, 0.40),)
    ask(session, lambda _, since: [(since, 0.4)])

    html = Pages(session).html("/market/g6.xlarge")

    assert "<script>alert" not in html
    assert "\x1b" not in html
    assert "&lt;script&gt;alert(1)" in html
