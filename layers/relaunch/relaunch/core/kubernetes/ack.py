"""GPUs on Alibaba Cloud ACK: whole ones as in any cluster, or shares by the scheduler and cGPU of an ACK Pro cluster.

Sources: "Configure shared GPU scheduling with computing power allocation", "Multi-GPU sharing" and "Enable scheduling
features", Container Service for Kubernetes.
"""

import math
from dataclasses import replace

from relaunch.core.definitions.accelerator import GpuRequirement
from relaunch.core.definitions.kubernetes_workload import GpuSharing, KubernetesWorkload
from relaunch.core.kubernetes.pod_gpus import PodGpus, ask_whole_gpus
from relaunch.core.kubernetes.problem import Problem, of_gpu, of_workload
from relaunch.core.offerings.instance_types import nearest_names

GPU_MEMORY = "aliyun.com/gpu-mem"
"""The memory of all GPUs of the pod together, in whole GiB."""
GPU_COMPUTE = "aliyun.com/gpu-core.percentage"
"""A percentage of one GPU's compute."""
GPU_COUNT = "aliyun.com/gpu-count"
"""The pod label with the number of GPUs that the memory is divided among."""
SHARING = "ack.node.gpu.schedule"
PLACEMENT = "ack.node.gpu.placement"
GPU_NAME = "aliyun.accelerator/nvidia_name"
GROUP_NAME = "pod-group.scheduling.sigs.k8s.io/name"
GROUP_SIZE = "pod-group.scheduling.sigs.k8s.io/min-available"
"""The pod labels that let its scheduler place pods all together or not at all ("Use Gang scheduling")."""
GROUP_LABELS = frozenset({GROUP_NAME, GROUP_SIZE})
OWN_LABELS = frozenset({GPU_COUNT})

COMPUTE_STEP_PERCENT = 5
MAX_COMPUTE_PERCENT = 100

COMPUTE_REGIONS = (
    *("cn-beijing", "cn-shanghai", "cn-hangzhou", "cn-zhangjiakou", "cn-shenzhen", "cn-chengdu", "cn-heyuan"),
    *("cn-hongkong", "ap-southeast-5", "ap-southeast-1", "ap-southeast-7", "us-east-1", "us-west-1", "ap-northeast-1"),
    "cn-shanghai-finance-1",
)
"""The regions of Alibaba Cloud with shares of compute."""

_MIB_PER_GIB = 1024


def sharing_of(gpu: GpuRequirement, workload: KubernetesWorkload) -> GpuSharing:
    """Return how the nodes of a job share their GPUs.

    A node has either jobs with shares of memory alone or jobs with shares of memory and compute, never both: by default
    each kind runs on nodes of a mode of its own.
    """
    if workload.gpu_sharing is not None:
        return workload.gpu_sharing
    if gpu.compute_percent is not None:
        return GpuSharing.CORE_MEM
    return GpuSharing.EXCLUSIVE if gpu.memory_mib is None else GpuSharing.CGPU


def find_ack_problems(gpu: GpuRequirement, workload: KubernetesWorkload) -> tuple[Problem, ...]:
    """Return why ACK would refuse the GPUs of a job, or never run it."""
    sharing = sharing_of(gpu, workload)
    problems = [*_percent_problems(gpu, sharing), *_region_problems(gpu, workload.region)]
    if workload.gpu_resource and sharing is not GpuSharing.EXCLUSIVE:
        text = f"`{workload.gpu_resource}` is no share of a GPU's memory: leave it out, or leave `memory` out"
        problems.append(of_workload("gpu_resource", text))
    if sharing is GpuSharing.EXCLUSIVE:
        if workload.gpu_placement is not None:
            text = "`gpu_placement` is for shares of a GPU: leave it out, or ask for `memory`"
            problems.append(of_workload("gpu_placement", text))
    elif gpu.memory_mib is None and gpu.compute_percent is None:
        text = f"`gpu_sharing: {sharing}` shares the memory of a GPU: give `memory` too"
        problems.append(of_workload("gpu_sharing", text))
    return tuple(problems)


def _percent_problems(gpu: GpuRequirement, sharing: GpuSharing) -> list[Problem]:
    percent = gpu.compute_percent
    if percent is None:
        return []
    problems = []
    if near := neighbours(percent):
        rule = f"ACK takes multiples of {COMPUTE_STEP_PERCENT} from {COMPUTE_STEP_PERCENT} to {MAX_COMPUTE_PERCENT}"
        text = f"{percent} percent cannot be submitted: {rule}, so give {' or '.join(map(str, near))}"
        problems.append(of_gpu("compute_percent", text))
    if sharing is not GpuSharing.CORE_MEM:
        text = f"`{sharing}` gives no share of compute: leave `gpu_sharing` out, or leave `compute_percent` out"
        problems.append(of_workload("gpu_sharing", text))
    return problems


def neighbours(percent: int) -> tuple[int, ...]:
    """Return the percentages next to one that ACK does not take; empty if it takes it."""
    below = min(percent // COMPUTE_STEP_PERCENT * COMPUTE_STEP_PERCENT, MAX_COMPUTE_PERCENT)
    if below == percent and percent >= COMPUTE_STEP_PERCENT:
        return ()
    near = (below, below + COMPUTE_STEP_PERCENT)
    return tuple(each for each in near if COMPUTE_STEP_PERCENT <= each <= MAX_COMPUTE_PERCENT) or (
        COMPUTE_STEP_PERCENT,
    )


def _region_problems(gpu: GpuRequirement, region: str) -> list[Problem]:
    if gpu.compute_percent is None or not region or region in COMPUTE_REGIONS:
        return []
    near = nearest_names(region, COMPUTE_REGIONS)
    hint = f"; did you mean {' or '.join(near)}?" if near else f"; it has in {', '.join(COMPUTE_REGIONS)}"
    return [of_workload("region", f"ACK has no shares of compute in the region {region} of Alibaba Cloud{hint}")]


def ask_ack_gpus(gpu: GpuRequirement, workload: KubernetesWorkload) -> PodGpus:
    """Return how a pod asks ACK for the GPUs of a job without problems."""
    sharing = sharing_of(gpu, workload)
    whole = ask_whole_gpus(gpu, workload, GPU_NAME)
    if sharing is GpuSharing.EXCLUSIVE:
        # Only nodes of this mode have the resource; many of them have no label.
        return replace(whole, notices=_whole_notices(gpu))
    memory_gib = math.ceil((gpu.memory_mib or 0) / _MIB_PER_GIB)
    resources = {GPU_MEMORY: gpu.count * memory_gib}
    if gpu.compute_percent is not None:
        resources[GPU_COMPUTE] = gpu.compute_percent
    selector = {**whole.node_selector, SHARING: sharing.value}
    if workload.gpu_placement is not None:
        selector[PLACEMENT] = workload.gpu_placement.value
    labels = {GPU_COUNT: str(gpu.count)} if gpu.count > 1 else {}
    return PodGpus(resources, labels, selector, notices=_share_notices(gpu, sharing, memory_gib))


def _whole_notices(gpu: GpuRequirement) -> tuple[str, ...]:
    if gpu.memory_mib is None:
        return ()
    return ("the memory of whole GPUs cannot be asked for on ACK: choose nodes that have it by `gpu_model`",)


def _share_notices(gpu: GpuRequirement, sharing: GpuSharing, memory_gib: int) -> tuple[str, ...]:
    notices = []
    if memory_gib * _MIB_PER_GIB != gpu.memory_mib:
        notices.append(f"ACK shares GPU memory in whole GiB: {gpu.memory_mib:,} MiB are rounded up to {memory_gib} GiB")
    if gpu.compute_percent is None:
        notices.append(
            f"the job has {memory_gib} GiB of each GPU beside others (`gpu_sharing: {sharing}`), and no share of its "
            "compute: for whole GPUs set `gpu_sharing` to exclusive"
        )
    if sharing is GpuSharing.CORE_MEM and gpu.compute_percent is None:
        notices.append(
            "`gpu_sharing: core_mem` without `compute_percent`: a node that runs jobs with shares of compute never "
            "runs this one beside them, so that it may wait for ever; leave `gpu_sharing` out for nodes of mode cgpu"
        )
    if sharing is GpuSharing.SHARE:
        notices.append("`gpu_sharing: share` keeps no limit: a neighbour can take the memory that this job asks for")
    return tuple(notices)
