"""Instance types and what they carry."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InstanceType:
    """One EC2 instance type with an accelerator.

    Memory is in MiB as DescribeInstanceTypes reports it: a 24 GiB A10G reports 22,888.
    `gpu_count` counts physical GPUs; a fractional type (g6f) has 0 and `logical_gpu_count` 1.
    `source` says where the row comes from (package and version, or the overlay and its reason).
    """

    name: str
    vcpus: int
    memory_mib: int
    architecture: str
    accelerator_manufacturer: str
    accelerator_model: str
    gpu_count: int = 0
    logical_gpu_count: int = 0
    gpu_partition_size: float = 1.0
    gpu_memory_mib: int = 0
    neuron_devices: int = 0
    neuron_cores_per_device: int = 0
    neuron_memory_mib: int = 0
    source: str = ""
