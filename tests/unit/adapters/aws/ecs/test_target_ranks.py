"""RunTask for a job of several nodes: a task for each, every one with a client token of its own."""

from dataclasses import replace

import pytest

from fakes.builders import make_launch_request, task_id
from fakes.scripted_aws import throttle
from relaunch.core.launches.launch import LaunchDeferred, PlacementFailed, TaskPlaced
from relaunch.ports import PermanentError

GANG = make_launch_request(
    capacity_provider="",
    instance_id="i-0aaa",
    network_mode="host",
    followers=("i-0bbb", "i-0ccc"),
    rank_environment=({"RELAUNCH_NODE_RANK": "0"}, {"RELAUNCH_NODE_RANK": "1"}, {"RELAUNCH_NODE_RANK": "2"}),
)


def placed(ecs, *numbers):
    for number in numbers:
        ecs.answer("RunTask", tasks=[{"taskArn": task_id(number)}], failures=[])


def test_each_rank_is_a_task_on_its_machine(ecs, target):
    placed(ecs, 1, 2, 3)

    assert target.launch(GANG) == TaskPlaced(task_id(1), (task_id(2), task_id(3)))

    sent = ecs.sent("RunTask")
    assert len({each["clientToken"] for each in sent}) == 3
    assert {each["startedBy"] for each in sent} == {"resnet-1f2e3d4c/1"}
    expressions = [each["placementConstraints"][0]["expression"] for each in sent]
    assert [each.split()[2] for each in expressions] == ["i-0aaa", "i-0bbb", "i-0ccc"]
    given = [each["overrides"]["containerOverrides"][0]["environment"] for each in sent]
    assert [{one["name"]: one["value"] for one in each}["RELAUNCH_NODE_RANK"] for each in given] == [
        "0",
        "1",
        "2",
    ]


def test_the_first_rank_has_the_token_of_a_job_of_one_node(ecs, target):
    placed(ecs, 1, 2, 3, 1)
    target.launch(GANG)
    target.launch(make_launch_request())

    first, _, _, alone = ecs.sent("RunTask")
    assert first["clientToken"] == alone["clientToken"]


def test_what_was_placed_is_named_where_another_could_not_be(ecs, target):
    placed(ecs, 1, 2)
    ecs.answer("RunTask", tasks=[], failures=[{"arn": "i-0ccc", "reason": "RESOURCE:PORTS"}])

    outcome = target.launch(GANG)

    assert isinstance(outcome, PlacementFailed)
    assert outcome.placed == (task_id(1), task_id(2))


def test_a_throttled_rank_is_asked_for_again_with_the_others(ecs, target):
    placed(ecs, 1)
    throttle(ecs, "RunTask")

    assert isinstance(target.launch(GANG), LaunchDeferred)


def test_ranks_that_were_launched_before_the_settings_changed_are_those_of_the_placement(ecs, target):
    placed(ecs, 1)
    ecs.refuse("RunTask", "ConflictException", "The token is in use.", resourceIds=[task_id(9)])
    placed(ecs, 3)

    assert target.launch(GANG) == TaskPlaced(task_id(1), (task_id(9), task_id(3)))


def test_no_rank_is_launched_where_the_request_of_a_later_one_is_too_long(ecs, target):
    too_long = ({"RANK": "0"}, {"RANK": "1"}, {"RANK": "x" * 8192})

    with pytest.raises(PermanentError, match="launching resnet-1f2e3d4c/1"):
        target.launch(replace(GANG, rank_environment=too_long))

    assert ecs.requests == []
