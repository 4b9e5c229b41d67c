"""Instance types and what they carry."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

NVIDIA = "NVIDIA"
AWS_NEURON = "AWS"


@dataclass(frozen=True, slots=True)
class InstanceType:
    """One EC2 instance type with an accelerator.

    Memory is in MiB as DescribeInstanceTypes reports it: a 24 GB A10G reports 22,888. `gpu_memory_mib` and
    `neuron_memory_mib` are per card and per device.
    `gpu_count` counts physical GPUs; a fractional type (g6f) has 0 and `logical_gpu_count` 1.
    `compute_capability` is NVIDIA's, None for everything else. `efa_interfaces` is the most a machine can have, 0 where
    EFA is not supported. `has_nvlink` says that its GPUs see each other over NVLink. `nvme_gb` is the size of its local
    disks in GB, together; they are NVMe but for g2. `usage_classes` are EC2's words: spot, on-demand, capacity-block;
    they say what is allowed, not what is to be had. `network` is EC2's text.
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
        """Tell whether jobs can run on it: NVIDIA GPUs and AWS Neuron devices only."""
        return self.accelerator_manufacturer in (NVIDIA, AWS_NEURON)

    @property
    def is_fractional(self) -> bool:
        """Tell whether it has a part of a GPU instead of whole ones."""
        return self.gpu_partition_size < 1

    @property
    def neuron_cores(self) -> int:
        """Return the NeuronCores of all its devices."""
        return self.neuron_devices * self.neuron_cores_per_device

    @property
    def accelerator_count(self) -> int:
        """Return its GPUs (logical ones, so that a part of one counts as one) or Neuron devices."""
        return self.neuron_devices or self.logical_gpu_count

    @property
    def accelerator_memory_mib(self) -> int:
        """Return the memory of one card or device."""
        return self.neuron_memory_mib or self.gpu_memory_mib


def known_models(catalogue: Mapping[str, InstanceType]) -> tuple[str, ...]:
    """Return the models a definition's `gpu.model` may name, sorted."""
    gpus = (row for row in catalogue.values() if row.is_supported and row.logical_gpu_count)
    return tuple(sorted({row.accelerator_model for row in gpus}))


def is_same_name(left: str, right: str) -> bool:
    """Tell whether two names are the same but for case, spaces, dots, dashes and underscores."""
    return left == right or _letters(left) == _letters(right)


def nearest_names(name: str, known: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """Name the known names that `name` may have been meant to be, nearest first, at most `limit`.

    For instance types (`nearest_names("g5xlarge", catalogue)`), models (`known_models`) and any other words.
    Upper and lower case, spaces, dots, dashes and underscores do not count. Empty when nothing is near.
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
    """Count the insertions, deletions and replacements that turn one word into the other (Levenshtein)."""
    previous = list(range(len(right) + 1))
    for row, letter in enumerate(left, start=1):
        current = [row]
        for column, other in enumerate(right, start=1):
            replaced = previous[column - 1] + (letter != other)
            current.append(min(replaced, previous[column] + 1, current[-1] + 1))
        previous = current
    return previous[-1]
