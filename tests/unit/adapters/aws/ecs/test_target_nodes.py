"""Container instances: they are found by their EC2 instances, listed and drained."""

from datetime import UTC, datetime

import pytest

from fakes.builders import INSTANCE_ID, container_instance_arn
from fakes.scripted_aws import fault, throttle, time_out
from relaunch.core.launches.launch import Node, NodeObservation
from relaunch.ports import TransientError

MACHINE = container_instance_arn()


def test_machines_are_listed_with_their_tasks_and_since_when_they_are_there(ecs, target):
    gone = container_instance_arn(2)
    registered_at = datetime(2026, 3, 14, 9, tzinfo=UTC)
    machine = {"runningTasksCount": 1, "pendingTasksCount": 2, "registeredAt": registered_at, "status": "ACTIVE"}
    ecs.answer("ListContainerInstances", containerInstanceArns=[MACHINE, gone], nextToken="2")
    ecs.answer("ListContainerInstances", containerInstanceArns=[])
    ecs.answer(
        "DescribeContainerInstances",
        containerInstances=[{"containerInstanceArn": MACHINE, "ec2InstanceId": INSTANCE_ID, **machine}],
        failures=[{"arn": gone, "reason": "MISSING"}],
    )

    ((seen,),) = target.list_nodes()

    assert (seen.node.instance_id, seen.task_count, seen.registered_at) == (INSTANCE_ID, 3, registered_at)
    assert ecs.sent("DescribeContainerInstances") == [{"cluster": "relaunch", "containerInstances": [MACHINE, gone]}]


@pytest.mark.parametrize("trouble", [throttle, time_out, fault])
def test_a_cluster_that_is_not_listed_for_now_is_transient(ecs, target, trouble):
    trouble(ecs, "ListTasks")
    trouble(ecs, "ListContainerInstances")

    with pytest.raises(TransientError, match="listing the tasks of the cluster"):
        list(target.list_tasks())
    with pytest.raises(TransientError, match="listing the machines of the cluster"):
        list(target.list_nodes())


# drain


def test_machine_is_drained_by_its_ec2_instance(ecs, target):
    ecs.answer("ListContainerInstances", containerInstanceArns=[MACHINE])
    ecs.answer("UpdateContainerInstancesState", containerInstances=[], failures=[])

    target.drain(INSTANCE_ID)

    (listed,) = ecs.sent("ListContainerInstances")
    assert listed == {"cluster": "relaunch", "filter": f"ec2InstanceId == {INSTANCE_ID}", "status": "ACTIVE"}
    assert ecs.sent("UpdateContainerInstancesState") == [
        {"cluster": "relaunch", "containerInstances": [MACHINE], "status": "DRAINING"}
    ]


def test_machine_that_is_not_active_in_the_cluster_is_not_drained(ecs, target):
    ecs.answer("ListContainerInstances", containerInstanceArns=[])

    target.drain(INSTANCE_ID)

    assert ecs.sent("UpdateContainerInstancesState") == []


def test_machine_that_leaves_before_it_is_drained_is_no_error(ecs, target):
    ecs.answer("ListContainerInstances", containerInstanceArns=[MACHINE])
    ecs.answer("UpdateContainerInstancesState", containerInstances=[], failures=[{"arn": MACHINE, "reason": "MISSING"}])

    target.drain(INSTANCE_ID)


@pytest.mark.parametrize("trouble", [throttle, time_out, fault])
def test_machine_that_cannot_be_drained_now(ecs, target, trouble):
    ecs.answer("ListContainerInstances", containerInstanceArns=[MACHINE])
    trouble(ecs, "UpdateContainerInstancesState")

    with pytest.raises(TransientError, match="draining"):
        target.drain(INSTANCE_ID)


# find_node


def test_container_instance_tells_its_machine(ecs, target):
    machine = {
        "containerInstanceArn": MACHINE,
        "ec2InstanceId": INSTANCE_ID,
        "status": "ACTIVE",
        "agentConnected": True,
        "attributes": [
            {"name": "ecs.capability.something"},
            {"name": "ecs.instance-type", "value": "g5.xlarge"},
            {"name": "ecs.availability-zone", "value": "us-east-1a"},
        ],
    }
    ecs.answer("DescribeContainerInstances", containerInstances=[machine], failures=[])

    found = target.find_node(MACHINE)

    machine = Node(MACHINE, INSTANCE_ID, "g5.xlarge", "us-east-1a")
    assert found == NodeObservation(machine, is_active=True)


def test_an_instance_that_is_drained_has_a_node_and_of_two_the_active_one_is_its_node(ecs, target):
    machine = {"containerInstanceArn": MACHINE, "ec2InstanceId": INSTANCE_ID, "status": "DRAINING"}
    machine |= {"agentConnected": True, "registeredAt": datetime(2026, 3, 14, 9, tzinfo=UTC), "attributes": []}
    active = machine | {"status": "ACTIVE", "registeredAt": datetime(2026, 3, 14, 8, tzinfo=UTC)}
    for _ in range(2):
        ecs.answer("ListContainerInstances", containerInstanceArns=[MACHINE])
    ecs.answer("DescribeContainerInstances", containerInstances=[machine], failures=[])
    ecs.answer("DescribeContainerInstances", containerInstances=[active, machine], failures=[])

    drained, found = target.find_node_of(INSTANCE_ID), target.find_node_of(INSTANCE_ID)

    assert (drained.is_active, drained.is_draining) == (False, True)
    assert (found.is_active, found.is_draining) == (True, False)


def test_container_instance_that_is_gone_is_none(ecs, target):
    ecs.answer("DescribeContainerInstances", containerInstances=[], failures=[{"arn": MACHINE, "reason": "MISSING"}])

    assert target.find_node(MACHINE) is None


@pytest.mark.parametrize("trouble", [throttle, time_out, fault])
def test_container_instance_that_cannot_be_asked_for_now(ecs, target, trouble):
    trouble(ecs, "DescribeContainerInstances")

    with pytest.raises(TransientError, match="describing container instance"):
        target.find_node(MACHINE)
