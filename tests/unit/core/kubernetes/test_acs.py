"""GPUs on ACS: each rule of the documents on compute classes, models, drivers and shares of reserved GPUs."""

# ruff: noqa: E501 - one case a line, with the whole message

from dataclasses import replace

import pytest

from relaunch.core.definitions.accelerator import GpuRequirement, PurchaseOption
from relaunch.core.definitions.kubernetes_workload import ComputeClass, KubernetesWorkload
from relaunch.core.kubernetes.acs import EXTRA_STORAGE, ask_acs_gpus, ask_storage, find_acs_problems
from relaunch.core.kubernetes.pod_gpus import PodGpus

GIB = 1024
WHOLE = GpuRequirement()
SHARE = GpuRequirement(memory_mib=24 * GIB, compute_percent=33)
T4 = KubernetesWorkload("trainer", vcpus=4, memory_mib=16 * GIB, gpu_model="T4", gpu_driver="535.161.08")
RESERVED = replace(T4, compute_class=ComputeClass.GPU_HPN, gpu_model="P16EN", gpu_driver="1.5.0")
SHARED = replace(RESERVED, gpu_driver="", card_memory_mib=96 * GIB)
SPOT, ON_DEMAND = PurchaseOption.SPOT, PurchaseOption.ON_DEMAND

PREFIX = "alibabacloud.com/"
T4_LABELS = {
    "alibabacloud.com/compute-class": "gpu",
    "alibabacloud.com/gpu-model-series": "T4",
    "alibabacloud.com/gpu-driver-version": "535.161.08",
}


@pytest.mark.parametrize(
    ("gpu", "workload", "purchase", "expected"),
    [
        pytest.param(
            GpuRequirement(2),
            T4,
            ON_DEMAND,
            PodGpus({"nvidia.com/gpu": 2}, T4_LABELS, has_requests=True),
            id="class gpu: model and driver by labels of the pod",
        ),
        pytest.param(
            WHOLE,
            replace(T4, gpu_driver=""),
            ON_DEMAND,
            PodGpus(
                {"nvidia.com/gpu": 1},
                {f"{PREFIX}compute-class": "gpu", f"{PREFIX}gpu-model-series": "T4"},
                has_requests=True,
            ),
            id="without a driver ACS chooses its default",
        ),
        pytest.param(
            WHOLE,
            T4,
            SPOT,
            PodGpus({"nvidia.com/gpu": 1}, {**T4_LABELS, f"{PREFIX}compute-qos": "best-effort"}, has_requests=True),
            id="spot is best-effort",
        ),
        pytest.param(
            WHOLE,
            RESERVED,
            ON_DEMAND,
            PodGpus(
                {"nvidia.com/gpu": 1},
                {f"{PREFIX}compute-class": "gpu-hpn", f"{PREFIX}gpu-driver-version": "1.5.0"},
                {f"{PREFIX}gpu-model-series": "P16EN"},
                has_requests=True,
            ),
            id="class gpu-hpn: model by the labels of nodes, driver by a label of the pod",
        ),
        pytest.param(
            WHOLE,
            replace(RESERVED, gpu_model="", gpu_driver=""),
            SPOT,
            PodGpus({"nvidia.com/gpu": 1}, {f"{PREFIX}compute-class": "gpu-hpn"}, has_requests=True),
            id="class gpu-hpn: any reserved node, and never best-effort",
        ),
        pytest.param(
            SHARE,
            SHARED,
            ON_DEMAND,
            PodGpus(
                {f"{PREFIX}gpu-memory.percentage": 25, f"{PREFIX}gpu-core.percentage": 33},
                {f"{PREFIX}compute-class": "gpu-hpn"},
                {f"{PREFIX}gpu-model-series": "P16EN"},
                has_requests=True,
            ),
            id="a share of a reserved GPU, in percent and without a driver",
        ),
    ],
)
def test_a_pod_asks_for(gpu, workload, purchase, expected):
    assert find_acs_problems(gpu, workload) == ()
    assert ask_acs_gpus(gpu, workload, purchase) == expected


def test_a_share_is_rounded_up_to_a_whole_percent_and_said_so():
    asked = ask_acs_gpus(GpuRequirement(memory_mib=1000, compute_percent=7), SHARED, ON_DEMAND)

    assert asked.resources == {f"{PREFIX}gpu-memory.percentage": 2, f"{PREFIX}gpu-core.percentage": 7}
    text = "ACS shares GPU memory in whole percent: 1,000 of 98,304 MiB are rounded up to 2 %"
    assert asked.notices == (text,)


@pytest.mark.parametrize(("count", "is_said"), [(1, False), (3, True), (8, False), (12, True), (16, False)])
def test_a_number_of_gpus_that_no_partition_has_is_said(count, is_said):
    text = f"nodes of class gpu-hpn are divided into 1, 2, 4, 8, 16 GPUs: a pod that asks for {count} may wait for ever"

    assert ask_acs_gpus(GpuRequirement(count=count), RESERVED, ON_DEMAND).notices == ((text,) if is_said else ())
    assert ask_acs_gpus(GpuRequirement(count=count), T4, ON_DEMAND).notices == ()


@pytest.mark.parametrize("driver", ["535.161.08", "580.95.05-open", "1.5.0", "570.133.20", "525.105.17"])
def test_drivers_of_all_makers_are_taken(driver):
    assert find_acs_problems(WHOLE, replace(T4, gpu_driver=driver)) == ()


@pytest.mark.parametrize(
    ("gpu", "workload", "problems"),
    [
        (WHOLE, replace(T4, vcpus=None), {"kubernetes.vcpus": "`vcpus` is missing: ACS sizes a pod by its requests"}),
        (WHOLE, replace(T4, memory_mib=None), {"kubernetes.memory": "`memory` is missing: ACS sizes a pod by its requests"}),
        (WHOLE, replace(T4, gpu_driver="latest"), {"kubernetes.gpu_driver": "`latest` is not a driver version: write it like 535.161.08"}),
        (WHOLE, replace(T4, gpu_model=""), {"kubernetes.gpu_model": "`gpu_model` is missing: ACS needs the model of the GPU, such as T4"}),
        (SHARE, T4, {"accelerator.gpu.compute_percent": "compute class gpu of ACS has whole GPUs only: leave it out, or set `compute_class` to gpu-hpn"}),
        (SHARE, replace(SHARED, card_memory_mib=None), {"kubernetes.card_memory": "`card_memory` is missing: ACS shares a GPU in percent of the memory of a whole one"}),
        (SHARE, replace(SHARED, gpu_driver="1.5.0"), {"kubernetes.gpu_driver": "a pod with a share of a GPU takes the driver of its node: leave `gpu_driver` out"}),
        (SHARE, replace(SHARED, card_memory_mib=23 * GIB), {"accelerator.gpu.memory": "24,576 MiB are asked for, and a card has 23,552 (`card_memory`)"}),
        (GpuRequirement(memory_mib=16 * GIB), replace(T4, card_memory_mib=16 * GIB), {}),
    ],
)  # fmt: skip
def test_what_acs_would_refuse_or_misread_is_refused(gpu, workload, problems):
    assert {".".join(each.key): str(each) for each in find_acs_problems(gpu, workload)} == problems


@pytest.mark.parametrize(
    ("disk_mib", "extra"), [(None, None), (30 * 1024, None), (30 * 1024 + 1, "1Gi"), (100 * 1024, "70Gi")]
)
def test_a_pod_asks_for_what_it_needs_beyond_the_disk_that_every_pod_has(disk_mib, extra):
    assert ask_storage(disk_mib).get(EXTRA_STORAGE) == extra
