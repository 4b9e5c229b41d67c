from typing import Any

import pytest

from fakes.simulated_region import SimulatedRegion

TASK = "0" * 32
INVALID = "InvalidParameterException"


@pytest.mark.parametrize(
    ("method", "request_", "code"),
    [
        ("stop_task", {"cluster": "c", "task": TASK}, INVALID),
        ("stop_task", {"cluster": "c", "task": "short"}, INVALID),
        ("stop_task", {"task": TASK}, "ClusterNotFoundException"),
        ("describe_tasks", {"cluster": "c", "tasks": []}, INVALID),
        ("describe_tasks", {"cluster": "c", "tasks": [TASK] * 101}, INVALID),
        (
            "describe_tasks",
            {"cluster": "c", "tasks": [f"arn:aws:ecs:us-east-1:111122223333:task/other/{TASK}"]},
            INVALID,
        ),
        ("stop_task", {"cluster": "c", "task": "0" * 33}, INVALID),
        ("stop_task", {"cluster": "c", "task": TASK + "\n"}, INVALID),
        ("list_tasks", {"cluster": "c", "startedBy": "j", "family": "train"}, INVALID),
        ("list_tasks", {"cluster": "c", "startedBy": "j", "launchType": "EC2"}, INVALID),
        ("list_tasks", {"cluster": "c", "desiredStatus": "DONE"}, INVALID),
        ("list_tasks", {"cluster": "c", "maxResults": 101}, INVALID),
        ("list_tasks", {"cluster": "c", "nextToken": "x"}, INVALID),
        ("list_tasks", {"cluster": "c", "serviceName": "s"}, "ServiceNotFoundException"),
        ("list_container_instances", {"cluster": "c", "filter": "nope"}, INVALID),
        ("update_container_instances_state", {"cluster": "c", "containerInstances": [TASK], "status": "GONE"}, INVALID),
        ("describe_task_definition", {"taskDefinition": "nope"}, "ClientException"),
        ("deregister_task_definition", {"taskDefinition": "train"}, INVALID),
        ("deregister_task_definition", {"taskDefinition": "train:4"}, "ClientException"),
        ("list_task_definitions", {"sort": "UP"}, INVALID),
        ("list_task_definitions", {"status": "GONE"}, INVALID),
        (
            "create_capacity_provider",
            {"name": "ecs-x", "autoScalingGroupProvider": {"autoScalingGroupArn": "arn"}},
            "ClientException",
        ),
        (
            "create_capacity_provider",
            {"name": "x", "autoScalingGroupProvider": {"autoScalingGroupArn": "arn"}},
            "ClientException",
        ),
        (
            "put_cluster_capacity_providers",
            {"cluster": "c", "capacityProviders": ["nope"], "defaultCapacityProviderStrategy": []},
            INVALID,
        ),
        ("describe_capacity_providers", {"maxResults": 11}, INVALID),
        ("list_tags_for_resource", {"resourceArn": "nope"}, INVALID),
        ("create_cluster", {"clusterName": "d\n"}, INVALID),
        ("create_cluster", {"clusterName": "d", "tags": [{"key": "a,b"}]}, INVALID),
        ("make_coffee", {}, "UnknownOperationException"),
    ],
)
def test_other_actions_refuse(region: SimulatedRegion, method: str, request_: dict[str, Any], code: str) -> None:
    region.register()

    assert region.error_code(method, **request_) == code


def test_a_parameter_of_the_wrong_type_is_refused(region: SimulatedRegion) -> None:
    assert region.error_code("list_tasks", cluster="c", maxResults="many") == "ParamValidationError"
