"""Warnings by the taints of the node that a pod is on, and by events of capacity that is released."""

from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from unittest.mock import patch

import pytest

from fakes.builders import make_launch_request
from fakes.kubernetes import FakeKubernetes
from relaunch.adapters.kubernetes.api.errors import ForbiddenError
from relaunch.adapters.kubernetes.target import kubernetes_target
from relaunch.core.definitions.accelerator import GpuRequirement, PurchaseOption
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload, Toleration
from relaunch.core.definitions.targets import Target
from relaunch.core.launches.launch import TaskPhase
from relaunch.core.offerings.offering import OfferingKey
from relaunch.ports import TransientError

NAME = "resnet-1f2e3d4c-1-1"
OTHER = "resnet-1f2e3d4c-1-2"
REQUEST = make_launch_request(workload=KubernetesWorkload("image:v1"), gpu=GpuRequirement())
ON_ACS = KubernetesWorkload("image:v1", vcpus=1, memory_mib=1024, gpu_model="T4")
NOW = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
TAINT = "aws-node-termination-handler/spot-itn"


@pytest.fixture
def kubernetes():
    return FakeKubernetes()


@pytest.fixture
def target(kubernetes):
    return kubernetes_target(kubernetes, Target.KUBERNETES, "relaunch", now=lambda: NOW)


def see(target, name=NAME):
    return target.describe([name])[name]


def test_a_taint_warns_of_the_pods_on_its_node_alone(target, kubernetes):
    for number, name in enumerate((NAME, OTHER), start=1):
        target.launch(replace(REQUEST, placement_number=number))
        kubernetes.run(name, f"node-{number}")
    assert (see(target).warned_at, see(target).warning) == (None, "")

    kubernetes.taint("node-1", TAINT, "1762950000")

    assert see(target).warned_at == NOW
    who = "the AWS Node Termination Handler"
    assert see(target).warning == f"warning of {who} that its node is taken away (taint {TAINT})"
    assert see(target, OTHER).warned_at is None
    assert {each.task_id for page in target.list_tasks() for each in page if each.warned_at} == {NAME}


def test_a_taint_of_karpenter_warns_once_the_node_is_deleted(target, kubernetes):
    target.launch(REQUEST)
    kubernetes.run(NAME, "node-1")
    kubernetes.taint("node-1", "karpenter.sh/disrupted")
    assert (see(target).warned_at, see(target).warning) == (None, "")

    kubernetes.delete_node("node-1")

    assert see(target).warned_at == NOW
    assert see(target).warning == "warning of Karpenter that its node is taken away (taint karpenter.sh/disrupted)"


def test_a_pod_that_waits_or_has_ended_is_on_no_node_that_counts(target, kubernetes):
    target.launch(REQUEST)
    assert see(target).warned_at is None
    kubernetes.run(NAME, "node-1")
    kubernetes.taint("node-1", TAINT)
    kubernetes.exit(NAME, 1)
    kubernetes.calls.clear()

    assert (see(target).phase, see(target).warned_at) == (TaskPhase.STOPPED, None)
    assert "get_node" not in kubernetes.calls


def test_a_pod_that_is_being_deleted_is_gone_already(target, kubernetes):
    target.launch(REQUEST)
    kubernetes.run(NAME, "node-1")
    kubernetes.taint("node-1", TAINT)
    target.stop(NAME, "cancelled")

    assert (see(target).phase, see(target).warning) == (TaskPhase.STOPPING, "")


def test_a_pod_that_tolerates_the_taint_is_not_warned(target, kubernetes):
    workload = KubernetesWorkload("image:v1", tolerations=(Toleration(TAINT),))
    target.launch(replace(REQUEST, workload=workload))
    kubernetes.run(NAME, "node-1")
    kubernetes.taint("node-1", TAINT)

    assert see(target).warned_at is None


@pytest.mark.parametrize(
    "nodes", [ForbiddenError("nodes is forbidden", 403, "Forbidden"), TransientError("no answer"), {}]
)
def test_nodes_that_cannot_be_read_or_are_gone_warn_of_nothing(target, kubernetes, nodes):
    for number in (1, 2):
        target.launch(replace(REQUEST, placement_number=number))
        kubernetes.run(f"resnet-1f2e3d4c-1-{number}", f"node-{number}")
    kubernetes.nodes = nodes
    kubernetes.calls.clear()

    assert {each.warned_at for each in target.describe([NAME, OTHER]).values()} == {None}
    # Who may not read one node may read none, and is asked for one.
    assert kubernetes.calls.count("get_node") == (2 if nodes == {} else 1)


def test_a_condition_of_the_pod_warns_without_the_right_to_read_nodes(target, kubernetes):
    target.launch(REQUEST)
    kubernetes.run(NAME, "node-1")
    kubernetes.nodes = ForbiddenError("nodes is forbidden", 403, "Forbidden")
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
    kubernetes.pods[NAME]["status"]["conditions"] = [condition | {"lastTransitionTime": "2026-11-02T11:00:00Z"}]

    assert see(target).warned_at == datetime(2026, 11, 2, 11, 0, tzinfo=UTC)


def test_virtual_nodes_are_not_asked(kubernetes):
    target = kubernetes_target(kubernetes, Target.ACS, "relaunch")
    target.launch(REQUEST)
    kubernetes.run(NAME, "virtual-kubelet")
    kubernetes.taint("virtual-kubelet", TAINT)

    assert see(target).warned_at is None
    assert "get_node" not in kubernetes.calls


@pytest.mark.parametrize(
    ("exit_code", "error", "is_waited_for"),
    [
        (137, TransientError("no answer"), True),
        (None, TransientError("no answer"), False),
        (0, TransientError("no answer"), False),
        (137, ForbiddenError("events is forbidden", 403, "Forbidden"), False),
    ],
)
def test_what_failed_on_capacity_that_may_be_released_is_not_judged_before_events_are_read(
    kubernetes, exit_code, error, is_waited_for
):
    target = kubernetes_target(kubernetes, Target.ACS, "relaunch")
    target.launch(replace(REQUEST, offering=OfferingKey("acs/gpu/T4", None, PurchaseOption.SPOT), workload=ON_ACS))
    kubernetes.run(NAME, "virtual-kubelet")
    if exit_code is not None:
        kubernetes.exit(NAME, exit_code)

    with (
        patch.object(kubernetes, "list_events", side_effect=error),
        pytest.raises(TransientError) if is_waited_for else nullcontext(),
    ):
        assert see(target).warned_at is None
