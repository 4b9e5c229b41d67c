import json
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.builders import NOW, make_capacity_failure, make_launch_request
from relaunch.core.launches.gpu_override import WholeGpus
from relaunch.core.launches.launch import (
    MAX_OVERRIDES_LENGTH,
    ContainerInstance,
    ContainerInstanceObservation,
    LaunchRequest,
    build_overrides,
    check_limits,
    client_token,
    may_refute,
    refutes,
)

GUARD = "attribute:ecs.instance-type == g5.xlarge"


@given(st.text(max_size=300), st.integers(min_value=1), st.integers(min_value=1))
def test_client_token_keeps_to_the_limits_of_ecs(job_id: str, attempt: int, placement: int) -> None:
    token = client_token(job_id, attempt, placement)

    assert 0 < len(token) <= 64
    assert all(33 <= ord(character) <= 126 for character in token)


def test_client_token_is_the_same_each_time() -> None:
    assert client_token("resnet-1f2e", 2, 3) == client_token("resnet-1f2e", 2, 3)


def test_client_tokens_of_different_tries_differ() -> None:
    tries = [("a", 1, 1), ("a", 1, 2), ("a", 2, 1), ("b", 1, 1), ("a", 11, 1), ("a", 1, 11), ("a/1", 1, 1)]

    assert len({client_token(*each) for each in tries}) == len(tries)


def test_overrides_carry_command_environment_and_gpus() -> None:
    request = make_launch_request(environment={"B": "2", "A": "1"}, command=("python", "train.py"), gpu=WholeGpus(4))

    assert build_overrides(request) == {
        "containerOverrides": [
            {
                "name": "main",
                "command": ["python", "train.py"],
                "environment": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                "resourceRequirements": [{"type": "GPU", "value": "4"}],
            }
        ]
    }


def test_what_is_not_overridden_is_left_to_the_revision() -> None:
    request = make_launch_request(environment={}, command=(), gpu=None)

    assert build_overrides(request) == {"containerOverrides": [{"name": "main", "environment": []}]}


def test_order_of_the_environment_does_not_change_the_request() -> None:
    one = build_overrides(make_launch_request(environment={"A": "1", "B": "2"}))
    other = build_overrides(make_launch_request(environment={"B": "2", "A": "1"}))

    assert json.dumps(one) == json.dumps(other)


def with_overrides_of(length: int) -> LaunchRequest:
    empty = make_launch_request(environment={"FILL": ""})
    missing = length - len(json.dumps(build_overrides(empty)))
    return replace(empty, environment={"FILL": "x" * missing})


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(make_launch_request(), id="usual"),
        pytest.param(make_launch_request(placement_constraints=()), id="no-constraint"),
        pytest.param(make_launch_request(placement_constraints=(GUARD,) * 10), id="ten-constraints"),
        pytest.param(make_launch_request(own_constraint_count=9), id="nine-of-the-definition"),
        pytest.param(make_launch_request(placement_constraints=("x",)), id="expression-of-1"),
        pytest.param(make_launch_request(placement_constraints=("x" * 2000,)), id="expression-of-2000"),
        pytest.param(with_overrides_of(MAX_OVERRIDES_LENGTH), id="overrides-of-8192"),
        pytest.param(make_launch_request(started_by="aZ0-_/" + "x" * 122), id="started-by-of-128"),
        pytest.param(make_launch_request(client_token="!" * 63 + "~"), id="token-of-64"),
    ],
)
def test_request_within_the_limits_breaks_none(request_: LaunchRequest) -> None:
    assert check_limits(request_) == ()


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        pytest.param(
            make_launch_request(placement_constraints=(GUARD,) * 11), "11 placement constraints", id="11-constraints"
        ),
        pytest.param(
            make_launch_request(own_constraint_count=10),
            "with the 10 of the task definition",
            id="ten-of-the-definition",
        ),
        pytest.param(make_launch_request(placement_constraints=("x" * 2001,)), "2001 characters", id="expression-2001"),
        pytest.param(make_launch_request(placement_constraints=("",)), "0 characters", id="empty-expression"),
        pytest.param(
            with_overrides_of(MAX_OVERRIDES_LENGTH + 1), "overrides have 8193 characters", id="overrides-8193"
        ),
        pytest.param(make_launch_request(environment={"A": "ä" * 1400}), "overrides have", id="escapes-count"),
        pytest.param(make_launch_request(started_by="x" * 129), "startedBy", id="started-by-of-129"),
        pytest.param(make_launch_request(started_by="job:1"), "'job:1'", id="started-by-with-colon"),
        pytest.param(make_launch_request(started_by="job.1"), "'job.1'", id="started-by-with-dot"),
        pytest.param(make_launch_request(started_by="jöb"), "'jöb'", id="started-by-with-umlaut"),
        pytest.param(make_launch_request(started_by="job\n"), "startedBy", id="started-by-with-newline"),
        pytest.param(make_launch_request(started_by=""), "startedBy", id="no-started-by"),
        pytest.param(make_launch_request(client_token="x" * 65), "client token", id="token-of-65"),
        pytest.param(make_launch_request(client_token="a b"), "client token", id="token-with-blank"),
        pytest.param(make_launch_request(client_token=""), "client token", id="no-token"),
    ],
)
def test_broken_limit_is_said_in_words(request_: LaunchRequest, words: str) -> None:
    (violation,) = check_limits(request_)

    assert words in violation


def test_all_broken_limits_are_said_at_once() -> None:
    request = make_launch_request(started_by="", client_token="", placement_constraints=("",) * 11)

    assert len(check_limits(request)) == 14


def test_every_neuron_device_is_asked_for_where_ecs_gives_them_out():
    overrides = build_overrides(make_launch_request(gpu=None, takes_all_neuron=True))

    assert overrides["containerOverrides"][0]["resourceRequirements"] == [{"type": "NeuronDevice", "value": "ALL"}]


LATE = ContainerInstanceObservation(
    ContainerInstance("arn", "i-0aaa", "g5.xlarge"),
    "ACTIVE",
    registered_at=NOW + timedelta(minutes=3),
    capacity_provider="g5-spot",
)


@pytest.mark.parametrize(
    ("seen", "provider", "is_refuted"),
    [
        pytest.param(LATE, "g5-spot", True, id="arrived-late"),
        pytest.param(LATE, "g5-other", False, id="another-provider"),
        pytest.param(replace(LATE, capacity_provider=""), "", False, id="of-no-provider"),
        pytest.param(replace(LATE, instance=ContainerInstance("arn", "i", "g6.xlarge")), "g5-spot", False, id="type"),
        pytest.param(replace(LATE, status="DRAINING"), "g5-spot", False, id="drained"),
        pytest.param(replace(LATE, registered_at=NOW), "g5-spot", False, id="was-there-before"),
        pytest.param(replace(LATE, registered_at=None), "g5-spot", False, id="not-known-since-when"),
    ],
)
def test_a_machine_that_arrives_late_refutes_that_there_is_no_capacity(seen, provider, is_refuted):
    failure = make_capacity_failure(at=NOW, capacity_provider=provider)

    assert refutes(seen, failure) == is_refuted


@pytest.mark.parametrize(("registered", "is_refuted"), [(0, False), (3, False), (4, True), (8, True)])
def test_a_machine_without_the_gpus_that_the_launch_needed_refutes_nothing(registered, is_refuted):
    failure = make_capacity_failure(at=NOW, capacity_provider="g5-spot", gpu_count=4)

    assert refutes(replace(LATE, gpu_count=registered), failure) == is_refuted
    assert may_refute(LATE, failure)


@pytest.mark.parametrize(
    ("seen", "is_left_open"),
    [
        pytest.param(replace(LATE, capacity_provider=""), True, id="names-no-provider"),
        pytest.param(replace(LATE, instance=ContainerInstance("arn", "i")), True, id="names-no-type"),
        pytest.param(replace(LATE, registered_at=None), True, id="not-known-since-when"),
        pytest.param(replace(LATE, instance=ContainerInstance("arn", "i", "g6.xlarge")), False, id="type"),
        pytest.param(replace(LATE, registered_at=NOW), False, id="was-there-before"),
    ],
)
def test_the_event_of_a_machine_leaves_open_what_it_does_not_say(seen, is_left_open):
    failure = make_capacity_failure(at=NOW, capacity_provider="g5-spot")

    assert may_refute(seen, failure) == is_left_open
