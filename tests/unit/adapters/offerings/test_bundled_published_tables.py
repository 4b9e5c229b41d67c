"""The catalogue compared with tables published by AWS."""

import json
from datetime import date
from pathlib import Path

import pytest

from relaunch.adapters.offerings import bundled
from relaunch.adapters.offerings.bundled import load_catalogue, load_peaks

# "Working with GPUs on Amazon ECS" (2020): GPUs, GiB of all of them, vCPUs, GiB of memory.
GPU_TABLE = {
    "p2.xlarge": (1, 12, 4, 61),
    "p2.8xlarge": (8, 96, 32, 488),
    "p2.16xlarge": (16, 192, 64, 732),
    "p3.2xlarge": (1, 16, 8, 61),
    "p3.8xlarge": (4, 64, 32, 244),
    "p3.16xlarge": (8, 128, 64, 488),
    "p3dn.24xlarge": (8, 256, 96, 768),
    "g3s.xlarge": (1, 8, 4, 30.5),
    "g3.4xlarge": (1, 8, 16, 122),
    "g3.8xlarge": (2, 16, 32, 244),
    "g3.16xlarge": (4, 32, 64, 488),
    "g4dn.xlarge": (1, 16, 4, 16),
    "g4dn.2xlarge": (1, 16, 8, 32),
    "g4dn.4xlarge": (1, 16, 16, 64),
    "g4dn.8xlarge": (1, 16, 32, 128),
    "g4dn.12xlarge": (4, 64, 48, 192),
    "g4dn.16xlarge": (1, 16, 64, 256),
}
# "Amazon ECS task definitions for AWS Neuron machine learning workloads": vCPUs, GiB of memory, chips.
NEURON_TABLE = {
    "trn1.2xlarge": (8, 32, 1),
    "trn1.32xlarge": (128, 512, 16),
    "inf1.xlarge": (4, 8, 1),
    "inf1.2xlarge": (8, 16, 1),
    "inf1.6xlarge": (24, 48, 4),
    "inf1.24xlarge": (96, 192, 16),
    "inf2.24xlarge": (96, 384, 6),
    "inf2.48xlarge": (192, 768, 12),
}


@pytest.mark.parametrize("name", GPU_TABLE)
def test_gpu_types_are_as_the_developer_guide_lists_them(name: str) -> None:
    row = load_catalogue()[name]

    gib_of_all = row.gpu_count * row.gpu_memory_mib / 1024
    assert GPU_TABLE[name] == (row.gpu_count, gib_of_all, row.vcpus, row.memory_mib / 1024)


@pytest.mark.parametrize("name", NEURON_TABLE)
def test_neuron_types_are_as_the_developer_guide_lists_them(name: str) -> None:
    row = load_catalogue()[name]

    assert NEURON_TABLE[name] == (row.vcpus, row.memory_mib / 1024, row.neuron_devices)


@pytest.mark.parametrize(
    ("name", "listed", "described"),
    [("inf2.xlarge", (8, 16, 1), (4, 16, 1)), ("inf2.8xlarge", (32, 64, 1), (32, 128, 1))],
)
def test_where_the_developer_guide_errs_ec2_is_believed(
    name: str, listed: tuple[int, int, int], described: tuple[int, int, int]
) -> None:
    # DescribeInstanceTypes says 4 vCPUs of inf2.xlarge where the guide says 8, and 128 GiB of inf2.8xlarge where it
    # says 64; karpenter and the Kubernetes autoscaler have EC2's figures too.
    row = load_catalogue()[name]

    assert (row.vcpus, row.memory_mib / 1024, row.neuron_devices) == described != listed


@pytest.mark.parametrize(
    ("family", "of_chip", "seen"), [("inf1", 4, 4), ("inf2", 2, 2), ("trn1", 2, 2), ("trn2", 8, 4), ("trn3", 8, 4)]
)
def test_chips_have_the_cores_that_their_pages_say_and_show_half_of_them_from_trainium2_on(
    family: str, of_chip: int, seen: int
) -> None:
    rows = [row for name, row in load_catalogue().items() if name.startswith(f"{family}.")]

    assert {(row.neuron_cores_per_device, row.logical_cores_per_device) for row in rows} == {(of_chip, seen)}


def test_every_model_has_published_peaks_or_a_reason_why_not() -> None:
    table = json.loads((Path(bundled.__file__).parent / "data/accelerator_peaks.json").read_bytes())
    models = {row.accelerator_model for row in load_catalogue().values()}

    assert sorted([*table["models"], *table["unknown"]]) == sorted(models)
    assert all(source and "https://" in read_at for *_, source, read_at, _ in table["models"].values())
    assert all(date.fromisoformat(read_on) for *_, read_on in table["models"].values())
    assert all(table["unknown"].values())
    assert set(load_peaks()) == set(table["models"])
    older = {row.accelerator_model for row in load_catalogue().values() if (row.compute_capability or (8, 0)) < (8, 0)}
    assert {model for model, peaks in load_peaks().items() if not peaks.has_bf16} == older & set(load_peaks())
    for peaks in load_peaks().values():
        ranges = (peaks.tensor_tflops or peaks.fp32_tflops, peaks.fp32_tflops, peaks.memory_gb_per_second)
        assert all(0 < least <= most for least, most in ranges)
