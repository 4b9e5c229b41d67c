"""Ranks as tasks on machines that one fleet launched, as the launcher starts them."""

from typing import Any

import pytest

from fakes.fleet_region import FleetRegion, override
from fakes.simulated_region import container
from relaunch_local.simulation.aws.recipes import Recipe
from relaunch_local.simulation.aws.s3 import ObjectStore
from relaunch_local.simulation.aws.trainings import Trainings
from relaunch_local.simulation.chance import Chance

JOB = "resnet-1f2e3d4c"
PORT = 29_500


class Stack(FleetRegion):
    """Two machines of one fleet, on whose network ranks with the port of their gang run."""

    def __init__(self) -> None:
        super().__init__()
        self.broken: list[str] = []
        self.trainings = Trainings(
            self.clock,
            Chance(1, self.clock.now),
            ObjectStore(),
            {"resnet": Recipe(600.0, 200.0)},
            check=lambda name, holds, _: self.broken.extend([] if holds else [name]),
        )
        self.simulator.lifecycle.processes = self.trainings
        options = {"MinTargetCapacity": 2, "SingleInstanceType": True, "SingleAvailabilityZone": True}
        target = {"TotalTargetCapacity": 2, "DefaultTargetCapacityType": "spot"}
        group = [{"ResourceType": "instance", "Tags": [{"Key": "relaunch:group", "Value": "g1"}]}]
        answer = self.create(
            override("g5.12xlarge", AvailabilityZone="us-east-1a"),
            market="spot",
            SpotOptions=options,
            TargetCapacitySpecification=target,
            TagSpecifications=group,
        )
        self.machines: list[str] = answer["Instances"][0]["InstanceIds"]
        self.clock.advance(200)
        ports = [{"containerPort": PORT, "hostPort": PORT}]
        init = {"initProcessEnabled": True}
        self.register("rank", container(portMappings=ports, linuxParameters=init, stopTimeout=90), networkMode="host")

    def address(self, rank: int) -> str:
        return str(self.described(self.machines[rank])["PrivateIpAddress"])

    def place(self, rank: int, group: str = "g1") -> dict[str, Any]:
        """Call RunTask for a rank on its machine."""
        place = {"NODES": "2", "NODE_RANK": str(rank), "MASTER_ADDR": self.address(0), "MASTER_PORT": str(PORT)}
        environment = {f"RELAUNCH_{name}": value for name, value in place.items()}
        environment |= {f"PET_{name.replace('NODES', 'NNODES')}": value for name, value in place.items()}
        environment |= {"RELAUNCH_JOB_ID": JOB, "RELAUNCH_ATTEMPT": "1", "RELAUNCH_GROUP": group, "RECIPE": "resnet"}
        rows = [{"name": name, "value": value} for name, value in environment.items()]
        machine = f"ec2InstanceId == {self.machines[rank]}"
        return self.run(
            taskDefinition="rank",
            overrides={"containerOverrides": [{"name": "main", "environment": rows}]},
            placementConstraints=[{"type": "memberOf", "expression": machine}],
        )

    def place_all(self) -> list[str]:
        return [str(self.place(rank)["tasks"][0]["taskArn"]) for rank in range(2)]

    def codes(self, tasks: list[str]) -> list[int | None]:
        return [self.task(arn)["containers"][0].get("exitCode") for arn in tasks]


@pytest.fixture
def stack() -> Stack:
    return Stack()


def test_ranks_of_tasks_meet_at_the_address_of_a_machine_and_train(stack: Stack) -> None:
    tasks = stack.place_all()
    stack.clock.advance(700)

    assert stack.codes(tasks) == [0, 0]
    assert stack.trainings.logs[JOB].finished == 1
    assert stack.broken == []


def test_one_machine_has_no_port_for_a_second_gang(stack: Stack) -> None:
    stack.place_all()
    stack.clock.advance(60)

    assert [each["reason"] for each in stack.place(0, "g2")["failures"]] == ["RESOURCE:PORTS"]


def test_stop_task_of_one_rank_lets_all_save(stack: Stack) -> None:
    tasks = stack.place_all()
    stack.clock.advance(100)
    stack.ecs.stop_task(cluster="c", task=tasks[1])
    stack.clock.advance(30)

    assert stack.codes(tasks) == [0, 1]


def test_the_peer_of_a_terminated_machine_fails_before_ec2_says_why(stack: Stack) -> None:
    tasks = stack.place_all()
    stack.clock.advance(100)
    stack.simulator.terminate(stack.machines[0])
    stack.clock.advance(10)

    assert stack.task(tasks[1])["containers"][0]["exitCode"] == 1
    assert stack.task(tasks[0])["lastStatus"] == "RUNNING"
    stack.clock.advance(120)
    assert stack.task(tasks[0])["stopCode"] == "TerminationNotice"
