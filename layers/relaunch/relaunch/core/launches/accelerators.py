"""The accelerators that a launch asks a target for."""

from dataclasses import dataclass

from relaunch.core.definitions.accelerator import GpuRequirement


@dataclass(frozen=True, slots=True)
class WholeGpus:
    """A number of whole GPUs for the container alone."""

    count: int


@dataclass(frozen=True, slots=True)
class GpuPartition:
    """The fraction of a GPU of a fractional instance type (g6f, gr6f), above 0 and below 1."""

    size: float


@dataclass(frozen=True, slots=True)
class GpuShare:
    """A share of a GPU: memory in MiB, and a limit on compute in percent, which is not reserved."""

    memory_mib: int
    max_compute_percent: int


@dataclass(frozen=True, slots=True)
class NeuronDevices:
    """Neuron devices of the node by their zero-based indices, which the revision lists."""

    indices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AllNeuronDevices:
    """All Neuron devices of the node, which the target assigns."""


Accelerators = WholeGpus | GpuPartition | GpuShare | NeuronDevices | AllNeuronDevices


def choose_gpus(gpu: GpuRequirement | None, partition_size: float) -> WholeGpus | GpuPartition | GpuShare | None:
    """Return what to ask for to have the definition's GPUs; None to keep the requirement of the revision.

    `partition_size` is that of the chosen instance type: 1 for whole GPUs.
    """
    if gpu is None:
        return None
    if not gpu.is_share:
        return WholeGpus(gpu.count)
    if partition_size < 1:
        return GpuPartition(partition_size)
    return GpuShare(gpu.memory_mib or 0, gpu.compute_percent or 0)
