"""Filters on instance types: whether a type satisfies the requirements of a job. Their rejections are permanent.

A task definition's own placement constraints are evaluated before there is an instance. An instance of an offering has
the offering's type, zone and architecture, runs Linux, and its agent is connected before a task is placed. Everything
else is known only once the instance has registered: its image, subnet, agent, custom attributes and tasks.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from types import MappingProxyType

from relaunch.core.definitions.accelerator import Interconnect
from relaunch.core.offerings.instance_types import InstanceType, is_same_name
from relaunch.core.offerings.offering import Offering
from relaunch.core.revisions.revision import DEFAULT_ARCHITECTURE
from relaunch.core.selection.gpu_share import find_share_rejection
from relaunch.core.selection.rejection import Rejection
from relaunch.core.selection.requirements import GPU_MEMORY_TOLERANCE, Requirements, usable_memory_mib
from relaunch.core.task_definitions.query_language import (
    UNKNOWN,
    ExpressionError,
    Lookup,
    Unknown,
    Value,
    parse_expression,
)

RESERVED_PORTS = MappingProxyType(
    {22: "SSH", 2375: "Docker", 2376: "Docker", **dict.fromkeys(range(51678, 51681), "the ECS agent")}
)
# The image platforms (OCI Image Format Specification) that an EC2 architecture can run, the usual one first.
PLATFORMS_OF_ARCHITECTURE = MappingProxyType(
    {"x86_64": ("linux/amd64", "linux/386"), "arm64": ("linux/arm64", "linux/arm")}
)


TypeFilter = Callable[[Requirements, InstanceType], Rejection | None]


def check_manufacturer(_required: Requirements, machine: InstanceType) -> Rejection | None:
    """Reject accelerators other than NVIDIA GPUs and AWS Neuron devices, and types that EC2 does not list yet."""
    if machine.is_supported and machine.is_listed:
        return None
    maker = machine.accelerator_manufacturer
    model = machine.accelerator_model
    if not maker:
        return Rejection("it is not in the catalogue of accelerated instance types")
    if machine.is_supported:
        return Rejection("AWS has announced it, but EC2 did not list it yet: its vCPU and memory are not known")
    return Rejection(f"its accelerator is {maker} {model}; only NVIDIA GPUs and AWS Neuron devices are used")


def check_allow_list(required: Requirements, machine: InstanceType) -> Rejection | None:
    """Reject types that are not in the definition's list of instance types."""
    if not required.instance_types or machine.name in required.instance_types:
        return None
    return Rejection(f"not among the job's instance types ({', '.join(required.instance_types)})")


def check_accelerator(required: Requirements, machine: InstanceType) -> Rejection | None:
    """Reject the wrong kind of accelerator."""
    if required.is_gpu and not machine.logical_gpu_count:
        return Rejection("it has no NVIDIA GPU")
    if required.is_neuron and not machine.neuron_devices:
        return Rejection("it has no Neuron device")
    return None


def check_purpose(required: Requirements, machine: InstanceType) -> Rejection | None:
    """Reject accelerators that serve inference only if the Neuron devices are for training."""
    if not required.is_training or not machine.is_for_inference:
        return None
    return Rejection(
        f"its {machine.accelerator_model} serves inference only, and `purpose` of the job's Neuron devices is training"
    )


def check_count(required: Requirements, machine: InstanceType) -> Rejection | None:
    """Reject types with too few whole GPUs; a fraction of a GPU does not count."""
    rejection = _reject_fewer(machine.gpu_count, required.gpu_count, "GPU")
    if rejection and machine.is_fractional:
        return replace(rejection, reason=f"it has {machine.gpu_partition_size:g} of a GPU; whole ones are asked for")
    return rejection


def check_model(required: Requirements, machine: InstanceType) -> Rejection | None:
    """Reject models of GPUs or Neuron devices other than those of the definition."""
    if not required.models or any(is_same_name(model, machine.accelerator_model) for model in required.models):
        return None
    kind = "Neuron device" if machine.neuron_devices else "GPU"
    return Rejection(f"its {kind} is {machine.accelerator_model}; asked for is {' or '.join(required.models)}")


def check_gpu_memory(required: Requirements, machine: InstanceType) -> Rejection | None:
    """Reject GPUs with less memory than required, with a tolerance for GB and GiB."""
    if machine.gpu_memory_mib >= required.gpu_memory_mib * (1 - GPU_MEMORY_TOLERANCE):
        return None
    has = format_gpu_memory(machine.gpu_memory_mib)
    asked = format_gpu_memory(required.gpu_memory_mib)
    return Rejection(
        f"its GPU has {has} of memory; {asked} are asked for", 1 - machine.gpu_memory_mib / required.gpu_memory_mib
    )


def check_share(required: Requirements, machine: InstanceType) -> Rejection | None:
    """Reject types that cannot provide the required share of a GPU."""
    return find_share_rejection(required.share, machine) if required.share else None


def check_compute_capability(required: Requirements, machine: InstanceType) -> Rejection | None:
    """Reject GPUs with a lower compute capability than required."""
    asked = required.compute_capability
    has = machine.compute_capability
    if asked is None or (has is not None and has >= asked):
        return None
    if has is None:
        return Rejection(f"the compute capability of its {machine.accelerator_model} is not known")
    return Rejection(
        f"its {machine.accelerator_model} has compute capability {_dotted(has)}; {_dotted(asked)} is asked for"
    )


def check_interconnect(required: Requirements, machine: InstanceType) -> Rejection | None:
    """Reject types without EFA, or not known to have NVLink, if the definition requires it."""
    if required.interconnect is Interconnect.EFA and not machine.efa_interfaces:
        return Rejection("it has no Elastic Fabric Adapter (EFA)")
    if required.interconnect is Interconnect.NVLINK and not machine.has_nvlink:
        return Rejection("its GPUs are not known to be connected by NVLink")
    return None


def check_neuron(required: Requirements, machine: InstanceType) -> Rejection | None:
    """Reject types with too few Neuron devices or cores.

    A job takes one device or all devices of an instance, because ECS does not count them; more devices than required
    are therefore accepted. Of Trainium2 a program may show itself twice as many cores as by default, so that all count
    here; a notice says so.
    """
    return _reject_fewer(machine.neuron_devices, required.neuron_devices, "Neuron device") or _reject_fewer(
        machine.neuron_cores, required.neuron_cores, "NeuronCore"
    )


def check_vcpu(required: Requirements, machine: InstanceType) -> Rejection | None:
    """Reject types with fewer vCPUs than the revision reserves."""
    if machine.vcpus >= required.vcpus:
        return None
    return Rejection(
        f"it has {machine.vcpus} vCPU; the task reserves {required.vcpus:g}", 1 - machine.vcpus / required.vcpus
    )


def check_memory(required: Requirements, machine: InstanceType) -> Rejection | None:
    """Reject types with less memory available to tasks than the revision reserves."""
    usable = usable_memory_mib(machine.memory_mib)
    if usable >= required.memory_mib:
        return None
    reason = (
        f"about {usable:,} of its {machine.memory_mib:,} MiB are left for tasks; "
        f"the task reserves {required.memory_mib:,} MiB"
    )
    return Rejection(reason, 1 - usable / required.memory_mib)


def check_architecture(required: Requirements, machine: InstanceType) -> Rejection | None:
    """Reject other processor architectures; ECS writes X86_64 and ARM64, EC2 x86_64 and arm64."""
    if not required.architecture or machine.architecture.casefold() == required.architecture.casefold():
        return None
    default = ", the default of a task definition" if required.architecture == DEFAULT_ARCHITECTURE else ""
    return Rejection(f"its processor is {machine.architecture}; the task is for {required.architecture}{default}")


def check_image(required: Requirements, machine: InstanceType) -> Rejection | None:
    """Reject types that cannot run the known platforms of an image of the task."""
    runs = PLATFORMS_OF_ARCHITECTURE.get(machine.architecture)
    if runs is None:
        return None
    for container, platforms in required.platforms:
        if not set(platforms) & set(runs):
            return Rejection(
                f"its processor is {machine.architecture}; the image of container {container} is for "
                f"{' and '.join(platforms)}: build it for {runs[0]}, or have the task definition (cpuArchitecture) and "
                "the job ask for machines of its architecture"
            )
    return None


def check_ports(required: Requirements, _machine: InstanceType) -> Rejection | None:
    """Reject tasks with a duplicate host port or one that ECS reserves: they can be placed on no instance.

    Source: "hostPort" of PortMapping (Amazon ECS API Reference).
    """
    for port in required.host_ports:
        if port in RESERVED_PORTS:
            return Rejection(
                f"the task definition takes host port {port}, which {RESERVED_PORTS[port]} has on every machine"
            )
    duplicates = [port for port, count in Counter(required.host_ports).items() if count > 1]
    if duplicates:
        return Rejection(f"the task definition takes host port {duplicates[0]} twice")
    return None


TYPE_FILTERS: tuple[tuple[str, TypeFilter], ...] = (
    ("manufacturer", check_manufacturer),
    ("allow-list", check_allow_list),
    ("accelerator", check_accelerator),
    ("purpose", check_purpose),
    # Before the count: where no machine has the model, how many others have does not matter.
    ("model", check_model),
    ("count", check_count),
    ("memory-per-card", check_gpu_memory),
    ("share", check_share),
    ("compute-capability", check_compute_capability),
    ("interconnect", check_interconnect),
    ("neuron", check_neuron),
    ("vcpu", check_vcpu),
    ("memory", check_memory),
    ("architecture", check_architecture),
    ("image", check_image),
    ("ports", check_ports),
)


def format_mib(memory_mib: int) -> str:
    """Return `24 GiB` for a whole number of GiB, else `22,888 MiB`."""
    return f"{memory_mib // 1024:,} GiB" if memory_mib % 1024 == 0 else f"{memory_mib:,} MiB"


def format_gpu_memory(memory_mib: int) -> str:
    """Return the nominal size of a GPU's memory, as definitions ask for it: `24 GiB` for the 22,888 MiB of an A10G.

    DescribeInstanceTypes gives some sizes as the vendor's GB in MiB (24 x 10^9 bytes), and others with each GB as a
    GiB; the EC2 pages name both by their number of GiB.
    """
    gigabytes = memory_mib * 2**20 / 10**9
    is_vendors = memory_mib % 1024 != 0 and abs(gigabytes - round(gigabytes)) * 2**10 < gigabytes
    return f"{round(gigabytes)} GiB" if is_vendors else f"{memory_mib / 1024:.4g} GiB"


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(map(str, version))


def _reject_fewer(number: int, required: int, noun: str) -> Rejection | None:
    if number >= required:
        return None
    plural = "" if number == 1 else "s"
    return Rejection(f"it has {number or 'no'} {noun}{plural}; {required} are asked for", 1 - number / required)


def find_unsatisfied(constraints: Iterable[str], offering: Offering) -> Rejection | None:
    """Reject an offering whose instances do not satisfy all constraints, or which nobody can tell of before it is paid.

    An instance of a capacity provider may satisfy what is not known here: it is the user's own.
    """
    for text in constraints:
        result = judge(text, offering)
        if result is False:
            return Rejection(f"the task definition's placement constraint is {text}")
        if result is None and offering.is_own_machine:
            reason = (
                f"whether a machine satisfies the task definition's placement constraint {text} is not known before it "
                "is bought: take the constraint out, or name a capacity provider whose instances do (CapacityProviders)"
            )
            return Rejection(reason)
    return None


def find_unjudged(constraints: Iterable[str], offering: Offering) -> tuple[str, ...]:
    """Return the constraints that some instances of an offering may not satisfy."""
    return tuple(text for text in constraints if judge(text, offering) is None)


def judge(text: str, offering: Offering) -> bool | None:
    """Return whether every (True) or no instance (False) of an offering satisfies an expression; None if unknown.

    The group of a capacity provider may start an instance in any zone that EC2 offers the type in.
    """
    try:
        expression = parse_expression(text)
    except ExpressionError:
        # ECS took it: it has a regular expression of Java's, or more than the Guide says.
        return None
    if not expression.is_portable:
        return None
    zones = (offering.zone,) if offering.zone else offering.offered_zones
    results = {expression.holds(_lookup(offering, zone)) for zone in zones or (UNKNOWN,)}
    return results.pop() if len(results) == 1 else None


def _lookup(offering: Offering, zone: str | Unknown) -> Lookup:
    known: dict[str, Value | Unknown] = {
        "agentConnected": True,
        "attribute:ecs.instance-type": offering.instance_type.name,
        "attribute:ecs.availability-zone": zone,
        "attribute:ecs.cpu-architecture": offering.instance_type.architecture,
        "attribute:ecs.os-type": "linux",
        "attribute:ecs.os-family": "LINUX",
    }
    return lambda subject: known.get(subject, UNKNOWN)
