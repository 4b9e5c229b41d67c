import json
from dataclasses import replace

import pytest

from fakes.builders import make_launch_request, make_offering_key
from relaunch.adapters.aws.ecs.container_overrides import build_overrides
from relaunch.adapters.aws.ecs.run_task_limits import MAX_OVERRIDES_LENGTH, check_limits
from relaunch.core.jobs.attempt import AttemptKey
from relaunch.core.launches.launch import LaunchRequest


def with_overrides_of(length: int) -> LaunchRequest:
    empty = make_launch_request(environment={"FILL": ""})
    missing = length - len(json.dumps(build_overrides(empty)))
    return replace(empty, environment={"FILL": "x" * missing})


def of_job(job_id: str, attempt_number: int = 1) -> LaunchRequest:
    return make_launch_request(attempt=AttemptKey(job_id, attempt_number))


def avoiding(count: int) -> LaunchRequest:
    return make_launch_request(avoided_instances=tuple(f"i-{number:017x}" for number in range(count)))


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(make_launch_request(), id="usual"),
        pytest.param(make_launch_request(instance_id="i-0aaa", capacity_provider=""), id="machine-of-our-own"),
        pytest.param(make_launch_request(own_constraint_count=9), id="nine-of-the-definition"),
        pytest.param(avoiding(92), id="expression-of-1996"),
        pytest.param(with_overrides_of(MAX_OVERRIDES_LENGTH), id="overrides-of-8192"),
        pytest.param(of_job("aZ0-_/" + "x" * 120), id="started-by-of-128"),
    ],
)
def test_request_within_the_limits_breaks_none(request_: LaunchRequest) -> None:
    assert check_limits(request_) == ()


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        pytest.param(
            make_launch_request(own_constraint_count=10),
            "11 placement constraints with the 10 of the task definition",
            id="ten-of-the-definition",
        ),
        pytest.param(avoiding(93), "a placement constraint has 20", id="expression-over-2000"),
        pytest.param(make_launch_request(offering=make_offering_key("g5 xlarge")), "no instance type", id="no-type"),
        pytest.param(make_launch_request(instance_id="m-1"), "no EC2 instance: 'm-1'", id="no-instance"),
        pytest.param(make_launch_request(avoided_instances=("i-X",)), "no EC2 instance: 'i-X'", id="avoids-none"),
        pytest.param(
            with_overrides_of(MAX_OVERRIDES_LENGTH + 1), "overrides have 8193 characters", id="overrides-8193"
        ),
        pytest.param(make_launch_request(environment={"A": "ä" * 1400}), "overrides have", id="escapes-count"),
        pytest.param(of_job("x" * 127), "startedBy", id="started-by-of-129"),
        pytest.param(of_job("job:1"), "'job:1/1'", id="started-by-with-colon"),
        pytest.param(of_job("job.1"), "'job.1/1'", id="started-by-with-dot"),
        pytest.param(of_job("jöb"), "'jöb/1'", id="started-by-with-umlaut"),
        pytest.param(of_job("job\n"), "startedBy", id="started-by-with-newline"),
    ],
)
def test_broken_limit_is_said_in_words(request_: LaunchRequest, words: str) -> None:
    (violation,) = check_limits(request_)

    assert words in violation


def test_all_broken_limits_are_said_at_once() -> None:
    request = make_launch_request(
        attempt=AttemptKey("", -1), instance_id="m-1", own_constraint_count=10, environment={"A": "x" * 8192}
    )

    assert len(check_limits(replace(request, attempt=AttemptKey("jöb", 1)))) == 4
