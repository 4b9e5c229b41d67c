"""Whether a revision that is registered is the derived one: what ECS adds is nothing, what somebody changes is."""

from collections.abc import Mapping
from typing import Any

import pytest

from relaunch.core.launches.derived_revision import TaskDefinition, has_content

MAIN: dict[str, Any] = {
    "name": "main",
    "image": "111122223333.dkr.ecr.us-east-1.amazonaws.com/trainer@sha256:5e07",
    "command": ["python", "train.py"],
    "environment": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
}
PROXY = {"name": "proxy", "image": "envoy@sha256:01"}
CONTENT: dict[str, Any] = {
    "taskRoleArn": "arn:aws:iam::111122223333:role/relaunch/task",
    "containerDefinitions": [MAIN, PROXY],
}
WANTED = TaskDefinition("trainer--0123456789abcdef", CONTENT, {"team": "vision"})


def registered(main: Mapping[str, Any] | None = None, **content: Any) -> TaskDefinition:
    return TaskDefinition(
        WANTED.family, {**CONTENT, "containerDefinitions": [{**MAIN, **(main or {})}, PROXY], **content}
    )


@pytest.mark.parametrize(
    "found",
    [
        registered(),
        registered(volumes=[], placementConstraints=[], networkMode="bridge", pidMode=None, enableFaultInjection=False),
        registered({"essential": True, "portMappings": [], "mountPoints": [], "privileged": False, "memory": 0}),
        registered({"environment": [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]}),
        registered(containerDefinitions=[PROXY, {**MAIN, "cpu": 0}]),
    ],
)
def test_what_ecs_adds_is_no_difference(found: TaskDefinition) -> None:
    assert has_content(found, WANTED)


@pytest.mark.parametrize(
    "found",
    [
        registered({"image": "somebody/else@sha256:5e07"}),
        registered({"command": ["train.py", "python"]}),
        registered({"command": None}),
        registered({"privileged": True}),
        registered({"entryPoint": ["sh", "-c"]}),
        registered({"environment": [{"name": "A", "value": "1"}]}),
        registered({"environment": [*MAIN["environment"], {"name": "LD_PRELOAD", "value": "/x"}]}),
        registered({"environment": [{"name": "A", "value": "1"}] * 2}),
        registered({"environment": "A=1"}),
        registered(taskRoleArn="arn:aws:iam::111122223333:role/relaunch/other"),
        registered(networkMode="host"),
        registered(volumes=[{"name": "root", "host": {"sourcePath": "/"}}]),
        registered(containerDefinitions=[MAIN]),
        registered(containerDefinitions=[MAIN, PROXY, {"name": "more", "image": "x"}]),
        registered(containerDefinitions={}),
        TaskDefinition("trainer--0000000000000000", CONTENT),
    ],
)
def test_what_somebody_changes_is_another_revision(found: TaskDefinition) -> None:
    assert not has_content(found, WANTED)
