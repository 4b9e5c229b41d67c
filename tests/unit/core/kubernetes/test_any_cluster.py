"""GPUs of any cluster: whole ones, partitions and shares in time by the names of the device plug-in, and spot nodes."""

# ruff: noqa: E501 - one case a line, with the whole message

from dataclasses import replace

import pytest

from fakes.builders import make_definition
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, PurchaseOption, PurchasePolicy
from relaunch.core.definitions.kubernetes_workload import (
    ComputeClass,
    GpuSharing,
    KubernetesWorkload,
    PodVolume,
    TaintEffect,
    Toleration,
)
from relaunch.core.definitions.targets import Target
from relaunch.core.kubernetes.any_cluster import ask_plain_gpus, find_whole_gpu_problems
from relaunch.core.kubernetes.grant_problems import find_grant_problems
from relaunch.core.kubernetes.node_fit import GpuNode, NodeTaint
from relaunch.core.kubernetes.node_labels import NodeLabel, NodeLabels
from relaunch.core.kubernetes.pod_grants import PodGrants
from relaunch.core.kubernetes.rules import (
    ask_gpus,
    find_kubernetes_notices,
    find_problems,
    kubernetes_offerings,
    predict_job_fit,
    purchase_options,
)

WORKLOAD = KubernetesWorkload("trainer")
MIG = "nvidia.com/mig-1g.5gb"
MOUNT = {"name": "memory", "mountPath": "/dev/shm"}  # noqa: S108 - of a container
SPOT = PurchaseOption.SPOT
ON_DEMAND = PurchaseOption.ON_DEMAND
KARPENTER = NodeLabels(
    "karpenter.k8s.aws/instance-gpu-name",
    NodeLabel("karpenter.sh/capacity-type", "spot"),
    NodeLabel("karpenter.sh/capacity-type", "on-demand"),
)
GPU_TAINT = Toleration("nvidia.com/gpu", effect=TaintEffect.NO_SCHEDULE)


def define(gpu=GpuRequirement(), *, purchase=PurchasePolicy.ON_DEMAND, target=Target.KUBERNETES, **members):  # noqa: B008 - frozen
    workload = replace(WORKLOAD, **members)
    return make_definition(
        target=target, kubernetes=workload, accelerator=AcceleratorRequirement(gpu=gpu), purchase=purchase
    )


@pytest.mark.parametrize(
    ("resource", "asked", "tolerated"),
    [
        ("", "nvidia.com/gpu", ["nvidia.com/gpu"]),
        ("nvidia.com/gpu", "nvidia.com/gpu", ["nvidia.com/gpu"]),
        (MIG, MIG, ["nvidia.com/gpu", MIG]),
        ("nvidia.com/gpu.shared", "nvidia.com/gpu.shared", ["nvidia.com/gpu", "nvidia.com/gpu.shared"]),
    ],
)
def test_a_pod_asks_for_the_resource_by_name_and_tolerates_its_taint(resource, asked, tolerated):
    found = ask_plain_gpus(GpuRequirement(), replace(WORKLOAD, gpu_resource=resource), ON_DEMAND, NodeLabels())

    assert (found.resources, found.labels, found.node_selector, found.notices) == ({asked: 1}, {}, {}, ())
    assert found.tolerations == tuple(Toleration(key, effect=TaintEffect.NO_SCHEDULE) for key in tolerated)


@pytest.mark.parametrize(
    ("purchase", "labels", "selector", "taints"),
    [
        (
            SPOT,
            KARPENTER,
            {"karpenter.k8s.aws/instance-gpu-name": "a10g", "karpenter.sh/capacity-type": "spot"},
            [("karpenter.sh/capacity-type", "spot")],
        ),
        (
            ON_DEMAND,
            KARPENTER,
            {"karpenter.k8s.aws/instance-gpu-name": "a10g", "karpenter.sh/capacity-type": "on-demand"},
            [],
        ),
        (ON_DEMAND, NodeLabels(), {"nvidia.com/gpu.product": "a10g"}, []),
        (SPOT, NodeLabels(), {"nvidia.com/gpu.product": "a10g"}, []),
    ],
)
def test_nodes_are_chosen_by_the_labels_that_the_stack_names(purchase, labels, selector, taints):
    found = ask_gpus(Target.KUBERNETES, GpuRequirement(), replace(WORKLOAD, gpu_model="a10g"), purchase, labels)

    assert found.node_selector == selector
    assert found.tolerations == (GPU_TAINT, *(Toleration(key, value, TaintEffect.NO_SCHEDULE) for key, value in taints))


@pytest.mark.parametrize(
    ("gpu", "key", "beginning"),
    [
        (
            GpuRequirement(memory_mib=2048, compute_percent=30),
            "compute_percent",
            "a cluster has no shares of a GPU by percent: leave `compute_percent` and `memory` out, and name a MIG partition",
        ),
        (
            GpuRequirement(memory_mib=2048),
            "memory",
            "a cluster gives whole GPUs, whatever memory they have: leave `memory` out, and name their model in `kubernetes.gpu_model`",
        ),
    ],
)
def test_a_share_is_refused_with_what_there_is_instead(gpu, key, beginning):
    (problem,) = find_problems(define(gpu))

    assert problem.key == ("accelerator", "gpu", key)
    assert problem.text.startswith(beginning)
    assert problem.text.endswith(
        "(nvidia.com/mig-1g.5gb, nvidia.com/gpu.shared), or take shares by memory and compute with `target: ack`"
    )
    assert find_whole_gpu_problems(GpuRequirement(count=4)) == ()


@pytest.mark.parametrize(
    ("resource", "count", "notice"),
    [
        (MIG, 1, ""),
        (MIG, 2, f"a process of CUDA uses one MIG partition: 2 of {MIG} are for as many processes"),
        (
            "nvidia.com/gpu.shared",
            2,
            "2 of nvidia.com/gpu.shared give no more of a GPU than one, and some device plug-ins refuse more",
        ),
        ("nvidia.com/gpu", 8, ""),
    ],
)
def test_several_parts_of_a_gpu_are_no_larger_one(resource, count, notice):
    definition = define(GpuRequirement(count=count), gpu_resource=resource, shared_memory_mib=1024)

    assert find_kubernetes_notices(definition) == ((notice,) if notice else ())


@pytest.mark.parametrize(
    ("count", "fields", "is_noted"),
    [
        (2, {}, True),
        (1, {}, False),
        (2, {"gpu_resource": MIG}, False),
        (2, {"shared_memory_mib": 1024}, False),
        (2, {"volumes": (PodVolume("claim", "/dev/shm"),)}, False),  # noqa: S108
        (2, {"pod": {"spec": {"containers": [{"name": "main", "volumeMounts": [MOUNT]}]}}}, False),
    ],
)
def test_several_gpus_with_the_usual_shared_memory_are_noted(count, fields, is_noted):
    notices = find_kubernetes_notices(define(GpuRequirement(count=count), **fields))

    found = [each for each in notices if "`kubernetes.shared_memory`" in each]
    assert len(found) == is_noted
    assert all(each.startswith("processes on 2 GPUs share /dev/shm, which has 64 MiB: NCCL") for each in found)


def test_keys_of_other_targets_have_no_effect():
    found = find_kubernetes_notices(
        define(
            region="cn-beijing", gpu_sharing=GpuSharing.MPS, compute_class=ComputeClass.GPU_HPN, card_memory_mib=1024
        )
    )

    assert found == tuple(
        f"`kubernetes.{key}` has no effect on kubernetes: it is of {owner}"
        for key, owner in (("region", "ACK"), ("gpu_sharing", "ACK"), ("compute_class", "ACS"), ("card_memory", "ACS"))
    )


@pytest.mark.parametrize(
    ("policy", "offered"),
    [
        (PurchasePolicy.SPOT, ["kubernetes/mig-1g.5gb/a100 spot"]),
        (PurchasePolicy.ON_DEMAND, ["kubernetes/mig-1g.5gb/a100 on-demand"]),
        (
            PurchasePolicy.SPOT_THEN_ON_DEMAND,
            ["kubernetes/mig-1g.5gb/a100 spot", "kubernetes/mig-1g.5gb/a100 on-demand"],
        ),
    ],
)
def test_each_way_to_buy_is_an_offering_spot_first(policy, offered):
    definition = define(purchase=policy, gpu_model="a100", gpu_resource=MIG, compute_class=ComputeClass.GPU_HPN)

    assert [str(each.key) for each in kubernetes_offerings(definition)] == offered
    assert purchase_options(definition) == policy.options


@pytest.mark.parametrize(
    ("target", "gpu", "text"),
    [
        (Target.ACK, GpuRequirement(), ""),
        (
            Target.ACK,
            GpuRequirement(memory_mib=2048),
            f"`{MIG}` is no share of a GPU's memory: leave it out, or leave `memory` out",
        ),
        (Target.ACS, GpuRequirement(), "ACS has whole GPUs, and shares of them in percent: leave `gpu_resource` out"),
    ],
)
def test_a_resource_by_name_is_for_whole_gpus_of_clusters_with_nodes(target, gpu, text):
    found = find_problems(define(gpu, target=target, gpu_resource=MIG, vcpus=4, memory_mib=1024, gpu_model="T4"))

    assert [str(each) for each in found] == ([text] if text else [])


def test_on_ack_a_partition_is_asked_for_as_in_any_cluster():
    assert ask_gpus(Target.ACK, GpuRequirement(), replace(WORKLOAD, gpu_resource=MIG), ON_DEMAND).resources == {MIG: 1}


def problems_of_grants(nodes, **members):
    return {each.key: each.text for each in find_grant_problems(define(**members), PodGrants(nodes=nodes))}


def test_spot_needs_the_label_of_spot_nodes():
    found = problems_of_grants(NodeLabels(), purchase=PurchasePolicy.SPOT_THEN_ON_DEMAND)

    assert found[("purchase",)].startswith(
        "the stack does not say which nodes of its cluster are on spot: set its parameter KubernetesSpotLabel"
    )
    assert problems_of_grants(KARPENTER, purchase=PurchasePolicy.SPOT) == {}
    assert problems_of_grants(NodeLabels()) == {}
    acs = define(target=Target.ACS, purchase=PurchasePolicy.SPOT)
    assert find_grant_problems(acs, PodGrants()) == ()


def test_labels_that_follow_from_other_keys_are_taken():
    selector = {"karpenter.sh/capacity-type": "spot", "karpenter.k8s.aws/instance-gpu-name": "t4", "pool": "a"}

    assert problems_of_grants(KARPENTER, node_selector=selector, gpu_model="a10g") == {
        (
            "kubernetes",
            "node_selector",
            "karpenter.k8s.aws/instance-gpu-name",
        ): "`karpenter.k8s.aws/instance-gpu-name` is taken: say `kubernetes.gpu_model`",
        (
            "kubernetes",
            "node_selector",
            "karpenter.sh/capacity-type",
        ): "`karpenter.sh/capacity-type` is taken: say `purchase`",
    }
    assert ("kubernetes", "node_selector", "karpenter.k8s.aws/instance-gpu-name") not in problems_of_grants(
        KARPENTER, node_selector=selector
    )


def test_a_node_of_the_first_offering_fits_with_its_taints():
    labels = {"karpenter.sh/capacity-type": "spot"}
    taints = (
        NodeTaint("nvidia.com/gpu", "true", "NoSchedule"),
        NodeTaint("karpenter.sh/capacity-type", "spot", "NoSchedule"),
    )
    nodes = [
        GpuNode("spot-1", labels, {"nvidia.com/gpu": 1}, taints=taints),
        GpuNode("od-1", {}, {"nvidia.com/gpu": 1}),
    ]

    fits = predict_job_fit(define(purchase=PurchasePolicy.SPOT_THEN_ON_DEMAND), nodes, KARPENTER)

    assert fits is not None
    assert [(each.node, each.fits) for each in fits] == [("spot-1", True), ("od-1", False)]
