"""GPUs in any cluster with NVIDIA's device plug-in: whole ones, or what the plug-in makes of them.

Sources: "Schedule GPUs", "Taints and Tolerations" and the admission plug-in ExtendedResourceToleration, Kubernetes
documentation; "MIG Support in Kubernetes" and "Time-Slicing GPUs in Kubernetes", NVIDIA. Nodes of spot capacity mostly
have a taint that is like their label: those of GKE and of AKS.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from relaunch.core.definitions.accelerator import GpuRequirement, PurchaseOption
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload, TaintEffect, Toleration
from relaunch.core.kubernetes.node_labels import NodeLabel, NodeLabels
from relaunch.core.kubernetes.pod_gpus import WHOLE_GPUS, PodGpus, ask_whole_gpus
from relaunch.core.kubernetes.problem import Problem, of_gpu

# "1g.5gb", and "1g.10gb.me" with media extensions; plug-ins that share a resource may call it `.shared`.
_MIG = r"nvidia\.com/mig-.+"
_SHARED = r"nvidia\.com/.+\.shared"
_INSTEAD = (
    "name a MIG partition or GPUs that are shared in time as `kubernetes.gpu_resource` (nvidia.com/mig-1g.5gb, "
    "nvidia.com/gpu.shared), or take shares by memory and compute with `target: ack`"
)
# The keys of other targets, and whose they are.
_OF_OTHERS = {"region": "ACK", "gpu_sharing": "ACK", "gpu_placement": "ACK"} | dict.fromkeys(
    ("compute_class", "gpu_driver", "strict", "card_memory_mib"), "ACS"
)


def find_whole_gpu_problems(gpu: GpuRequirement) -> tuple[Problem, ...]:
    """Return why a plain cluster never gives a job its GPUs."""
    if gpu.is_share:
        text = f"a cluster has no shares of a GPU by percent: leave `compute_percent` and `memory` out, and {_INSTEAD}"
        return (of_gpu("compute_percent", text),)
    if gpu.memory_mib is not None:
        text = (
            "a cluster gives whole GPUs, whatever memory they have: leave `memory` out, and name their model in "
            f"`kubernetes.gpu_model`; for a part of one {_INSTEAD}"
        )
        return (of_gpu("memory", text),)
    return ()


def ask_plain_gpus(
    gpu: GpuRequirement, workload: KubernetesWorkload, purchase: PurchaseOption, labels: NodeLabels
) -> PodGpus:
    """Return how a pod asks for the GPUs of a job without problems, on nodes that are bought in this way.

    Nodes with GPUs often have a taint of the name of the resource, which keeps pods without GPUs away; nodes of spot
    capacity one like their label.
    """
    asked = ask_whole_gpus(gpu, workload, labels.gpu_model)
    chosen = labels.spot if purchase is PurchaseOption.SPOT else labels.on_demand
    selector: Mapping[str, str] = {} if chosen is None else {chosen.key: chosen.value}
    names = dict.fromkeys((WHOLE_GPUS, *asked.resources))
    tolerations = [Toleration(each, effect=TaintEffect.NO_SCHEDULE) for each in names]
    if purchase is PurchaseOption.SPOT and labels.spot is not None:
        tolerations.append(_toleration_of(labels.spot))
    return replace(
        asked,
        node_selector={**asked.node_selector, **selector},
        tolerations=tuple(tolerations),
        notices=(*_count_notices(gpu, workload), *_unused_notices(workload)),
    )


def is_part_of_gpu(resource: str) -> bool:
    """Return whether a resource is a partition of a GPU, or one that is shared in time."""
    return re.fullmatch(f"{_MIG}|{_SHARED}", resource) is not None


def _toleration_of(label: NodeLabel) -> Toleration:
    return Toleration(label.key, label.value, TaintEffect.NO_SCHEDULE)


def _count_notices(gpu: GpuRequirement, workload: KubernetesWorkload) -> tuple[str, ...]:
    name = workload.gpu_resource
    if gpu.count > 1 and re.fullmatch(_MIG, name):
        return (f"a process of CUDA uses one MIG partition: {gpu.count} of {name} are for as many processes",)
    if gpu.count > 1 and re.fullmatch(_SHARED, name):
        return (f"{gpu.count} of {name} give no more of a GPU than one, and some device plug-ins refuse more",)
    return ()


def _unused_notices(workload: KubernetesWorkload) -> tuple[str, ...]:
    keys = (key for key in _OF_OTHERS if getattr(workload, key))
    return tuple(
        f"`kubernetes.{key.removesuffix('_mib')}` has no effect on kubernetes: it is of {_OF_OTHERS[key]}"
        for key in keys
    )
