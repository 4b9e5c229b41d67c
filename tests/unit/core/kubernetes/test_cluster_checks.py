"""What nodes of any cluster offer to jobs with GPUs."""

from relaunch.core.checks import Verdict
from relaunch.core.kubernetes.cluster_checks import GPUS, MODELS, SPOT, check_gpu_nodes
from relaunch.core.kubernetes.node_fit import GpuNode

A10G = {"nvidia.com/gpu.product": "NVIDIA-A10G", "karpenter.sh/capacity-type": "spot"}


def check(*nodes):
    return {each.name: each for each in check_gpu_nodes(nodes)}


L4 = {**A10G, "nvidia.com/gpu.product": "NVIDIA-L4"}


def test_nodes_are_counted_by_what_they_offer_with_the_labels_that_definitions_may_name():
    found = check(
        GpuNode("a", A10G, {"nvidia.com/gpu": 4}),
        GpuNode("b", L4, {"nvidia.com/gpu": 2, "nvidia.com/mig-1g.5gb": 7}),
        GpuNode("cpu", {"cloud.google.com/gke-spot": "true"}, {"nvidia.com/gpu": 0}),
    )

    assert {each.verdict for each in found.values()} == {Verdict.OK}
    assert found[GPUS].text == "6 nvidia.com/gpu, 7 nvidia.com/mig-1g.5gb on 2 nodes"
    assert found[MODELS].text.startswith("nvidia.com/gpu.product=NVIDIA-A10G, NVIDIA-L4: KubernetesGpuModelLabel")
    assert found[SPOT].text.startswith("karpenter.sh/capacity-type=spot: KubernetesSpotLabel")


def test_a_cluster_without_gpus_now_may_make_nodes_later():
    found = check(GpuNode("cpu", {}, {}))

    assert list(found) == [GPUS]
    assert (found[GPUS].verdict, found[GPUS].text) == (Verdict.UNKNOWN, "of 1 node none offers nvidia.com/gpu now")
    assert found[GPUS].to_do.startswith("install NVIDIA's device plug-in or GPU operator, unless")


def test_labels_that_are_not_known_are_to_be_looked_up():
    found = check(GpuNode("a", {}, {"nvidia.com/gpu": 1}))

    assert (found[MODELS].verdict, found[MODELS].to_do) == (Verdict.UNKNOWN, "kubectl get nodes --show-labels")
    assert found[SPOT].text == "no node has a label that is known for how it is bought"
