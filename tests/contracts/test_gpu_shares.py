"""Shares of GPUs with EcsTarget and the simulator: their placement, and the reported GPUs."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from fakes.builders import make_failed_placement, make_launch_request, make_offering_key
from fakes.held_processes import HeldProcesses
from fakes.simulated_region import container
from fakes.task_clusters import CLUSTER, SimulatedCluster, add_unscaled_provider, client_of
from relaunch.core.launches.launch import (
    Accelerators,
    GpuPartition,
    GpuShare,
    LaunchRefused,
    TaskObservation,
    TaskPlaced,
    WholeGpus,
)
from relaunch.core.selection.gpu_share import GpuDevice, ShareRequirement, explain_missing_share
from relaunch.ports import PermanentError
from relaunch_local.ecs import AutoScalingGroup, Clock, EcsSimulator, InstanceShape, Purchase, SimulatorSettings

SHAPES = {
    "g4dn.xlarge": InstanceShape(4, 16_384, gpus=1, gpu_memory_mib=16_384, gpu_name="T4"),
    "g6f.2xlarge": InstanceShape(8, 32_768, gpus=1, gpu_memory_mib=5_722, gpu_name="L4", gpu_partition=0.25),
}
CARD_MIB = SHAPES["g4dn.xlarge"].registered_gpu_memory_mib
HALF = GpuShare(CARD_MIB // 2, 50)


class SharingCluster(SimulatedCluster):
    """Two capacity providers, `g4dn` that scales and `fixed` that has one machine and no managed scaling; and `g6f`."""

    launch_count = 0

    def launch(self, gpu: Accelerators, provider: str = "g4dn", instance_type: str = "g4dn.xlarge") -> Any:
        """Ask for a task of its own."""
        self.launch_count += 1
        request = make_launch_request(
            revision_arn="sharing:1",
            capacity_provider=provider,
            offering=make_offering_key(instance_type),
            placement_number=self.launch_count,
            accelerators=gpu,
        )
        return self.target.launch(request)

    def run(self, gpu: Accelerators, provider: str = "g4dn", instance_type: str = "g4dn.xlarge") -> TaskObservation:
        """Let a task of its own run."""
        outcome = self.launch(gpu, provider, instance_type)
        assert isinstance(outcome, TaskPlaced)
        self.start(outcome.task_id)
        return self.seen(outcome.task_id)

    def container(self, task: TaskObservation) -> Any:
        """What DescribeTasks says of the task's container."""
        answer = self.ecs.describe_tasks(cluster=CLUSTER, tasks=[task.task_id])
        return answer["tasks"][0]["containers"][0]


@pytest.fixture(params=["in process", "over HTTP"])
def cluster(request: pytest.FixtureRequest) -> Iterator[SharingCluster]:
    processes = HeldProcesses()
    simulator = EcsSimulator(Clock(), processes, SimulatorSettings(instance_types=SHAPES))
    simulator.call("CreateCluster", {"clusterName": CLUSTER})
    for name, instance_type, max_size in (("g4dn", "g4dn.xlarge", 3), ("g6f", "g6f.2xlarge", 2)):
        group = AutoScalingGroup(name, instance_type, Purchase.SPOT, ("us-east-1a",), max_size=max_size)
        simulator.add_capacity_provider(name, group, cluster=CLUSTER)
    fixed = AutoScalingGroup("fixed", "g4dn.xlarge", Purchase.SPOT, ("us-east-1a",), min_size=1, max_size=1)
    add_unscaled_provider(simulator, "fixed", fixed)
    containers = [container(cpu=512, memory=1_024)]
    simulator.call("RegisterTaskDefinition", {"family": "sharing", "containerDefinitions": containers})
    simulator.clock.advance(600)
    with client_of(simulator, over_http=request.param == "over HTTP") as client:
        yield SharingCluster(simulator, processes, client)


def test_two_shares_are_on_one_card_and_a_third_that_does_not_fit_starts_another_machine(
    cluster: SharingCluster,
) -> None:
    first, second, third = cluster.run(HALF), cluster.run(HALF), cluster.run(HALF)

    cards = [cluster.container(task)["gpuIds"] for task in (first, second, third)]
    assert cards[0] == cards[1] != cards[2]
    assert first.node == second.node != third.node


def test_a_task_has_the_share_that_was_asked_for(cluster: SharingCluster) -> None:
    asked = {"nvidiaMps": {"memory": 2_048, "maxComputePercent": 30}}

    assert cluster.container(cluster.run(GpuShare(2_048, 30)))["gpuSharingStrategy"] == asked


def test_the_cards_of_a_provider_tell_what_is_left_and_predict_what_fits(cluster: SharingCluster) -> None:
    machine = cluster.target.find_node(cluster.run(HALF).node or "")
    assert machine is not None

    devices = cluster.target.find_gpus("g4dn.xlarge", "g4dn")

    used = [device for device in devices if device.instance_id == machine.node.instance_id]
    left = CARD_MIB - HALF.memory_mib
    assert used == [GpuDevice(used[0].gpu_id, machine.node.instance_id, "NVIDIA_MPS", CARD_MIB, left, 1)]
    assert explain_missing_share(ShareRequirement(left, 50), used) is None
    assert isinstance(cluster.launch(GpuShare(left, 50)), TaskPlaced)


def test_only_the_cards_of_the_provider_and_the_type_are_told(cluster: SharingCluster) -> None:
    assert len(cluster.target.find_gpus("g4dn.xlarge", "fixed")) == 1
    assert cluster.target.find_gpus("g4dn.xlarge", "g4dn") == []
    assert cluster.target.find_gpus("g5.xlarge", "fixed") == []


def test_a_share_without_room_fails_as_predicted(cluster: SharingCluster) -> None:
    cluster.run(HALF, "fixed")
    cluster.run(HALF, "fixed")

    outcome = cluster.launch(GpuShare(2_048, 30), "fixed")

    assert outcome == make_failed_placement("RESOURCE:GPU")
    reason = explain_missing_share(ShareRequirement(2_048, 30), cluster.target.find_gpus("g4dn.xlarge", "fixed"))
    assert reason is not None
    assert f"0 of {CARD_MIB:,} MiB left, shared by 2 containers" in reason


def test_a_card_that_is_a_tasks_own_is_told_so(cluster: SharingCluster) -> None:
    cluster.run(WholeGpus(1), "fixed")

    (device,) = cluster.target.find_gpus("g4dn.xlarge", "fixed")

    assert (device.sharing_mode, device.remaining_mib, device.container_count) == ("DEDICATED", 0, 1)
    assert cluster.launch(HALF, "fixed") == make_failed_placement("RESOURCE:GPU")


def test_a_part_of_a_gpu_runs_on_the_type_that_has_it_and_its_card_is_not_to_be_shared(
    cluster: SharingCluster,
) -> None:
    task = cluster.run(GpuPartition(0.25), "g6f", "g6f.2xlarge")

    assert len(cluster.container(task)["gpuIds"]) == 1
    assert "gpuSharingStrategy" not in cluster.container(task)
    assert cluster.target.find_gpus("g6f.2xlarge", "g6f") == []


def test_the_same_share_sent_again_is_the_same_task(cluster: SharingCluster) -> None:
    request = make_launch_request(
        revision_arn="sharing:1", capacity_provider="g4dn", offering=make_offering_key("g4dn.xlarge"), accelerators=HALF
    )

    assert cluster.target.launch(request) == cluster.target.launch(replace(request))


def test_a_share_that_breaks_a_rule_is_not_sent(cluster: SharingCluster) -> None:
    before = len(cluster.simulator.requests)

    with pytest.raises(PermanentError, match="1 to 100 percent"):
        cluster.launch(GpuShare(2_048, 101))

    assert len(cluster.simulator.requests) == before


def test_a_share_beside_a_whole_gpu_of_the_same_task_is_refused(cluster: SharingCluster) -> None:
    containers = [
        {"name": "main", "image": "trainer", "memory": 512},
        {"name": "side", "image": "log", "memory": 128, "resourceRequirements": [{"type": "GPU", "value": "1"}]},
    ]
    cluster.ecs.register_task_definition(family="sharing", containerDefinitions=containers)
    request = make_launch_request(revision_arn="sharing:2", capacity_provider="g4dn", accelerators=HALF)

    outcome = cluster.target.launch(request)

    assert isinstance(outcome, LaunchRefused)
    assert "must all use value, or all sharingStrategy" in outcome.reason
