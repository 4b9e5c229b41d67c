"""What a job of several nodes in a cluster may ask for, and how its pods are a group."""

from dataclasses import replace
from typing import Any

import pytest

from fakes.builders import make_definition
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, PurchasePolicy
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.kubernetes_workload import ComputeClass, KubernetesWorkload
from relaunch.core.definitions.targets import WITH_PODS, Target
from relaunch.core.kubernetes.ack import GROUP_NAME, GROUP_SIZE
from relaunch.core.kubernetes.pod_keys import find_pod_problems
from relaunch.core.kubernetes.rules import find_kubernetes_notices, find_problems

WORKLOAD = KubernetesWorkload("trainer", vcpus=4, memory_mib=16 * 1024, gpu_model="T4")
SHARE = GpuRequirement(memory_mib=2 * 1024, compute_percent=30)


def define(
    target: Target = Target.ACK, gpu: GpuRequirement | None = None, nodes: int = 4, **workload: Any
) -> JobDefinition:
    return make_definition(
        target=target,
        kubernetes=replace(WORKLOAD, **workload),
        accelerator=AcceleratorRequirement(gpu=gpu or GpuRequirement(count=8)),
        purchase=PurchasePolicy.ON_DEMAND,
        nodes=nodes,
    )


def problems_of(definition: JobDefinition) -> dict[str, str]:
    return {".".join(map(str, each.key)): str(each) for each in find_problems(definition)}


@pytest.mark.parametrize("target", WITH_PODS)
def test_several_nodes_with_whole_gpus_may_run_on_every_cluster(target):
    assert problems_of(define(target)) == {}
    assert find_pod_problems(define(target)) == ()


@pytest.mark.parametrize(
    "definition",
    [
        define(gpu=SHARE),
        define(gpu=GpuRequirement(memory_mib=2 * 1024)),
        define(Target.ACS, SHARE, compute_class=ComputeClass.GPU_HPN, gpu_model="P16EN", card_memory_mib=96 * 1024),
    ],
)
def test_shares_of_gpus_make_no_sense_there(definition):
    alone = replace(definition, nodes=1)

    assert problems_of(alone) == {}
    assert problems_of(definition)["accelerator.gpu"].startswith("a job with `nodes` trains on whole GPUs: shares of")


@pytest.mark.parametrize("resource", ["nvidia.com/mig-3g.20gb", "nvidia.com/gpu.shared"])
def test_parts_of_gpus_by_name_make_none_either(resource):
    assert problems_of(define(Target.KUBERNETES, nodes=1, gpu_resource=resource)) == {}
    said = problems_of(define(Target.KUBERNETES, gpu_resource=resource))["kubernetes.gpu_resource"]
    assert said.startswith(f"`{resource}` is a part of a GPU, which NCCL cannot join with others")


def test_what_is_wrong_for_one_node_is_said_first():
    assert list(problems_of(define(gpu=replace(SHARE, compute_percent=33)))) == ["accelerator.gpu.compute_percent"]


def test_the_labels_of_the_group_are_taken():
    assert problems_of(define(labels={GROUP_NAME: "own"})) == {
        "kubernetes.labels": f"`{GROUP_NAME}` is taken: Relaunch sets it for a job with `nodes`"
    }
    assert problems_of(define(labels={GROUP_NAME: "own"}, nodes=1)) == {}


@pytest.mark.parametrize(
    ("fragment", "key", "said"),
    [
        ({"metadata": {"labels": {GROUP_SIZE: "1"}}}, f"metadata.labels.{GROUP_SIZE}", "is taken"),
        ({"spec": {"hostname": "a"}}, "spec.hostname", "a cluster gives each pod its own"),
        ({"spec": {"subdomain": "a"}}, "spec.subdomain", "it is the Service of the job"),
        ({"spec": {"setHostnameAsFQDN": True}}, "spec.setHostnameAsFQDN", "longer than a host's may be"),
        ({"spec": {"dnsPolicy": "Default"}}, "spec.dnsPolicy", "must be ClusterFirst"),
    ],
)
def test_a_fragment_may_not_hide_a_pod_from_the_others(fragment, key, said):
    assert find_pod_problems(define(nodes=1, pod=fragment)) == ()
    (problem,) = find_pod_problems(define(pod=fragment))

    assert ".".join(problem.key) == f"kubernetes.pod.{key}"
    assert said in str(problem)


def test_what_no_fragment_may_say_is_said_first():
    (problem,) = find_pod_problems(define(pod={"spec": {"hostNetwork": True, "hostname": "a"}}))

    assert ".".join(problem.key) == "kubernetes.pod.spec.hostNetwork"


def test_who_has_no_groups_and_no_queue_is_told():
    notice = "kubernetes places the 4 pods of a job one by one"

    assert any(each.startswith(notice) for each in find_kubernetes_notices(define(Target.KUBERNETES)))
    for definition in (
        define(Target.KUBERNETES, queue="gpus"),
        define(Target.KUBERNETES, nodes=1),
        define(Target.ACK),
    ):
        assert not any("one by one" in each for each in find_kubernetes_notices(definition))
