"""Clusters for the tests of TaskTarget, by name: `TARGETS` has one entry for each way to a target.

Each cluster has the revision of `make_launch_request`, and room for four tasks of it.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import replace
from typing import Any, Protocol

import boto3
from botocore.config import Config

from fakes.builders import CLUSTER, make_revision
from fakes.held_processes import HeldProcesses
from fakes.kubernetes_clusters import ScriptedKubernetesCluster, served_cluster
from fakes.simulated_region import container, gpu
from fakes.story import machine
from fakes.tasks import FakeTasks
from relaunch.adapters.aws.ecs.target import EcsTarget
from relaunch.core.definitions.targets import Target
from relaunch.core.launches.launch import (
    LaunchDeferred,
    LaunchRefused,
    LaunchRequest,
    LaunchUncertain,
    Node,
    PlacementFailed,
    TaskObservation,
    TaskPhase,
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
    Purchase,
    SimulatorSettings,
)
from relaunch_local.request_guard.guard import RequestGuard

PROVIDER = "g5-xlarge-spot"
FULL_PROVIDER = "g5-xlarge-full"


class Cluster(Protocol):
    """A cluster that a test controls; `target` is what is tested, of one kind."""

    target: TaskTarget
    kind: Target

    def start(self, arn: str) -> Node:
        """Let the task start; return its node."""
        ...

    def finish(self, arn: str, exit_code: int) -> None:
        """Let the task's container exit with this code; the task has then stopped."""
        ...

    def forget(self, arn: str) -> None:
        """Let the target forget a stopped task."""
        ...

    def throttle_launch(self) -> None:
        """Throttle the next launch."""
        ...

    def refuse_launch(self) -> None:
        """Refuse the revision of the next launch."""
        ...

    def lose_launch(self, *, takes_effect: bool) -> None:
        """Lose the answer to the next launch."""
        ...

    def without_room(self, request: LaunchRequest) -> LaunchRequest | None:
        """Return the request for where there is no room, which is launched next; None if tasks wait for room."""
        ...

    def beyond_limit(self, request: LaunchRequest) -> tuple[LaunchRequest, str]:
        """Return the request with more than the target takes, and a word of the error."""
        ...


def _beyond_overrides(request: LaunchRequest) -> tuple[LaunchRequest, str]:
    # What the limits of ECS are for runs a revision.
    return replace(request, workload=None, environment={"A": "x" * 8192}), "overrides"


class FakeCluster:
    """A cluster with FakeTasks."""

    kind = Target.ECS

    def __init__(self) -> None:
        self._tasks = FakeTasks()
        self.target: TaskTarget = self._tasks

    def start(self, arn: str) -> Node:
        self._tasks.run(arn, machine(len(self._tasks.instances) + 1))
        return self._tasks.instances[self._tasks.tasks[arn].node or ""]

    def finish(self, arn: str, exit_code: int) -> None:
        self._tasks.end(arn, exit_code)

    def forget(self, arn: str) -> None:
        self._tasks.forget(arn)

    def throttle_launch(self) -> None:
        self._tasks.outcomes.append(LaunchDeferred("ThrottlingException: Rate exceeded"))

    def refuse_launch(self) -> None:
        self._tasks.outcomes.append(
            LaunchRefused("InvalidParameterException: TaskDefinition is inactive", is_about_revision=True)
        )

    def lose_launch(self, *, takes_effect: bool) -> None:
        self._tasks.places_uncertain = takes_effect
        self._tasks.outcomes.append(LaunchUncertain("no answer to RunTask"))

    def without_room(self, request: LaunchRequest) -> LaunchRequest:
        self._tasks.outcomes.append(PlacementFailed(("NO ACTIVE INSTANCES",)))
        return request

    def beyond_limit(self, request: LaunchRequest) -> tuple[LaunchRequest, str]:
        return _beyond_overrides(request)


class SimulatedCluster:
    """A cluster with EcsTarget and the simulator on a virtual clock; a test controls it as any Cluster."""

    kind = Target.ECS

    def __init__(self, simulator: EcsSimulator, processes: HeldProcesses, client: Any) -> None:
        self.simulator = simulator
        self._processes = processes
        self.ecs = client
        self.target = EcsTarget(client, CLUSTER)

    def start(self, arn: str) -> Node:
        self._drive(lambda: self.seen(arn).phase is TaskPhase.RUNNING)
        machine = self.target.find_node(self.seen(arn).node or "")
        assert machine is not None
        return machine.node

    def finish(self, arn: str, exit_code: int) -> None:
        with self.simulator.clock.lock:
            self._processes.of_task[arn].exit(exit_code)
        self._drive(lambda: self.seen(arn).phase is TaskPhase.STOPPED)

    def forget(self, arn: str) -> None:
        self._advance(3 * 3600)

    def throttle_launch(self) -> None:
        self._fail(Fault(FaultMoment.THROTTLE))

    def refuse_launch(self) -> None:
        self._fail(Fault(FaultMoment.BEFORE, "InvalidParameterException", "TaskDefinition is inactive"))

    def lose_launch(self, *, takes_effect: bool) -> None:
        self._fail(Fault(FaultMoment.AFTER if takes_effect else FaultMoment.BEFORE, drop_connection=True))

    def without_room(self, request: LaunchRequest) -> LaunchRequest:
        return replace(request, capacity_provider=FULL_PROVIDER)

    def beyond_limit(self, request: LaunchRequest) -> tuple[LaunchRequest, str]:
        return _beyond_overrides(request)

    def _fail(self, fault: Fault) -> None:
        self.simulator.faults.fail_next("RunTask", 1, fault)

    def seen(self, arn: str) -> TaskObservation:
        """Return the task as ECS describes it."""
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
        with self.simulator.clock.lock:
            self.simulator.clock.advance(seconds)


@contextmanager
def simulated_cluster(*, over_http: bool) -> Iterator[SimulatedCluster]:
    """Create the cluster on the simulator, called by boto3 over HTTP or in process."""
    processes = HeldProcesses()
    simulator = _make_simulator(processes)
    with client_of(simulator, over_http=over_http) as client:
        yield SimulatedCluster(simulator, processes, client)


@contextmanager
def client_of(simulator: EcsSimulator, *, over_http: bool) -> Iterator[Any]:
    """Yield a client of the simulator: boto3's over HTTP, or one in process."""
    if not over_http:
        yield InProcessClient(simulator)
        return
    with closing(EcsServer(simulator, RequestGuard({"testing": "testing"}.get))) as server:
        server.start()
        yield boto3.client(
            "ecs",
            endpoint_url=server.url,
            region_name="us-east-1",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
            config=Config(retries={"mode": "standard", "total_max_attempts": 1}),
        )


def _make_simulator(processes: HeldProcesses) -> EcsSimulator:
    shape = InstanceShape(4, 16_384, gpus=1, gpu_memory_mib=22_888)
    simulator = EcsSimulator(Clock(), processes, SimulatorSettings(instance_types={"g5.xlarge": shape}))
    simulator.call("CreateCluster", {"clusterName": CLUSTER})
    group = AutoScalingGroup("g5", "g5.xlarge", Purchase.SPOT, ("us-east-1a", "us-east-1b"), max_size=4)
    simulator.add_capacity_provider(PROVIDER, group, cluster=CLUSTER)
    group = AutoScalingGroup("full", "g5.xlarge", Purchase.SPOT, ("us-east-1a",), max_size=0)
    add_unscaled_provider(simulator, FULL_PROVIDER, group)
    # The revision of `make_launch_request` is 7.
    definitions = [container(cpu=3_072, memory=12_288, resourceRequirements=gpu())]
    for _ in range(make_revision().revision):
        request = {"family": make_revision().family, "containerDefinitions": definitions}
        simulator.call("RegisterTaskDefinition", request)
    return simulator


def add_unscaled_provider(simulator: EcsSimulator, name: str, group: AutoScalingGroup) -> None:
    """Add a capacity provider without managed scaling to the cluster."""
    settings = {"autoScalingGroupArn": simulator.clusters.add_group(group), "managedScaling": {"status": "DISABLED"}}
    simulator.call("CreateCapacityProvider", {"name": name, "autoScalingGroupProvider": settings})
    names = [*simulator.clusters.get(CLUSTER).providers, name]
    providers = {"capacityProviders": names, "defaultCapacityProviderStrategy": []}
    simulator.call("PutClusterCapacityProviders", {"cluster": CLUSTER, **providers})


TARGETS: dict[str, Callable[[], AbstractContextManager[Cluster]]] = {
    "fake": lambda: nullcontext(FakeCluster()),
    "ECS in process": lambda: simulated_cluster(over_http=False),
    "ECS over HTTP": lambda: simulated_cluster(over_http=True),
    "Kubernetes scripted": lambda: nullcontext(ScriptedKubernetesCluster(Target.KUBERNETES)),
    "ACK scripted": lambda: nullcontext(ScriptedKubernetesCluster(Target.ACK)),
    "ACS scripted": lambda: nullcontext(ScriptedKubernetesCluster(Target.ACS)),
    "Kubernetes over HTTPS": lambda: served_cluster(Target.KUBERNETES),
    "ACK over HTTPS": lambda: served_cluster(Target.ACK),
    "ACK over HTTPS, Kubernetes 1.20": lambda: served_cluster(Target.ACK, minor=20),
    "ACS over HTTPS": lambda: served_cluster(Target.ACS),
}
"""The clusters of all targets; every one passes tests/contracts/test_task_target.py."""
