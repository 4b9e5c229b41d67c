import pytest

from fakes.builders import make_attempt, make_job, make_running_job, task_id
from relaunch.core.jobs.attempt import AttemptKey
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


@pytest.mark.parametrize("worse", list(CostBasis))
@pytest.mark.parametrize("better", list(CostBasis))
def test_a_sum_rests_on_the_worse_of_both(better, worse):
    order = [CostBasis.PRICE, CostBasis.LIMIT, CostBasis.UNKNOWN]

    assert better.plus(worse) is order[max(order.index(better), order.index(worse))]
