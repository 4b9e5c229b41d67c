"""GPUs on Alibaba Cloud ACS: whole ones as in any cluster, of a compute class, or shares of a reserved one.

Sources: "Specify GPU models and driver versions for ACS GPU-accelerated pods", "Overview of ACS pods", "Preemptible
instances" and "Use shared GPU scheduling on GPU-HPN nodes", Container Compute Service.
"""

import math
import re
from dataclasses import replace

from relaunch.core.definitions.accelerator import GpuRequirement, PurchaseOption
from relaunch.core.definitions.kubernetes_workload import ComputeClass, KubernetesWorkload
from relaunch.core.kubernetes.pod_gpus import PodGpus, ask_whole_gpus
from relaunch.core.kubernetes.problem import Problem, of_gpu, of_workload

COMPUTE_CLASS = "alibabacloud.com/compute-class"
COMPUTE_QOS = "alibabacloud.com/compute-qos"
GPU_MODEL = "alibabacloud.com/gpu-model-series"
GPU_DRIVER = "alibabacloud.com/gpu-driver-version"
GPU_MEMORY_PERCENT = "alibabacloud.com/gpu-memory.percentage"
GPU_COMPUTE_PERCENT = "alibabacloud.com/gpu-core.percentage"
EXTRA_STORAGE = "alibabacloud.com/extra-ephemeral-storage"
"""The annotation of a pod with what its disk has beyond the 30 GiB of every pod ("Add the EphemeralStorage")."""
OWN_LABELS = frozenset({COMPUTE_CLASS, COMPUTE_QOS, GPU_MODEL, GPU_DRIVER})

BEST_EFFORT = "best-effort"
"""The quality of service of preemptible capacity, announced five minutes before it is taken away."""

_MIB_PER_GIB = 1024
_FREE_DISK_GIB = 30
# The GPUs of a partition of a node, up to its own number ("GPU-HPN topology-aware scheduling", ACS).
_PARTITIONS = (1, 2, 4, 8, 16)
# NVIDIA's (535.161.08, 580.95.05-open), and those of other makers (1.5.0).
_DRIVER = re.compile(r"[0-9]+(?:\.[0-9]+){1,3}(?:-[a-z]+)?")


def is_driver_version(text: str) -> bool:
    """Return whether a text is written as the versions of drivers are."""
    return _DRIVER.fullmatch(text) is not None


def class_of(workload: KubernetesWorkload) -> ComputeClass:
    """Return the compute class of a workload."""
    return workload.compute_class or ComputeClass.GPU


def find_acs_problems(gpu: GpuRequirement, workload: KubernetesWorkload) -> tuple[Problem, ...]:
    """Return why ACS would refuse the pod of a job, or give it something else."""
    sizes = {"vcpus": workload.vcpus, "memory": workload.memory_mib}
    problems = [
        of_workload(key, f"`{key}` is missing: ACS sizes a pod by its requests")
        for key, size in sizes.items()
        if size is None
    ]
    if workload.gpu_driver and not is_driver_version(workload.gpu_driver):
        text = f"`{workload.gpu_driver}` is not a driver version: write it like 535.161.08"
        problems.append(of_workload("gpu_driver", text))
    if workload.gpu_resource:
        text = "ACS has whole GPUs, and shares of them in percent: leave `gpu_resource` out"
        problems.append(of_workload("gpu_resource", text))
    card_mib = workload.card_memory_mib
    asked_mib = gpu.memory_mib
    if card_mib is not None and asked_mib is not None and asked_mib > card_mib:
        text = f"{asked_mib:,} MiB are asked for, and a card has {card_mib:,} (`card_memory`)"
        problems.append(of_gpu("memory", text))
    is_reserved = class_of(workload) is ComputeClass.GPU_HPN
    return (*problems, *(_reserved_problems if is_reserved else _class_problems)(gpu, workload))


def _class_problems(gpu: GpuRequirement, workload: KubernetesWorkload) -> list[Problem]:
    problems = []
    if not workload.gpu_model:
        problems.append(of_workload("gpu_model", "`gpu_model` is missing: ACS needs the model of the GPU, such as T4"))
    if gpu.is_share:
        text = "compute class gpu of ACS has whole GPUs only: leave it out, or set `compute_class` to gpu-hpn"
        problems.append(of_gpu("compute_percent", text))
    return problems


def _reserved_problems(gpu: GpuRequirement, workload: KubernetesWorkload) -> list[Problem]:
    if not gpu.is_share:
        return []
    problems = []
    if workload.card_memory_mib is None:
        text = "`card_memory` is missing: ACS shares a GPU in percent of the memory of a whole one"
        problems.append(of_workload("card_memory", text))
    if workload.gpu_driver:
        text = "a pod with a share of a GPU takes the driver of its node: leave `gpu_driver` out"
        problems.append(of_workload("gpu_driver", text))
    return problems


def ask_storage(disk_mib: int | None) -> dict[str, str]:
    """Return the annotation of a pod with a disk of a size, which holds its image too; none for what every pod has."""
    extra = math.ceil((disk_mib or 0) / _MIB_PER_GIB) - _FREE_DISK_GIB
    return {EXTRA_STORAGE: f"{extra}Gi"} if extra > 0 else {}


def ask_acs_gpus(gpu: GpuRequirement, workload: KubernetesWorkload, purchase: PurchaseOption) -> PodGpus:
    """Return how a pod asks ACS for the GPUs of a job without problems.

    Spot is the quality of service `best-effort`, which reserved nodes do not have.
    """
    kind = class_of(workload)
    labels = {COMPUTE_CLASS: kind.value}
    asked = replace(ask_whole_gpus(gpu, workload, GPU_MODEL), has_requests=True)
    if kind is ComputeClass.GPU:
        # Its capacity has no nodes: pods have the model as a label.
        asked = replace(asked, node_selector={})
        labels[GPU_MODEL] = workload.gpu_model
        if purchase is PurchaseOption.SPOT:
            labels[COMPUTE_QOS] = BEST_EFFORT
    if gpu.is_share:
        return _ask_share(gpu, workload, replace(asked, labels=labels))
    if workload.gpu_driver:
        labels[GPU_DRIVER] = workload.gpu_driver
    return replace(asked, labels=labels, notices=_partition_notices(gpu) if kind is ComputeClass.GPU_HPN else ())


def _partition_notices(gpu: GpuRequirement) -> tuple[str, ...]:
    if gpu.count in _PARTITIONS:
        return ()
    sizes = ", ".join(map(str, _PARTITIONS))
    return (f"nodes of class gpu-hpn are divided into {sizes} GPUs: a pod that asks for {gpu.count} may wait for ever",)


def _ask_share(gpu: GpuRequirement, workload: KubernetesWorkload, whole: PodGpus) -> PodGpus:
    asked_mib = gpu.memory_mib or 0
    card_mib = workload.card_memory_mib or 1
    percent = math.ceil(100 * asked_mib / card_mib)
    notices = (
        ()
        if percent * card_mib == 100 * asked_mib
        else (
            f"ACS shares GPU memory in whole percent: {asked_mib:,} of {card_mib:,} MiB are rounded up to {percent} %",
        )
    )
    resources = {GPU_MEMORY_PERCENT: percent, GPU_COMPUTE_PERCENT: gpu.compute_percent or 0}
    return replace(whole, resources=resources, notices=notices)
