from typing import Any

import pytest

from fakes.aws import aws_in_process, make_client
from relaunch_cli.repository_setup.task_definition import is_registered, task_definition
from relaunch_cli.repository_setup.training import AcceleratorKind, Training
from unit.cli.repository_setup.trainings import STACK


def container_of(training: Training) -> Any:
    return task_definition(training, "relaunch-vision", STACK)["containerDefinitions"][0]


def test_whole_gpus_are_resources_of_the_container():
    container = container_of(Training("vision", count=4, vcpus=8, memory_gib=32, stop_timeout_seconds=60))

    assert container["resourceRequirements"] == [{"type": "GPU", "value": "4"}]
    assert (container["cpu"], container["memory"], container["stopTimeout"]) == (8192, 32768, 60)
    assert {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "compute,utility"} in container["environment"]
    assert container["linuxParameters"] == {"sharedMemorySize": 16384}
    assert container["image"].endswith(":vision-latest")


@pytest.mark.parametrize(("kind", "variables"), [(AcceleratorKind.SHARE, 2), (AcceleratorKind.NEURON, 1)])
def test_a_share_and_neuron_devices_are_added_by_the_launch(kind, variables):
    container = container_of(Training("vision", kind))

    assert "resourceRequirements" not in container
    assert len(container["environment"]) == variables


def test_mountpoint_has_its_device_and_capability():
    parameters = container_of(Training("vision", is_mounting=True))["linuxParameters"]

    assert [device["hostPath"] for device in parameters["devices"]] == ["/dev/fuse"]
    assert parameters["capabilities"] == {"add": ["SYS_ADMIN"]}


@pytest.mark.parametrize("kind", AcceleratorKind)
def test_what_was_registered_is_known_again_and_a_change_is_seen(kind):
    wanted = task_definition(Training("vision", kind, is_mounting=True), "relaunch-vision", STACK)
    changed = task_definition(Training("vision", kind, memory_gib=9, is_mounting=True), "relaunch-vision", STACK)
    with aws_in_process():
        ecs = make_client("ecs")
        registered = ecs.register_task_definition(**wanted)["taskDefinition"]

        assert is_registered(wanted, registered)
        assert not is_registered(changed, registered)


def test_lists_are_compared_by_name_because_ecs_may_order_them_otherwise():
    first, second = {"name": "A", "value": "1"}, {"name": "B", "value": "2"}

    assert is_registered({"environment": [first, second]}, {"environment": [second, first]})
    assert not is_registered({"environment": [first]}, {"environment": [first, second]})
    assert not is_registered({"command": ["a", "b"]}, {"command": ["b", "a"]})
    assert not is_registered({"environment": [first]}, {})
    assert not is_registered({"environment": [first]}, {"environment": {}})
    assert not is_registered({"a": {}}, {"a": []})


def test_what_was_removed_is_seen_and_what_ecs_adds_is_not():
    container = {"name": "main", "essential": True, "mountPoints": [], "cpu": 0}
    found = {
        "family": "a",
        "containerDefinitions": [container],
        "revision": 3,
        "status": "ACTIVE",
        "networkMode": "bridge",
    }

    assert is_registered({"family": "a", "containerDefinitions": [{"name": "main"}], "tags": [{"key": "a"}]}, found)
    container["stopTimeout"] = 90
    assert not is_registered({"family": "a", "containerDefinitions": [{"name": "main"}]}, found)
