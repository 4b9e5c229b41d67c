import pytest
from hypothesis import given
from hypothesis import strategies as st

from relaunch.adapters.aws.ecs.events import owner_of, started_by
from relaunch.core.jobs.attempt import AttemptKey


@given(st.from_regex(r"[a-z0-9-]{1,100}-[0-9a-f]{8}", fullmatch=True), st.integers(1, 999_999_999))
def test_the_owner_of_what_an_attempt_started_is_that_attempt(job_id: str, number: int) -> None:
    attempt = AttemptKey(job_id, number)

    assert owner_of(started_by(attempt)) == attempt


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("", id="nobody"),
        pytest.param("ecs-svc/9223370494312345678", id="a service"),
        pytest.param("ecs-svc/7", id="a service with a short number"),
        pytest.param("somebody", id="no attempt"),
        pytest.param("/1", id="no job"),
        pytest.param("batch/", id="no number"),
        pytest.param("resnet-1f2e3d4c/0", id="attempts begin with 1"),
        pytest.param("resnet-1f2e3d4c/01", id="not as Relaunch writes it"),
        pytest.param("resnet-1f2e3d4c/²", id="a digit that is no number"),
        pytest.param("resnet-1f2e3d4c/1\n", id="a line"),
        pytest.param(f"resnet-1f2e3d4c/{'9' * 5000}", id="a number that Python does not read"),
    ],
)
def test_what_others_start_is_nobodys(value: str) -> None:
    assert owner_of(value) is None
