from typing import Any

import pytest

from fakes.simulated_region import SimulatedRegion

TASK = "0" * 32


@pytest.mark.parametrize(
    ("method", "request_", "code"),
    [
        ("stop_task", {"cluster": "c", "task": TASK}, "InvalidParameterException"),
        ("stop_task", {"cluster": "c", "task": "short"}, "InvalidParameterException"),
        ("stop_task", {"task": TASK}, "ClusterNotFoundException"),
        ("describe_tasks", {"cluster": "c", "tasks": []}, "InvalidParameterException"),
        ("describe_tasks", {"cluster": "c", "tasks": [TASK] * 101}, "InvalidParameterException"),
        (
            "describe_tasks",
            {"cluster": "c", "tasks": [f"arn:aws:ecs:us-east-1:111122223333:task/other/{TASK}"]},
            "InvalidParameterException",
        ),
        ("list_tasks", {"cluster": "c", "startedBy": "j", "family": "train"}, "InvalidParameterException"),
        ("list_tasks", {"cluster": "c", "startedBy": "j", "launchType": "EC2"}, "InvalidParameterException"),
        ("list_tasks", {"cluster": "c", "desiredStatus": "DONE"}, "InvalidParameterException"),
        ("list_tasks", {"cluster": "c", "maxResults": 101}, "InvalidParameterException"),
        ("list_tasks", {"cluster": "c", "nextToken": "x"}, "InvalidParameterException"),
        ("list_tasks", {"cluster": "c", "serviceName": "s"}, "ServiceNotFoundException"),
        ("list_container_instances", {"cluster": "c", "filter": "nope"}, "InvalidParameterException"),
        (
            "update_container_instances_state",
            {"cluster": "c", "containerInstances": [TASK], "status": "GONE"},
            "InvalidParameterException",
        ),
        ("describe_task_definition", {"taskDefinition": "nope"}, "ClientException"),
        ("deregister_task_definition", {"taskDefinition": "train"}, "InvalidParameterException"),
        ("deregister_task_definition", {"taskDefinition": "train:4"}, "ClientException"),
        ("list_task_definitions", {"sort": "UP"}, "InvalidParameterException"),
        ("list_task_definitions", {"status": "GONE"}, "InvalidParameterException"),
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
            "InvalidParameterException",
        ),
        ("list_tags_for_resource", {"resourceArn": "nope"}, "InvalidParameterException"),
        ("make_coffee", {}, "UnknownOperationException"),
    ],
)
def test_other_actions_refuse(region: SimulatedRegion, method: str, request_: dict[str, Any], code: str) -> None:
    region.register()

    assert region.error_code(method, **request_) == code


def test_a_parameter_of_the_wrong_type_is_refused(region: SimulatedRegion) -> None:
    assert region.error_code("list_tasks", cluster="c", maxResults="many") == "ParamValidationError"
