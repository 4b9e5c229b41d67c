"""Instance types and their accelerators."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

NVIDIA = "NVIDIA"
AWS_NEURON = "AWS"


@dataclass(frozen=True, slots=True)
class InstanceType:
    """An EC2 instance type with an accelerator.

    Memory is in MiB as reported by DescribeInstanceTypes: a 24 GB A10G reports 22,888. `gpu_memory_mib` and
    `neuron_memory_mib` are per GPU and per device. `gpu_count` counts physical GPUs; a fractional type (g6f) has 0, and
    a `logical_gpu_count` of 1. `compute_capability` is NVIDIA's, None for other manufacturers. `efa_interfaces` is the
    maximum, 0 without EFA support. `has_nvlink` is whether NVLink connects the GPUs. `nvme_gb` is the total size of the
    instance store in GB (NVMe, except on g2). `usage_classes` are EC2's: spot, on-demand, capacity-block; they do not
    mean that there is capacity, and are empty if unknown. A type that AWS has announced and EC2 does not list yet has 0
    vCPUs (`is_listed`). `network` is EC2's description of the network performance. `source` is where the row
    comes from: a package and its version, or the overlay and its reason.
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
    neuron_core_version: int = 0
    neuron_memory_mib: int = 0
    compute_capability: tuple[int, int] | None = None
    has_nvlink: bool = False
    efa_interfaces: int = 0
    nvme_gb: int = 0
    is_bare_metal: bool = False
    usage_classes: tuple[str, ...] = ()
    network: str = ""
    source: str = ""

    @property
    def is_supported(self) -> bool:
        """Return whether jobs can use its accelerator: only NVIDIA GPUs and AWS Neuron devices are supported."""
        return self.accelerator_manufacturer in (NVIDIA, AWS_NEURON)

    @property
    def is_listed(self) -> bool:
        """Return whether EC2 lists the type: vCPUs, memory and architecture of others are unknown."""
        return self.vcpus > 0

    @property
    def is_fractional(self) -> bool:
        """Return whether it has a fraction of a GPU."""
        return self.gpu_partition_size < 1

    @property
    def is_for_inference(self) -> bool:
        """Return whether its accelerator serves inference only."""
        return is_inference_model(self.accelerator_model)

    @property
    def neuron_cores(self) -> int:
        """Return the number of NeuronCores of all devices."""
        return self.neuron_devices * self.neuron_cores_per_device

    @property
    def accelerator_count(self) -> int:
        """Return the number of logical GPUs (a fraction of a GPU counts as one) or of Neuron devices."""
        return self.neuron_devices or self.logical_gpu_count

    @property
    def accelerator_memory_mib(self) -> int:
        """Return the memory of one GPU or device."""
        return self.neuron_memory_mib or self.gpu_memory_mib


def known_models(catalogue: Mapping[str, InstanceType]) -> tuple[str, ...]:
    """Return the GPU models that a definition may name, sorted."""
    gpus = (row for row in catalogue.values() if row.is_supported and row.logical_gpu_count)
    return tuple(sorted({row.accelerator_model for row in gpus}))


def known_neuron_models(catalogue: Mapping[str, InstanceType]) -> tuple[str, ...]:
    """Return the models of Neuron devices that a definition may name, sorted."""
    return tuple(sorted({row.accelerator_model for row in catalogue.values() if row.neuron_devices}))


def is_inference_model(model: str) -> bool:
    """Return whether an accelerator model serves inference only.

    Source: "PyTorch Neuron" (AWS Neuron documentation), which has training for Trn instances only.
    """
    return model.startswith("Inferentia")


def is_same_name(left: str, right: str) -> bool:
    """Return whether two names are equal, ignoring case, spaces, dots, dashes and underscores."""
    return left == right or _letters(left) == _letters(right)


def nearest_names(name: str, known: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """Return the known names that are most similar to `name`, at most `limit`, the most similar first.

    Case, spaces, dots, dashes and underscores are ignored. Similar names have an edit distance of at most a third of
    the longer name, or one contains the other.
    """
    wanted = _letters(name)
    ranked = []
    for candidate in sorted(set(known)):
        letters = _letters(candidate)
        distance = _edit_distance(wanted, letters)
        is_part = min(len(wanted), len(letters)) > 1 and (letters in wanted or wanted in letters)
        if distance <= max(len(wanted), len(letters)) // 3 or is_part:
            ranked.append((distance, candidate))
    return tuple(candidate for _, candidate in sorted(ranked)[:limit])


def _letters(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _edit_distance(left: str, right: str) -> int:
    """Return the Levenshtein distance: the least number of insertions, deletions and replacements of letters."""
    previous = list(range(len(right) + 1))
    for row, letter in enumerate(left, start=1):
        current = [row]
        for column, other in enumerate(right, start=1):
            replaced = previous[column - 1] + (letter != other)
            current.append(min(replaced, previous[column] + 1, current[-1] + 1))
        previous = current
    return previous[-1]
