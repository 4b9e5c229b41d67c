"""The machine images that ECS recommends for instance types with accelerators, and which parameter names them.

Sources: "Retrieving Amazon ECS-optimized Linux AMI metadata", "Amazon ECS-optimized Linux AMIs" and "Amazon ECS task
definitions for AWS Neuron machine learning workloads" (ECS Developer Guide), "Use a GPU workload AMI" (AWS Batch User
Guide).
"""

from dataclasses import dataclass
from enum import StrEnum

from relaunch.core.offerings.instance_types import InstanceType

_PREFIX = "/aws/service/ecs/optimized-ami"
# Where the ECS Developer Guide says that there are Neuron images, of both systems.
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
_AGED_FAMILIES = frozenset({"g2", "p2"})


class AmiKind(StrEnum):
    """What an image has drivers for."""

    GPU = "gpu"
    NEURON = "neuron"


class AmiSystem(StrEnum):
    """The operating system; the newer one comes first."""

    AMAZON_LINUX_2023 = "amazon-linux-2023"
    AMAZON_LINUX_2 = "amazon-linux-2"


@dataclass(frozen=True, slots=True)
class Ami:
    """A recommended image: None is what is not known.

    `parameter` is the public SSM parameter that names it; a launch template takes `resolve:ssm:<parameter>/image_id`.
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
    """Return the kind of image that a type needs; None for accelerators that jobs cannot use."""
    if not machine.is_supported:
        return None
    return AmiKind.NEURON if machine.neuron_devices else AmiKind.GPU


def ami_parameter(kind: AmiKind, system: AmiSystem) -> str:
    """Return the name of the public SSM parameter with the recommended image."""
    is_old_neuron = kind is AmiKind.NEURON and system is AmiSystem.AMAZON_LINUX_2
    return f"{_PREFIX}/{system}/{'inf' if is_old_neuron else kind}/recommended"


def ami_rejection(machine: InstanceType) -> str:
    """Say why the recommended images do not run on a type; empty when nothing is known against them."""
    if ami_kind(machine) is None:
        maker = machine.accelerator_manufacturer
        return f"its accelerator is {maker} {machine.accelerator_model}, which ECS has no image for"
    if machine.name.partition(".")[0] in _AGED_FAMILIES:
        return (
            f"its {machine.accelerator_model} needs an NVIDIA driver of the 470 branch or older, and ECS's GPU images "
            "have had newer ones since release 20230912: build an image of your own"
        )
    if machine.architecture == "arm64":
        return "ECS has parameters for GPU images of x86_64 only: build an image of your own"
    return ""


def ami_absence(kind: AmiKind, region: str) -> str:
    """Say what is known of a region in which a parameter is not found."""
    if kind is AmiKind.NEURON and region not in NEURON_REGIONS:
        return f"ECS publishes Neuron images in {len(NEURON_REGIONS)} regions, and {region} is none of them"
    return f"SSM has no such parameter in {region}"


def system_notice(system: AmiSystem) -> str:
    """Say what should be known of a system; empty for the one that ECS recommends."""
    if system is AmiSystem.AMAZON_LINUX_2:
        return "ECS-optimized Amazon Linux 2 reached its end of life on 30 June 2026: it gets no more updates"
    return ""
