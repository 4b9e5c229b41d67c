"""Clusters for the tests of TaskTarget: one with FakeTasks, one with EcsTarget and the ECS simulator.

Both have the revision of `make_launch_request`, a capacity provider with capacity, and one without.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import boto3
from botocore.config import Config

from fakes.builders import make_container_instance, make_revision
from fakes.tasks import FakeTasks
from relaunch.adapters.aws.ecs.target import EcsTarget
from relaunch.core.launches.launch import (
    ContainerInstance,
    LaunchDeferred,
    LaunchRefused,
    LaunchUncertain,
    PlacementFailed,
    TaskObservation,
)
from relaunch.ports import TaskTarget
from relaunch_local.ecs import (
    AutoScalingGroup,
    Clock,
    EcsServer,
    EcsSimulator,
    Fault,
    FaultMoment,
    InProcessClient,
    InstanceShape,
    ProcessSpec,
    Purchase,
    SimulatorSettings,
)

CLUSTER = "relaunch"
PROVIDER = "g5-xlarge-spot"
FULL_PROVIDER = "g5-xlarge-full"


class Cluster(Protocol):
    """A cluster that a test controls; `target` is tested."""

    target: TaskTarget

    def start(self, arn: str) -> ContainerInstance:
        """Let the task start; return its container instance."""
        ...

    def finish(self, arn: str, exit_code: int) -> None:
        """Let the task's container exit with this code; the task is then STOPPED."""
        ...

    def forget(self, arn: str) -> None:
        """Let ECS forget a stopped task."""
        ...

    def throttle_launch(self) -> None:
        """Throttle the next RunTask."""
        ...

    def refuse_launch(self) -> None:
        """Reject the next RunTask."""
        ...

    def lose_launch(self, *, takes_effect: bool) -> None:
        """Lose the response to the next RunTask."""
        ...

    def fill(self) -> None:
        """Let the next RunTask, which is for FULL_PROVIDER, find no capacity."""
        ...


class FakeCluster:
    """A cluster with FakeTasks."""

    def __init__(self) -> None:
        self._tasks = FakeTasks()
        self._machine_count = 0
        self.target: TaskTarget = self._tasks

    def start(self, arn: str) -> ContainerInstance:
        self._machine_count += 1
        machine = make_container_instance(
            arn=f"{make_container_instance().arn[:-4]}{self._machine_count:04}",
            instance_id=f"i-{self._machine_count:017x}",
        )
        self._tasks.run(arn, machine)
        return machine

    def finish(self, arn: str, exit_code: int) -> None:
        self._tasks.end(arn, exit_code)

    def forget(self, arn: str) -> None:
        self._tasks.forget(arn)

    def throttle_launch(self) -> None:
        self._tasks.outcomes.append(LaunchDeferred("ThrottlingException: Rate exceeded"))

    def refuse_launch(self) -> None:
        self._tasks.outcomes.append(LaunchRefused("ClientException: TaskDefinition is inactive"))

    def lose_launch(self, *, takes_effect: bool) -> None:
        self._tasks.places_uncertain = takes_effect
        self._tasks.outcomes.append(LaunchUncertain("no answer to RunTask"))

    def fill(self) -> None:
        self._tasks.outcomes.append(PlacementFailed(("NO ACTIVE INSTANCES",)))


class HeldProcess:
    """A container that runs until a test lets it exit or it is stopped."""

    def __init__(self, on_exit: Callable[[int, str | None], None]) -> None:
        self._on_exit = on_exit
        self._is_over = False

    def exit(self, code: int) -> None:
        """Exit with this code, once."""
        if not self._is_over:
            self._is_over = True
            self._on_exit(code, None)

    def terminate(self) -> None:
        self.exit(143)

    def kill(self) -> None:
        self.exit(137)


class HeldProcesses:
    """Implements the simulator's Processes, with one container per task."""

    def __init__(self) -> None:
        self.of_task: dict[str, HeldProcess] = {}

    def start(self, spec: ProcessSpec) -> HeldProcess:
        self.of_task[spec.task_arn] = HeldProcess(spec.on_exit)
        return self.of_task[spec.task_arn]

    def close(self) -> None:
        """Do nothing: no process runs."""


class SimulatedCluster:
    """A cluster with EcsTarget and the simulator on a virtual clock."""

    def __init__(self, simulator: EcsSimulator, processes: HeldProcesses, client: Any) -> None:
        self._simulator = simulator
        self._processes = processes
        self.ecs = client
        self.target: TaskTarget = EcsTarget(client, CLUSTER)

    def start(self, arn: str) -> ContainerInstance:
        self._drive(lambda: self._seen(arn).last_status == "RUNNING")
        machine = self.target.find_container_instance(self._seen(arn).container_instance_arn or "")
        assert machine is not None
        return machine

    def finish(self, arn: str, exit_code: int) -> None:
        with self._simulator.clock.lock:
            self._processes.of_task[arn].exit(exit_code)
        self._drive(lambda: self._seen(arn).last_status == "STOPPED")

    def forget(self, arn: str) -> None:
        self._advance(3 * 3600)

    def throttle_launch(self) -> None:
        self._fail(Fault(FaultMoment.THROTTLE))

    def refuse_launch(self) -> None:
        self._fail(Fault(FaultMoment.BEFORE, "ClientException", "TaskDefinition is inactive"))

    def lose_launch(self, *, takes_effect: bool) -> None:
        self._fail(Fault(FaultMoment.AFTER if takes_effect else FaultMoment.BEFORE, drop_connection=True))

    def fill(self) -> None:
        """Do nothing: FULL_PROVIDER never has an instance."""

    def _fail(self, fault: Fault) -> None:
        self._simulator.faults.fail_next("RunTask", 1, fault)

    def _seen(self, arn: str) -> TaskObservation:
        task = self.target.describe([arn])[arn]
        assert task is not None
        return task

    def _drive(self, condition: Callable[[], bool]) -> None:
        for _ in range(200):
            if condition():
                return
            self._advance(5)
        raise AssertionError("the simulated cluster did not get there")

    def _advance(self, seconds: float) -> None:
        with self._simulator.clock.lock:
            self._simulator.clock.advance(seconds)


@contextmanager
def simulated_cluster(*, over_http: bool) -> Iterator[SimulatedCluster]:
    """Create the cluster on the simulator, called by boto3 over HTTP or in process."""
    processes = HeldProcesses()
    simulator = _make_simulator(processes)
    if not over_http:
        yield SimulatedCluster(simulator, processes, InProcessClient(simulator))
        return
    server = EcsServer(simulator)
    server.start()
    try:
        yield SimulatedCluster(simulator, processes, _make_client(server.url))
    finally:
        server.close()


def _make_simulator(processes: HeldProcesses) -> EcsSimulator:
    shape = InstanceShape(4, 16_384, gpus=1, gpu_memory_mib=22_888)
    simulator = EcsSimulator(Clock(), processes, SimulatorSettings(instance_types={"g5.xlarge": shape}))
    simulator.call("CreateCluster", {"clusterName": CLUSTER})
    group = AutoScalingGroup("g5", "g5.xlarge", Purchase.SPOT, ("us-east-1a", "us-east-1b"), max_size=4)
    simulator.add_capacity_provider(PROVIDER, group, cluster=CLUSTER)
    _add_full_provider(simulator)
    # The revision of `make_launch_request` is 7.
    for _ in range(make_revision().revision):
        simulator.call("RegisterTaskDefinition", _definition())
    return simulator


def _add_full_provider(simulator: EcsSimulator) -> None:
    group = AutoScalingGroup("full", "g5.xlarge", Purchase.SPOT, ("us-east-1a",), max_size=0)
    settings = {"autoScalingGroupArn": simulator.clusters.add_group(group), "managedScaling": {"status": "DISABLED"}}
    simulator.call("CreateCapacityProvider", {"name": FULL_PROVIDER, "autoScalingGroupProvider": settings})
    providers = {"capacityProviders": [PROVIDER, FULL_PROVIDER], "defaultCapacityProviderStrategy": []}
    simulator.call("PutClusterCapacityProviders", {"cluster": CLUSTER, **providers})


def _definition() -> dict[str, Any]:
    container = {"name": "main", "image": "trainer", "cpu": 3072, "memory": 12_288, "essential": True}
    gpu = {"resourceRequirements": [{"type": "GPU", "value": "1"}]}
    return {"family": make_revision().family, "containerDefinitions": [{**container, **gpu}]}


def _make_client(url: str) -> Any:
    return boto3.client(
        "ecs",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
        config=Config(retries={"mode": "standard", "total_max_attempts": 1}, read_timeout=10),
    )
