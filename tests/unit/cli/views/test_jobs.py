"""Views of one job."""

from fakes.builders import make_attempt, make_placement
from relaunch_cli.views.jobs import format_attempt_price


def test_the_price_of_an_attempt_is_marked_as_in_a_plan():
    assert format_attempt_price(make_attempt()) == "0.4000"
    assert format_attempt_price(make_attempt(placement=make_placement(is_price_limit=True))) == "<=0.4000"
    assert format_attempt_price(make_attempt(placement=make_placement(price_usd_per_hour=0.0))) == "?"
