"""Views of one job."""

from fakes.builders import INSTANCE_ID, make_attempt, make_placement, make_running_attempt
from relaunch.core.jobs.attempt import Rank
from relaunch_cli.views.jobs import format_attempt_price, format_machines, instances_of


def test_the_price_of_an_attempt_is_marked_as_in_a_plan():
    assert format_attempt_price(make_attempt()) == "0.4000"
    assert format_attempt_price(make_attempt(placement=make_placement(is_price_limit=True))) == "<=0.4000"
    assert format_attempt_price(make_attempt(placement=make_placement(price_usd_per_hour=0.0))) == "?"


def test_an_attempt_over_several_machines_names_them_all():
    alone = make_running_attempt()
    others = (Rank("m-2", "i-2"), Rank("m-3", ""), Rank("m-4", "i-4"))
    gang = make_attempt(placement=make_placement(machine_id="m-1", instance_id="i-1", followers=others))

    assert (format_machines(alone), instances_of(alone)) == ("g5.xlarge spot", INSTANCE_ID)
    assert (format_machines(gang), instances_of(gang)) == ("4x g5.xlarge spot", "i-1, i-2, i-4")
    assert instances_of(make_attempt()) == ""
