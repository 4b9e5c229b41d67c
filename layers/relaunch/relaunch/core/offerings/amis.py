"""The AMIs that ECS recommends for accelerated instance types, and the SSM parameters that contain their IDs.

Sources: "Retrieving Amazon ECS-optimized Linux AMI metadata", "Amazon ECS-optimized Linux AMIs" and "Amazon ECS task
definitions for AWS Neuron machine learning workloads" (ECS Developer Guide), "Use a GPU workload AMI" (AWS Batch User
Guide), "Retrieving an Amazon ECS-optimized Bottlerocket AMI" (ECS Developer Guide).
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from relaunch.core.offerings.instance_types import InstanceType

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
