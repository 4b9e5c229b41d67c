from datetime import timedelta

import pytest

from fakes.builders import NOW, make_attempt, make_offering_key, make_placement, make_running_attempt
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.attempt import Stop, StopKind
from relaunch.core.jobs.state import CostBasis


@pytest.mark.parametrize(
    ("attempt", "seconds"),
    [
        (make_attempt(started_at=None), None),
        (make_running_attempt(), 21),
        (make_running_attempt(program_ended_at=NOW + timedelta(seconds=12)), 12),
        (make_running_attempt(stop=Stop(StopKind.SUCCESS, NOW + timedelta(seconds=12))), 12),
        (make_running_attempt(stop=Stop(StopKind.SUCCESS, NOW - timedelta(seconds=12))), 0),
    ],
    ids=["not-started", "running", "stopping", "stopped", "by-another-clock"],
)
def test_a_program_that_has_ended_runs_no_more_while_its_task_stops(attempt, seconds):
    ran = None if seconds is None else timedelta(seconds=seconds)

    assert attempt.run_time(NOW + timedelta(seconds=21)) == ran


def test_a_price_is_put_in_words_with_what_is_known_of_it():
    assert make_placement().price_text == "$0.4000/h"
    assert make_placement(price_usd_per_hour=1.006, is_price_limit=True).price_text == "up to $1.0060/h"
    assert make_placement(price_usd_per_hour=0.0).price_text == "an unknown price"
    by_zone = make_placement(usd_per_hour_by_zone={"us-east-1a": 0.3, "us-east-1b": 0.4})
    assert by_zone.price_text == "$0.3000 to $0.4000/h, by zone"
    assert make_placement(usd_per_hour_by_zone={"us-east-1a": 0.4}).price_text == "$0.4000/h"
    reserved = make_placement(offering=make_offering_key(purchase=PurchaseOption.RESERVED), price_usd_per_hour=0.0)
    assert (reserved.price_text, reserved.cost_basis) == ("paid for with its reservation", CostBasis.PRICE)
    managed = make_placement(offering=make_offering_key(purchase=PurchaseOption.RESERVED), price_usd_per_hour=0.5)
    assert managed.price_text == "paid for with its reservation, and $0.5000/h for its management"
