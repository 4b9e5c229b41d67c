from typing import Any

import pytest
from botocore.exceptions import ClientError

from fakes.simulated_region import SimulatedRegion
from relaunch_local.ecs import EcsError
from relaunch_local.iam.permission import Permission
from relaunch_local.iam.policies import PolicyAuthorizer

ARN = "arn:aws:ecs:us-east-1:111122223333"
CLUSTER = f"{ARN}:cluster/c"
DEFINITION = f"{ARN}:task-definition"


def allow(action: Any, resource: Any = "*", **others: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": action, "Resource": resource, **others}


def launcher(*statements: dict[str, Any]) -> SimulatedRegion:
    region = SimulatedRegion(authorize=PolicyAuthorizer({"AKIATEST": [{"Statement": list(statements)}]}))
    region.provider()
    return region


ON_CLUSTER = {"Condition": {"ArnEquals": {"ecs:cluster": CLUSTER}}}
REGISTER = allow("ecs:RegisterTaskDefinition")
RUN = allow("ecs:RunTask", f"{DEFINITION}/train:*", **ON_CLUSTER)


def test_a_launcher_with_just_its_permissions_may_launch() -> None:
    region = launcher(REGISTER, RUN)
    region.register()
    region.register("other")

    assert region.run("g5-spot")["tasks"]
    with pytest.raises(ClientError, match=r"AccessDenied.*ecs:RunTask.*other:1"):
        region.run("g5-spot", taskDefinition="other")
    assert len(region.simulator.clusters.get("c").tasks) == 1


def test_another_cluster_is_denied() -> None:
    region = launcher(REGISTER, RUN)
    region.simulator.clusters.create({"clusterName": "d"})
    region.register()

    with pytest.raises(ClientError, match="AccessDenied"):
        region.ecs.run_task(cluster="d", taskDefinition="train")


def test_tags_need_a_permission_of_their_own() -> None:
    region = launcher(REGISTER, RUN)
    region.register()

    with pytest.raises(ClientError, match="ecs:TagResource"):
        region.run("g5-spot", tags=[{"key": "a", "value": "b"}])


def test_tags_of_a_definition_need_it_at_registration_and_where_tasks_inherit_them() -> None:
    tags = [{"key": "a", "value": "b"}]

    with pytest.raises(ClientError, match=r"ecs:TagResource on resource: .*task-definition/train:"):
        launcher(REGISTER, RUN).register(tags=tags)
    region = launcher(REGISTER, RUN, allow("ecs:TagResource", f"{DEFINITION}/*"))
    region.register(tags=tags)
    assert region.run("g5-spot")["tasks"]
    with pytest.raises(ClientError, match=r"ecs:TagResource on resource: .*task/c/"):
        region.run("g5-spot", propagateTags="TASK_DEFINITION")


def test_a_role_needs_to_be_passed_at_registration_and_at_launch() -> None:
    role = "arn:aws:iam::111122223333:role/relaunch/trainer"
    region = launcher(REGISTER, RUN)

    with pytest.raises(ClientError, match="iam:PassRole"):
        region.register(taskRoleArn=role)
    region.simulator.definitions.register(
        {"family": "train", "taskRoleArn": role, "containerDefinitions": [{"name": "m", "image": "i", "memory": 64}]},
        registered_by="somebody",
    )
    with pytest.raises(ClientError, match=f"iam:PassRole on resource: {role}"):
        region.run("g5-spot")

    passing = launcher(REGISTER, RUN, allow("iam:PassRole", "arn:aws:iam::*:role/relaunch/*"))
    passing.register(taskRoleArn=role)
    assert passing.run("g5-spot")["tasks"]


@pytest.mark.parametrize(
    ("method", "request_", "resource"),
    [
        ("stop_task", {"cluster": "c", "task": "t"}, f"{ARN}:task/c/t"),
        ("describe_tasks", {"cluster": "c", "tasks": ["t"]}, f"{ARN}:task/c/t"),
        ("list_tasks", {"cluster": "c"}, f"{ARN}:container-instance/c/*"),
        (
            "describe_container_instances",
            {"cluster": "c", "containerInstances": ["x"]},
            f"{ARN}:container-instance/c/x",
        ),
        ("list_container_instances", {"cluster": "c"}, CLUSTER),
        ("deregister_container_instance", {"cluster": "c", "containerInstance": "x"}, CLUSTER),
        ("describe_clusters", {"clusters": ["c"]}, CLUSTER),
        ("describe_task_definition", {"taskDefinition": "train"}, "*"),
        ("list_tags_for_resource", {"resourceArn": CLUSTER}, CLUSTER),
        (
            "put_attributes",
            {"cluster": "c", "attributes": [{"name": "stack", "targetId": "x"}]},
            f"{ARN}:container-instance/c/x",
        ),
        ("delete_task_definitions", {"taskDefinitions": ["train:1"]}, f"{DEFINITION}/train:1"),
        ("delete_task_definitions", {"taskDefinitions": ["train"]}, f"{DEFINITION}/train:*"),
        ("describe_capacity_providers", {"capacityProviders": ["p"]}, f"{ARN}:capacity-provider/p"),
    ],
)
def test_each_action_is_asked_for_with_its_resource(method: str, request_: dict[str, Any], resource: str) -> None:
    asked: list[Permission] = []

    def refuse_all(permission: Permission) -> bool:
        asked.append(permission)
        return False

    region = SimulatedRegion(authorize=refuse_all)

    with pytest.raises(ClientError, match="AccessDenied"):
        getattr(region.ecs, method)(**request_)
    assert [each.resource for each in asked] == [resource]


def test_ec2_refuses_with_its_own_code() -> None:
    region = launcher()

    with pytest.raises(EcsError, match="UnauthorizedOperation"):
        region.simulator.call_ec2("DescribeInstances", {}, access_key="AKIATEST")
