import pytest

from fakes.builders import make_attempt, make_job, make_offering_key, make_placement, make_running_job, task_id
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.attempt_key import AttemptKey
from relaunch.core.jobs.state import FINAL_STATES, CostBasis, JobState
from relaunch.core.lifecycle.decision import stop_effect


def test_four_states_are_final():
    assert {state for state in JobState if state.is_final} == FINAL_STATES
    assert {str(state) for state in FINAL_STATES} == {"SUCCEEDED", "FAILED", "CANCELLED", "TIMED_OUT"}


def test_a_job_that_was_never_launched_has_no_current_attempt():
    with pytest.raises(LookupError, match="resnet-1f2e3d4c has no attempt yet"):
        _ = make_job().current_attempt


def test_tasks_are_of_the_job_and_its_attempt():
    assert make_job().attempt_key == AttemptKey("resnet-1f2e3d4c", 1)
    assert make_running_job(attempt=make_attempt(2)).attempt_key == AttemptKey("resnet-1f2e3d4c", 2)
    assert str(AttemptKey("resnet-1f2e3d4c", 2)) == "resnet-1f2e3d4c/2"


def test_only_a_known_task_can_be_stopped():
    assert stop_effect(make_job(), "because") == ()
    assert [effect.task_id for effect in stop_effect(make_running_job(), "because")] == [task_id()]


def test_a_price_is_put_in_words_with_what_is_known_of_it():
    assert make_placement().price_text == "$0.4000/h"
    assert make_placement(price_usd_per_hour=1.006, is_price_limit=True).price_text == "up to $1.0060/h"
    assert make_placement(price_usd_per_hour=0.0).price_text == "an unknown price"
    by_zone = make_placement(usd_per_hour_by_zone={"us-east-1a": 0.3, "us-east-1b": 0.4})
    assert by_zone.price_text == "$0.3000 to $0.4000/h, by zone"
    assert make_placement(usd_per_hour_by_zone={"us-east-1a": 0.4}).price_text == "$0.4000/h"
    reserved = make_placement(offering=make_offering_key(purchase=PurchaseOption.RESERVED), price_usd_per_hour=0.0)
    assert (reserved.price_text, reserved.cost_basis) == ("paid for with its reservation", CostBasis.PRICE)


@pytest.mark.parametrize("worse", list(CostBasis))
@pytest.mark.parametrize("better", list(CostBasis))
def test_a_sum_rests_on_the_worse_of_both(better, worse):
    order = [CostBasis.PRICE, CostBasis.LIMIT, CostBasis.UNKNOWN]

    assert better.plus(worse) is order[max(order.index(better), order.index(worse))]
