"""Accelerated instance types and their zones (DescribeInstanceTypes and …Offerings, EC2 API Reference)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from relaunch.adapters.aws.errors import aws_errors, readable_answer
from relaunch.core.offerings.instance_types import AWS_NEURON, InstanceType
from relaunch.ports import DecisionLog

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client


# The maximum of DescribeInstanceTypes.
_PAGE_SIZE = 100


class UnreadableTypeError(ValueError):
    """A type cannot be represented in the catalogue; the message contains its name and the reason."""


class Ec2InstanceTypes:
    """Implements InstanceTypeSource; reads all types, because EC2 has no filter for accelerators."""

    def __init__(self, client: "EC2Client", log: DecisionLog) -> None:
        self._client = client
        self._log = log

    def instance_types(self) -> Mapping[str, InstanceType]:
        found: dict[str, InstanceType] = {}
        doing = "asking EC2 for its instance types"
        with aws_errors(doing), readable_answer(doing):
            pages = self._client.get_paginator("describe_instance_types").paginate(
                PaginationConfig={"PageSize": _PAGE_SIZE}
            )
            for page in pages:
                for described in page["InstanceTypes"]:
                    row = self._read(described["InstanceType"], described)
                    if row is not None:
                        found[row.name] = row
        return found

    def _read(self, name: str, described: Mapping[str, Any]) -> InstanceType | None:
        try:
            return read_type(name, described, "EC2")
        except (UnreadableTypeError, LookupError, TypeError, AttributeError) as error:
            self._log.decided("instance-type-left-out", instance_type=name, reason=f"{type(error).__name__}: {error}")
            return None


def read_type(name: str, described: Mapping[str, Any], source: str) -> InstanceType | None:
    """Parse a described type; return None if it has no GPU, Neuron device or inference accelerator.

    Inferentia types have NeuronInfo and InferenceAcceleratorInfo for the same devices, of which the first is used.

    Raises:
        UnreadableTypeError: several kinds of accelerators, or Inferentia without NeuronInfo.
    """
    facts = _read_neuron(name, described) or _read_gpu(name, described) or _read_inference(name, described)
    if facts is None:
        return None
    network = described["NetworkInfo"]
    return InstanceType(
        name=name,
        vcpus=described["VCpuInfo"]["DefaultVCpus"],
        memory_mib=described["MemoryInfo"]["SizeInMiB"],
        architecture="arm64" if "arm64" in described["ProcessorInfo"]["SupportedArchitectures"] else "x86_64",
        efa_interfaces=network.get("EfaInfo", {}).get("MaximumEfaInterfaces", int(network["EfaSupported"])),
        nvme_gb=described.get("InstanceStorageInfo", {}).get("TotalSizeInGB", 0),
        is_bare_metal=described["BareMetal"],
        usage_classes=tuple(sorted(described["SupportedUsageClasses"])),
        network=network["NetworkPerformance"],
        source=source,
        **facts,
    )


def _read_neuron(name: str, described: Mapping[str, Any]) -> dict[str, Any] | None:
    device = _only_one(name, described.get("NeuronInfo", {}).get("NeuronDevices", ()))
    if device is None:
        return None
    return {
        "accelerator_manufacturer": AWS_NEURON,
        "accelerator_model": device["Name"],
        "neuron_devices": device["Count"],
        "neuron_cores_per_device": device["CoreInfo"]["Count"],
        "neuron_core_version": device["CoreInfo"]["Version"],
        "neuron_memory_mib": device["MemoryInfo"]["SizeInMiB"],
    }


def _read_gpu(name: str, described: Mapping[str, Any]) -> dict[str, Any] | None:
    """Parse GpuInfo; older responses have neither LogicalGpuCount nor GpuPartitionSize."""
    gpu = _only_one(name, described.get("GpuInfo", {}).get("Gpus", ()))
    if gpu is None:
        return None
    return {
        "accelerator_manufacturer": gpu["Manufacturer"],
        "accelerator_model": gpu["Name"],
        "gpu_count": gpu["Count"],
        "logical_gpu_count": gpu.get("LogicalGpuCount", gpu["Count"]),
        "gpu_partition_size": gpu.get("GpuPartitionSize", 1.0),
        "gpu_memory_mib": gpu["MemoryInfo"]["SizeInMiB"],
    }


def _read_inference(name: str, described: Mapping[str, Any]) -> dict[str, Any] | None:
    """Parse accelerators that jobs cannot use, so that a selection can reject them with a reason."""
    accelerator = _only_one(name, described.get("InferenceAcceleratorInfo", {}).get("Accelerators", ()))
    if accelerator is None:
        return None
    manufacturer = accelerator["Manufacturer"]
    if manufacturer == AWS_NEURON:
        raise UnreadableTypeError(f"{name}: no NeuronInfo, so its cores are not known; newer answers have it")
    return {
        "accelerator_manufacturer": manufacturer,
        "accelerator_model": accelerator["Name"].removeprefix(manufacturer).strip(),
    }


def _only_one(name: str, entries: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    if len(entries) > 1:
        raise UnreadableTypeError(f"{name} has {len(entries)} kinds of accelerator; the catalogue's form holds one")
    return entries[0] if entries else None


# The maximum of DescribeInstanceTypeOfferings.
_OFFERINGS_PAGE_SIZE = 1000


class Ec2InstanceTypeOfferings:
    """Implements ZoneSource; zone names are those of the caller's account."""

    def __init__(self, client: "EC2Client") -> None:
        self._client = client

    def zones(self, instance_types: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
        wanted = frozenset(instance_types)
        found: dict[str, list[str]] = defaultdict(list)
        doing = "asking EC2 for the zones of instance types"
        with aws_errors(doing), readable_answer(doing):
            # All types are read: a filter takes at most 200 values.
            pages = self._client.get_paginator("describe_instance_type_offerings").paginate(
                LocationType="availability-zone", PaginationConfig={"PageSize": _OFFERINGS_PAGE_SIZE}
            )
            for page in pages:
                for offering in page["InstanceTypeOfferings"]:
                    if offering["InstanceType"] in wanted:
                        found[offering["InstanceType"]].append(offering["Location"])
        return {name: tuple(sorted(zones)) for name, zones in sorted(found.items())}
