"""GPUs on ACK: each rule of the documents on shares of a GPU, and how a pod asks for each kind."""

# ruff: noqa: E501 - one case a line, with the whole message

import pytest

from relaunch.core.definitions.accelerator import GpuRequirement
from relaunch.core.definitions.kubernetes_workload import GpuPlacement, GpuSharing, KubernetesWorkload
from relaunch.core.kubernetes.ack import COMPUTE_REGIONS, ask_ack_gpus, find_ack_problems, neighbours, sharing_of
from relaunch.core.kubernetes.pod_gpus import PodGpus
from relaunch.core.kubernetes.problem import Problem

GIB = 1024
SHARE = GpuRequirement(memory_mib=2 * GIB, compute_percent=30)
MEMORY = GpuRequirement(memory_mib=2 * GIB)
WHOLE = GpuRequirement()
ANY = KubernetesWorkload("trainer")


def on(sharing: GpuSharing) -> KubernetesWorkload:
    return KubernetesWorkload("trainer", gpu_sharing=sharing)


def selector(sharing: str) -> dict[str, str]:
    return {"ack.node.gpu.schedule": sharing}


@pytest.mark.parametrize(
    ("gpu", "workload", "expected"),
    [
        pytest.param(
            SHARE,
            ANY,
            PodGpus({"aliyun.com/gpu-mem": 2, "aliyun.com/gpu-core.percentage": 30}, {}, selector("core_mem")),
            id="memory and compute: nodes of their own mode",
        ),
        pytest.param(
            SHARE,
            KubernetesWorkload("trainer", gpu_placement=GpuPlacement.BINPACK),
            PodGpus(
                {"aliyun.com/gpu-mem": 2, "aliyun.com/gpu-core.percentage": 30},
                {},
                {**selector("core_mem"), "ack.node.gpu.placement": "binpack"},
            ),
            id="nodes that fill one GPU after the other",
        ),
        pytest.param(GpuRequirement(2), ANY, PodGpus({"nvidia.com/gpu": 2}), id="whole GPUs on nodes of any label"),
        pytest.param(
            WHOLE,
            KubernetesWorkload("trainer", gpu_model="Tesla-V100-SXM2-16GB"),
            PodGpus({"nvidia.com/gpu": 1}, {}, {"aliyun.accelerator/nvidia_name": "Tesla-V100-SXM2-16GB"}),
            id="whole GPU of a model",
        ),
    ],
)
def test_a_pod_asks_for(gpu, workload, expected):
    assert find_ack_problems(gpu, workload) == ()
    assert ask_ack_gpus(gpu, workload) == expected


def test_the_memory_of_several_gpus_is_their_sum_with_their_number_in_a_label():
    asked = ask_ack_gpus(GpuRequirement(count=4, memory_mib=3 * GIB), ANY)

    assert asked.resources == {"aliyun.com/gpu-mem": 12}
    assert asked.labels == {"aliyun.com/gpu-count": "4"}
    assert asked.node_selector == selector("cgpu")


@pytest.mark.parametrize(("asked_mib", "gib"), [(1, 1), (1024, 1), (1025, 2), (2560, 3)])
def test_memory_is_rounded_up_to_whole_gib_of_each_gpu_and_said_so(asked_mib, gib):
    asked = ask_ack_gpus(GpuRequirement(count=2, memory_mib=asked_mib), ANY)

    rounded = [each for each in asked.notices if "rounded up" in each]
    assert asked.resources == {"aliyun.com/gpu-mem": 2 * gib}
    assert len(rounded) == (asked_mib % GIB > 0)
    assert all(f"{asked_mib:,} MiB are rounded up to {gib} GiB" in each for each in rounded)


@pytest.mark.parametrize("percent", range(5, 101, 5))
def test_multiples_of_five_are_taken(percent):
    assert neighbours(percent) == ()
    assert find_ack_problems(GpuRequirement(memory_mib=GIB, compute_percent=percent), ANY) == ()


@pytest.mark.parametrize(
    ("percent", "near"),
    [(7, (5, 10)), (99, (95, 100)), (31, (30, 35)), (1, (5,)), (4, (5,)), (0, (5,)), (101, (100,)), (250, (100,)), (-5, (5,))],
)  # fmt: skip
def test_any_other_percentage_names_its_neighbours(percent, near):
    (problem,) = find_ack_problems(GpuRequirement(memory_mib=GIB, compute_percent=percent), ANY)

    assert neighbours(percent) == near
    assert problem.key == ("accelerator", "gpu", "compute_percent")
    assert str(problem).endswith(f"multiples of 5 from 5 to 100, so give {' or '.join(map(str, near))}")


@pytest.mark.parametrize(
    ("gpu", "override", "expected"),
    [
        (SHARE, None, GpuSharing.CORE_MEM),
        (MEMORY, None, GpuSharing.CGPU),
        (WHOLE, None, GpuSharing.EXCLUSIVE),
        (MEMORY, GpuSharing.CORE_MEM, GpuSharing.CORE_MEM),
        (MEMORY, GpuSharing.EXCLUSIVE, GpuSharing.EXCLUSIVE),
        (MEMORY, GpuSharing.MPS, GpuSharing.MPS),
    ],
)
def test_jobs_with_and_without_a_share_of_compute_are_kept_on_nodes_of_different_modes(gpu, override, expected):
    workload = KubernetesWorkload("trainer", gpu_sharing=override)

    assert sharing_of(gpu, workload) is expected
    assert find_ack_problems(gpu, workload) == ()


@pytest.mark.parametrize("sharing", [each for each in GpuSharing if each is not GpuSharing.CORE_MEM])
def test_a_share_of_compute_needs_nodes_that_isolate_it(sharing):
    (problem,) = find_ack_problems(SHARE, on(sharing))

    text = f"`{sharing}` gives no share of compute: leave `gpu_sharing` out, or leave `compute_percent` out"
    assert problem == Problem(("kubernetes", "gpu_sharing"), text)


@pytest.mark.parametrize("sharing", [each for each in GpuSharing if each is not GpuSharing.EXCLUSIVE])
def test_a_share_needs_memory(sharing):
    (problem,) = find_ack_problems(WHOLE, on(sharing))

    text = f"`gpu_sharing: {sharing}` shares the memory of a GPU: give `memory` too"
    assert problem == Problem(("kubernetes", "gpu_sharing"), text)


def test_whole_gpus_are_not_packed():
    (problem,) = find_ack_problems(WHOLE, KubernetesWorkload("trainer", gpu_placement=GpuPlacement.SPREAD))

    text = "`gpu_placement` is for shares of a GPU: leave it out, or ask for `memory`"
    assert problem == Problem(("kubernetes", "gpu_placement"), text)


@pytest.mark.parametrize("region", ["", *COMPUTE_REGIONS])
def test_regions_with_shares_of_compute(region):
    assert find_ack_problems(SHARE, KubernetesWorkload("trainer", region=region)) == ()


@pytest.mark.parametrize(
    ("region", "hint"),
    [
        ("cn-bejing", "in the region cn-bejing of Alibaba Cloud; did you mean cn-beijing?"),
        ("qq-zzzzzzzzzzzz", "of Alibaba Cloud; it has in cn-beijing, cn-shanghai, "),
    ],
)
def test_other_regions_have_no_shares_of_compute(region, hint):
    workload = KubernetesWorkload("trainer", region=region)
    (problem,) = find_ack_problems(SHARE, workload)

    assert problem.key == ("kubernetes", "region")
    assert hint in str(problem)
    assert find_ack_problems(MEMORY, workload) == ()


@pytest.mark.parametrize(
    ("gpu", "workload", "notices"),
    [
        (SHARE, ANY, []),
        (WHOLE, ANY, []),
        (MEMORY, on(GpuSharing.EXCLUSIVE), ["the memory of whole GPUs cannot be asked for on ACK"]),
        (MEMORY, ANY, ["the job has 2 GiB of each GPU beside others (`gpu_sharing: cgpu`), and no share of its compute"]),
        (MEMORY, on(GpuSharing.CORE_MEM), ["the job has 2 GiB", "`gpu_sharing: core_mem` without `compute_percent`"]),
        (MEMORY, on(GpuSharing.SHARE), ["the job has 2 GiB", "`gpu_sharing: share` keeps no limit"]),
    ],
)  # fmt: skip
def test_what_the_owner_should_know_is_said(gpu, workload, notices):
    said = ask_ack_gpus(gpu, workload).notices

    assert len(said) == len(notices)
    assert all(each.startswith(beginning) for each, beginning in zip(said, notices, strict=True))
