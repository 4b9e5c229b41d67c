"""Instance types, their accelerators, and the AMIs that ECS recommends for them.

Sources: "Retrieving Amazon ECS-optimized Linux AMI metadata", "Amazon ECS-optimized Linux AMIs" and "Amazon ECS task
definitions for AWS Neuron machine learning workloads" (ECS Developer Guide), "Use a GPU workload AMI" (AWS Batch User
Guide), "Retrieving an Amazon ECS-optimized Bottlerocket AMI" (ECS Developer Guide).
"""

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from itertools import takewhile

from relaunch.core.records import dataclass

NVIDIA = "NVIDIA"
AWS_NEURON = "AWS"
_CORE_VERSION_OF_TRAINIUM2 = 3


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
        """Return the number of physical NeuronCores of all devices, which programs see at most."""
        return self.neuron_devices * self.neuron_cores_per_device

    @property
    def logical_cores_per_device(self) -> int:
        """Return the number of NeuronCores of a device that programs see, unless they set NEURON_LOGICAL_NC_CONFIG.

        From Trainium2 on (NeuronCore-v3) two are one by default. Source: "Logical NeuronCore configuration" (AWS Neuron
        documentation).
        """
        return self.neuron_cores_per_device // (2 if self.neuron_core_version >= _CORE_VERSION_OF_TRAINIUM2 else 1)

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


_LONGEST_NAME = 100


def nearest_names(name: str, known: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """Return the known names that are most similar to `name`, at most `limit`, the most similar first.

    Case, spaces, dots, dashes and underscores are ignored. Similar names have an edit distance of at most a third of
    the longer name; where there are none, those that are a part of the other one are returned. Nothing is similar to a
    name that is longer than any.
    """
    if len(name) > _LONGEST_NAME:
        return ()
    wanted = _letters(name)
    ranked = []
    for candidate, letters in _spelled(frozenset(known)):
        allowed = max(len(wanted), len(letters)) // 3
        is_part = min(len(wanted), len(letters)) > 1 and (letters in wanted or wanted in letters)
        # The distance is at least the difference of the lengths, and is counted where that says too little.
        if abs(len(wanted) - len(letters)) > allowed and not is_part:
            continue
        longest = max(len(wanted), len(letters))
        distance = _edit_distance(wanted, letters, longest if is_part else allowed)
        if distance <= allowed or is_part:
            ranked.append((distance > allowed, distance, candidate))
    ranked.sort()
    return tuple(candidate for is_far, _, candidate in ranked[:limit] if is_far == ranked[0][0])


@lru_cache(maxsize=32)
def _spelled(known: frozenset[str]) -> tuple[tuple[str, str], ...]:
    return tuple((candidate, _letters(candidate)) for candidate in sorted(known))


def _letters(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _edit_distance(left: str, right: str, most: int) -> int:
    """Return the least number of insertions, deletions and replacements of letters, and of exchanges of neighbours.

    No letter is changed twice (optimal string alignment). A number above `most` says only that it is above.
    """
    # What both begin and end with costs nothing: of most names of instance types little else is left.
    begin = _alike(left, right)
    end = _alike(left[begin:][::-1], right[begin:][::-1])
    left = left[begin : len(left) - end]
    right = right[begin : len(right) - end]
    before: list[int] = []
    previous = list(range(len(right) + 1))
    for row, letter in enumerate(left, start=1):
        current = [row]
        for column, other in enumerate(right, start=1):
            least = (
                previous[column - 1] if letter == other else 1 + min(previous[column - 1 : column + 1] + current[-1:])
            )
            if row > 1 and column > 1 and letter == right[column - 2] and other == left[row - 2]:
                least = min(least, before[column - 2] + 1)
            current.append(least)
        # No later number is less than the least of two rows.
        if min(current) > most and min(previous) > most:
            return most + 1
        before = previous
        previous = current
    return previous[-1]


def _alike(left: str, right: str) -> int:
    """Return how many letters two words begin with that are the same."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))


_PREFIX = "/aws/service/ecs/optimized-ami"
# Regions with Neuron AMIs of both operating systems, according to the ECS Developer Guide.
NEURON_REGIONS = frozenset(
    {
        "ap-northeast-1",
        "ap-northeast-2",
        "ap-northeast-3",
        "ap-south-1",
        "ap-southeast-1",
        "ap-southeast-2",
        "ca-central-1",
        "eu-central-1",
        "eu-north-1",
        "eu-west-1",
        "eu-west-2",
        "eu-west-3",
        "sa-east-1",
        "us-east-1",
        "us-east-2",
        "us-west-1",
        "us-west-2",
    }
)
BOTTLEROCKET_ARM64 = "/aws/service/bottlerocket/aws-ecs-2-nvidia/arm64/latest/image_id"
"""The SSM parameter of the one GPU image for arm64 that works with ECS."""
_REGION = re.compile(r"[a-z]+(?:-[a-z]+)+-[0-9]+")
# Their GPUs need driver branch 470 or older.
_OLD_GPU_FAMILIES = frozenset({"g2", "p2"})
# Branch 595 or newer ("Using G7 instances", awslabs/amazon-eks-ami), and ECS's images are pinned to 580
# (`nvidia_driver_major_al2023` in variables.pkr.hcl, aws/amazon-ecs-ami, August 2026).
_NEW_GPU_FAMILIES = frozenset({"g7"})


class AmiKind(StrEnum):
    """The accelerators that an AMI has drivers for."""

    GPU = "gpu"
    NEURON = "neuron"


class AmiSystem(StrEnum):
    """The operating system of an AMI, newest first."""

    AMAZON_LINUX_2023 = "amazon-linux-2023"
    AMAZON_LINUX_2 = "amazon-linux-2"


@dataclass(frozen=True, slots=True)
class Ami:
    """A recommended AMI; fields that are not known are None.

    `parameter` is the public SSM parameter; a launch template can refer to it by `resolve:ssm:<parameter>/image_id`.
    """

    kind: AmiKind
    system: AmiSystem
    region: str
    parameter: str
    image_id: str | None = None
    image_name: str | None = None
    agent_version: str | None = None
    runtime_version: str | None = None
    driver_version: str | None = None


def ami_kind(machine: InstanceType) -> AmiKind | None:
    """Return the kind of AMI that an instance type needs; None for accelerators that jobs cannot use."""
    if not machine.is_supported:
        return None
    return AmiKind.NEURON if machine.neuron_devices else AmiKind.GPU


def ami_parameter(kind: AmiKind, system: AmiSystem) -> str:
    """Return the name of the public SSM parameter of the recommended AMI."""
    is_neuron_on_al2 = kind is AmiKind.NEURON and system is AmiSystem.AMAZON_LINUX_2
    return f"{_PREFIX}/{system}/{'inf' if is_neuron_on_al2 else kind}/recommended"


def ami_rejection(machine: InstanceType) -> str:
    """Return why the recommended AMI does not work on an instance type; empty if nothing is known against it."""
    if ami_kind(machine) is None:
        maker = machine.accelerator_manufacturer
        return f"its accelerator is {maker} {machine.accelerator_model}, which ECS has no image for"
    if machine.name.partition(".")[0] in _OLD_GPU_FAMILIES:
        return (
            f"its {machine.accelerator_model} needs an NVIDIA driver of the 470 branch or older, and ECS's GPU images "
            "have had newer ones since release 20230912: build an image of your own"
        )
    if machine.name.partition(".")[0] in _NEW_GPU_FAMILIES:
        return (
            f"its {machine.accelerator_model} needs an NVIDIA driver of the 595 branch or newer, and ECS's GPU images "
            "had the 580 branch in August 2026: build an image of your own"
        )
    if machine.architecture == "arm64":
        return f"ECS-optimized GPU images are for x86_64 only; for arm64 Bottlerocket has one: {BOTTLEROCKET_ARM64}"
    return ""


def missing_ami(machine: InstanceType, zone: str | None) -> str:
    """Return why no image with ECS is published for a type in a zone; empty if there is one, or if it is not known.

    For GPUs of arm64 there is Bottlerocket's.
    """
    if ami_kind(machine) is AmiKind.NEURON:
        region = _REGION.match(zone or "")
        return ami_absence(AmiKind.NEURON, region[0]) if region and region[0] not in NEURON_REGIONS else ""
    return ami_rejection(machine) if machine.architecture != "arm64" else ""


def ami_absence(kind: AmiKind, region: str) -> str:
    """Return why a region has no such parameter, as far as it is known."""
    if kind is AmiKind.NEURON and region not in NEURON_REGIONS:
        return f"ECS publishes Neuron images in {len(NEURON_REGIONS)} regions, and {region} is none of them"
    return f"SSM has no such parameter in {region}"


def system_notice(system: AmiSystem) -> str:
    """Return a notice about an operating system; empty for the one that ECS recommends."""
    if system is AmiSystem.AMAZON_LINUX_2:
        return "ECS-optimized Amazon Linux 2 reached its end of life on 30 June 2026: it gets no more updates"
    return ""
