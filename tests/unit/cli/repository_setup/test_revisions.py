from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fakes.aws import aws_in_process, make_client
from relaunch_cli.repository_setup.revisions import newest_revision, register
from relaunch_cli.repository_setup.task_definition import task_definition
from relaunch_cli.repository_setup.training import Training
from unit.cli.repository_setup.trainings import STACK

DEFINITION = task_definition(Training("vision"), "relaunch-vision", STACK)


@pytest.fixture
def ecs() -> Iterator[Any]:
    with aws_in_process():
        yield make_client("ecs")


def test_the_newest_revision_is_found(ecs):
    assert newest_revision("relaunch-vision", ecs) is None
    assert register(DEFINITION, ecs) == "relaunch-vision:1"
    assert register(DEFINITION, ecs) == "relaunch-vision:2"

    found = newest_revision("relaunch-vision", ecs)

    assert found is not None
    assert found["revision"] == 2


def test_a_family_without_an_active_revision_has_none():
    class Deregistered:
        def describe_task_definition(self, **_: str) -> Any:
            return {"taskDefinition": {"family": "relaunch-vision", "revision": 3, "status": "INACTIVE"}}

    assert newest_revision("relaunch-vision", Deregistered()) is None


def test_other_errors_are_aws_s_own():
    class Denied:
        def describe_task_definition(self, **_: str) -> Any:
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "DescribeTaskDefinition")

    with pytest.raises(ClientError, match="AccessDenied"):
        newest_revision("relaunch-vision", Denied())
