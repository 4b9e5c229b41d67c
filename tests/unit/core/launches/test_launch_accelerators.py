import pytest

from relaunch.core.definitions.accelerator import GpuRequirement
from relaunch.core.launches.launch import GpuPartition, GpuShare, WholeGpus, choose_gpus


@pytest.mark.parametrize(
    ("gpu", "partition_size", "chosen"),
    [
        pytest.param(None, 0.25, None, id="as the revision asks"),
        pytest.param(GpuRequirement(count=4), 1.0, WholeGpus(4), id="whole GPUs"),
        pytest.param(GpuRequirement(memory_mib=2_048, compute_percent=25), 1.0, GpuShare(2_048, 25), id="a share"),
        pytest.param(GpuRequirement(memory_mib=2_048, compute_percent=25), 0.25, GpuPartition(0.25), id="a part"),
        pytest.param(GpuRequirement(compute_percent=30), 1.0, GpuShare(0, 30), id="no memory, which is refused"),
        pytest.param(GpuRequirement(memory_mib=9, compute_percent=0), 1.0, GpuShare(9, 0), id="no compute"),
    ],
)
def test_gpus_are_chosen_as_the_type_has_them(gpu, partition_size, chosen):
    assert choose_gpus(gpu, partition_size) == chosen
