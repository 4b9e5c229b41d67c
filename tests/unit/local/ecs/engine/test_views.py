"""Responses of all actions have only the members and types of botocore's model."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import botocore.session
import pytest
from botocore.model import ListShape, MapShape, ServiceModel, Shape, StructureShape

from fakes.simulated_region import SimulatedRegion, container, gpu, share
from relaunch_local.ecs import AutoScalingGroup, Purchase, Script

PRIMITIVES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "long": (int,),
    "double": (float,),
    "boolean": (bool,),
    "timestamp": (datetime,),
}


def problems(shape: Shape, value: Any, path: str) -> Iterator[str]:
    """Yield the differences of a value from its shape."""
    if isinstance(shape, StructureShape):
        yield from (f"{path}.{name} is unknown" for name in value if name not in shape.members)
        for name in set(value) & set(shape.members):
            yield from problems(shape.members[name], value[name], f"{path}.{name}")
    elif isinstance(shape, ListShape | MapShape):
        inner, contents = (shape.member, value) if isinstance(shape, ListShape) else (shape.value, value.values())
        for content in contents:
            yield from problems(inner, content, f"{path}[]")
    elif not isinstance(value, PRIMITIVES[shape.type_name]):
        yield f"{path} is {value!r}, no {shape.type_name}"
    elif value not in (getattr(shape, "enum", None) or [value]):
        yield f"{path} is {value!r}, none of its values"


def busy_region() -> SimulatedRegion:
    """Return a region with resources of every kind."""
    region = SimulatedRegion(throttling=False)
    region.provider(max_size=2)
    options = {"awslogs-group": "g", "awslogs-region": "us-east-1"}
    definition = container(
        resourceRequirements=gpu(),
        portMappings=[{"containerPort": 80}],
        logConfiguration={"logDriver": "awslogs", "options": options},
    )
    region.register(
        "train", definition, tags=[{"key": "a", "value": "b"}], runtimePlatform={"cpuArchitecture": "X86_64"}
    )
    region.register("vpc", networkMode="awsvpc")
    region.register("share", container(cpu=128, memory=256, resourceRequirements=share(percent=30)))
    region.script = lambda spec: Script(runtime_seconds=5.0 if spec.family == "train" else None)
    return region


STRATEGY = [{"capacityProvider": "g5-spot", "weight": 1}]
TAGS = [{"key": "k", "value": "v"}]
ATTRIBUTE = {"name": "stack", "value": "blue", "targetType": "container-instance"}
NETWORK = {"awsvpcConfiguration": {"subnets": ["subnet-1"]}}
FIRST_CALLS: list[tuple[str, dict[str, Any]]] = [
    ("RegisterTaskDefinition", {"family": "f", "containerDefinitions": [container()], "tags": TAGS}),
    ("DeregisterTaskDefinition", {"taskDefinition": "f:1"}),
    ("DeleteTaskDefinitions", {"taskDefinitions": ["f:1", "train:1", "nope:1"]}),
    ("DescribeTaskDefinition", {"taskDefinition": "train", "include": ["TAGS"]}),
    ("ListTaskDefinitions", {"maxResults": 1}),
    ("ListTaskDefinitionFamilies", {}),
    ("CreateCluster", {"clusterName": "d", "tags": TAGS}),
    ("DescribeClusters", {"clusters": ["c", "nope"], "include": ["TAGS"]}),
    ("ListClusters", {}),
    ("DescribeCapacityProviders", {"capacityProviders": ["g5-spot", "nope"], "include": ["TAGS"]}),
    (
        "PutClusterCapacityProviders",
        {"cluster": "c", "capacityProviders": ["g5-spot"], "defaultCapacityProviderStrategy": STRATEGY},
    ),
    ("RunTask", {"cluster": "c", "taskDefinition": "train", "startedBy": "j", "tags": TAGS}),
    ("RunTask", {"cluster": "c", "taskDefinition": "vpc", "networkConfiguration": NETWORK}),
    ("RunTask", {"cluster": "c", "taskDefinition": "share"}),
]


def calls(region: SimulatedRegion) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield requests of all actions, some in several states of the region."""
    yield from FIRST_CALLS
    cluster = region.simulator.clusters.get("c")
    for seconds in (0, 160, 30, 600):
        region.clock.advance(seconds)
        yield (
            "DescribeTasks",
            {"cluster": "c", "tasks": [*cluster.tasks, *cluster.stopped, "0" * 32], "include": ["TAGS"]},
        )
        yield "ListTasks", {"cluster": "c", "maxResults": 1}
    yield "RunTask", {"cluster": "c", "taskDefinition": "train", "count": 3, "launchType": "EC2"}
    instances = list(cluster.container_instances)
    yield "ListContainerInstances", {"cluster": "c", "maxResults": 1}
    yield "ListServices", {"cluster": "c"}
    yield "DescribeContainerInstances", {"cluster": "c", "containerInstances": [*instances, "0" * 32]}
    yield "PutAttributes", {"cluster": "c", "attributes": [ATTRIBUTE | {"targetId": instances[0]}]}
    yield "UpdateContainerInstancesState", {"cluster": "c", "containerInstances": instances, "status": "DRAINING"}
    task = next(iter(cluster.tasks.values())).arn
    yield "TagResource", {"resourceArn": task, "tags": TAGS}
    yield "ListTagsForResource", {"resourceArn": task}
    yield "UntagResource", {"resourceArn": task, "tagKeys": ["k"]}
    yield "StopTask", {"cluster": "c", "task": task}
    arn = region.simulator.clusters.add_group(AutoScalingGroup("g", "g5.xlarge", Purchase.SPOT, ("us-east-1a",)))
    yield "DeregisterContainerInstance", {"cluster": "c", "containerInstance": instances[0], "force": True}
    yield "CreateCapacityProvider", {"name": "p", "autoScalingGroupProvider": {"autoScalingGroupArn": arn}}


@pytest.fixture(scope="module")
def model() -> ServiceModel:
    return botocore.session.get_session().get_service_model("ecs")


def test_every_answer_fits_botocores_model(model: ServiceModel) -> None:
    region = busy_region()
    seen = set()

    for action, request in calls(region):
        answer = region.simulator.call(action, request)
        shape = model.operation_model(action).output_shape
        assert shape is not None
        assert list(problems(shape, answer, action)) == []
        seen.add(action)

    assert seen == set(region.simulator.actions)


def test_the_check_itself_sees_unknown_members_and_wrong_types(model: ServiceModel) -> None:
    shape = model.operation_model("DescribeTasks").output_shape
    assert shape is not None
    answer = {"tasks": [{"tastArn": "a", "version": "1", "stopCode": "Foo"}]}

    assert len(list(problems(shape, answer, "DescribeTasks"))) == 3
