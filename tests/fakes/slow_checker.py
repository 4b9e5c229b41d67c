"""Whether one offering is good for a job: written down once more, plainly, sharing no code with selection's filters."""

import math
from collections.abc import Iterable

from fakes.builders import NOW
from relaunch.core.definitions.accelerator import GpuRequirement, PurchaseOption
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.offering import CapacityMemory, Offering
from relaunch.core.revisions.revision import Revision
from relaunch.core.selection.offering_filters import SelectionLimits

RESERVED = {22, 2375, 2376, 51678, 51679, 51680}
OLD_GPUS = {"K520", "K80", "M60"}
QUOTAS = {
    ("g", "spot"): "L-3819A6DF",
    ("g", "on-demand"): "L-DB2E81BA",
    ("p", "spot"): "L-7212CCBC",
    ("p", "on-demand"): "L-417A185B",
    ("t", "spot"): "L-6B0D517C",
    ("t", "on-demand"): "L-2C3B7624",
    ("i", "spot"): "L-B5D1601B",
    ("i", "on-demand"): "L-1945791B",
}


def is_good(
    offering: Offering,
    definition: JobDefinition,
    revision: Revision | None,
    memory: CapacityMemory,
    limits: SelectionLimits,
) -> bool:
    """Hold one offering against everything that is asked of it."""
    machine = offering.instance_type
    demands = [machine.accelerator_manufacturer in {"NVIDIA", "AWS"}, machine.vcpus != 0]
    demands.append(bool(offering.capacity_provider) or offering.purchase in machine.usage_classes)
    demands.append(bool(offering.capacity_provider) or machine.name[:3] not in {"p2.", "g2.", "g7."})
    is_named = machine.name in definition.accelerator.instance_types
    demands.append(bool(offering.capacity_provider) or is_named or not machine.is_bare_metal)
    demands.append(revision is not None or machine.architecture == "x86_64")
    if offering.is_own_machine:
        demands.append(machine.accelerator_manufacturer == "AWS" or machine.architecture == "x86_64")
        demands.append(machine.gpu_partition_size == 1)
        kind = "neuron" if machine.accelerator_manufacturer == "AWS" else "gpu"
        demands.append(kind in {str(each) for each in limits.machine_kinds})
    demands += has_accelerator(machine, definition, revision)
    demands.append(offering.disk_gib is None or offering.disk_gib >= (definition.disk_gib or 0))
    if revision:
        demands += has_room(machine, revision)
        demands += has_network(offering, definition, revision, limits)
    return all(demands) and meets_criteria(offering, definition, revision, memory, limits)


def has_accelerator(machine: InstanceType, definition: JobDefinition, revision: Revision | None) -> Iterable[bool]:
    """Yield what is asked of the accelerators."""
    wanted = definition.accelerator
    if wanted.instance_types:
        yield machine.name in wanted.instance_types
    if wanted.gpu:
        yield machine.accelerator_manufacturer == "NVIDIA"
        names = [model.lower().replace(" ", "") for model in wanted.gpu.models]
        yield not names or machine.accelerator_model.lower().replace(" ", "") in names
        least = wanted.gpu.compute_capability
        yield least is None or (machine.compute_capability or (0, 0)) >= least
        yield wanted.gpu.interconnect != "efa" or machine.efa_interfaces > 0
        yield wanted.gpu.interconnect != "nvlink" or machine.has_nvlink
        if wanted.gpu.compute_percent is None:
            yield machine.gpu_memory_mib >= 0.93 * (wanted.gpu.memory_mib or 0)
        else:
            yield has_share(machine, wanted.gpu)
            yield whole_gpus_of_others(definition, revision) == 0
    if wanted.neuron:
        yield machine.accelerator_manufacturer == "AWS"
        yield wanted.neuron.purpose == "inference" or machine.name[:3] != "inf"
        yield not wanted.neuron.models or machine.accelerator_model in wanted.neuron.models
        yield machine.neuron_devices >= (wanted.neuron.devices or 0)
        yield machine.neuron_devices * machine.neuron_cores_per_device >= (wanted.neuron.cores or 0)
    yield machine.gpu_count >= whole_gpus(definition, revision)


def has_share(machine: InstanceType, gpu: GpuRequirement) -> bool:
    """Tell whether a machine has a part of a GPU as large as asked for, or shares whole ones where that is enough."""
    asked_mib, percent = gpu.memory_mib or 0, gpu.compute_percent or 0
    if machine.gpu_partition_size < 1:
        return machine.gpu_partition_size * 100 >= percent and machine.gpu_memory_mib >= asked_mib
    can_share = machine.gpu_count > 0 and machine.accelerator_model not in OLD_GPUS
    return can_share and gpu.isolation != "required" and int(machine.gpu_memory_mib * 0.9) >= asked_mib


def whole_gpus_of_others(definition: JobDefinition, revision: Revision | None) -> int:
    """Count the whole GPUs of containers that the definition's requirement does not concern."""
    containers = revision.containers if revision else ()
    is_asked = definition.accelerator.gpu is not None
    return sum(each.gpu_count for each in containers if not (is_asked and each.name == definition.container))


def whole_gpus(definition: JobDefinition, revision: Revision | None) -> int:
    """Count the whole GPUs of the whole task."""
    gpu = definition.accelerator.gpu
    own = gpu.count if gpu and gpu.compute_percent is None else 0
    return own + whole_gpus_of_others(definition, revision)


def has_room(machine: InstanceType, revision: Revision) -> list[bool]:
    """Return what the task definition asks of the rest of the machine."""
    paths = {path for container in revision.containers for path in container.neuron_devices}
    ports = [port for container in revision.containers for port in container.host_ports]
    left_mib = machine.memory_mib - 256 - math.ceil(machine.memory_mib * 0.04)
    return [
        paths <= {f"/dev/neuron{number}" for number in range(machine.neuron_devices)},
        machine.vcpus >= revision.vcpus,
        machine.vcpus >= sum(container.vcpus for container in revision.containers),
        left_mib >= revision.memory_mib,
        left_mib >= sum(container.memory_mib for container in revision.containers),
        machine.architecture.upper() == revision.architecture,
        *(runs_on(machine, container.platforms) for container in revision.containers),
        len(ports) == len(set(ports)),
        not RESERVED & set(ports),
    ]


def runs_on(machine: InstanceType, platforms: tuple[str, ...]) -> bool:
    """Tell whether an image for these platforms runs on a machine; one of which nothing is known is taken to."""
    known = {"linux/amd64": "x86_64", "linux/386": "x86_64", "linux/arm64": "arm64", "linux/arm": "arm64"}
    return not platforms or machine.architecture in {known.get(each) for each in platforms}


def has_network(
    offering: Offering, definition: JobDefinition, revision: Revision, limits: SelectionLimits
) -> list[bool]:
    """Return what the task definition's network mode asks for."""
    mode = revision.network_mode
    lists_devices = any(container.neuron_devices for container in revision.containers)
    takes_ports = lists_devices or definition.accelerator.neuron is not None
    return [
        mode != "awsvpc" or limits.has_subnets,
        not offering.is_managed or mode in {"awsvpc", "host"},
        offering.is_managed or not takes_ports or mode in {"bridge", "host"},
    ]


def meets_criteria(
    offering: Offering,
    definition: JobDefinition,
    revision: Revision | None,
    memory: CapacityMemory,
    limits: SelectionLimits,
) -> bool:
    """Tell whether it may be bought, at its price, now."""
    price, on_demand = offering.price_usd_per_hour, offering.on_demand_usd_per_hour
    is_spot = offering.purchase is PurchaseOption.SPOT
    reckoned = on_demand if price is None else price
    caps = [limits.max_price_usd_per_hour or math.inf, definition.max_price_usd_per_hour or math.inf]
    is_capped = definition.max_price_usd_per_hour or limits.max_price_usd_per_hour not in {None, 40.0}
    is_bargain = not is_spot or price is None or on_demand is None or price / on_demand <= limits.max_spot_ratio
    failed = [
        failure
        for key, failure in memory.items()
        if key.purchase is offering.purchase
        and is_about(key.instance_type, key.zone, offering)
        and failure.until > NOW
        and offering.instance_type.vcpus >= failure.vcpus
    ]
    is_run = not offering.is_managed or offering.instance_type.name[:5] != "inf1."
    is_allowed = is_run and str(offering.purchase) in definition.purchase
    is_affordable = not is_capped if reckoned is None else reckoned <= min(caps)
    return (
        is_allowed and is_affordable and is_bargain and not failed and has_quota(offering, definition, revision, limits)
    )


def is_about(what: str, zone: str | None, offering: Offering) -> bool:
    """Tell whether a failure of a type, a quota, a family or a subnet is about an offering."""
    name, is_own = offering.instance_type.name, offering.is_own_machine
    if what == name:
        return zone == offering.zone or (zone is None and not is_own)
    if what == "any-type":
        return is_own and zone in {None, offering.zone}
    if what.startswith("family:"):
        return name.startswith(what.removeprefix("family:") + ".")
    return what == f"quota:{quota_code(name, str(offering.purchase))}"


def quota_code(name: str, purchase: str) -> str:
    if purchase == "spot" and name.startswith("p5"):
        return "L-C4BD4855"
    return "none" if purchase == "spot" and name.startswith("p6") else QUOTAS[name[0], purchase]


def has_quota(
    offering: Offering, definition: JobDefinition, revision: Revision | None, limits: SelectionLimits
) -> bool:
    """Tell whether the quota has room for the machine, unless one may be up already that has room for the task."""
    machine = offering.instance_type
    room = limits.quotas.get(quota_code(machine.name, str(offering.purchase)))
    if room is None or machine.vcpus + room.used_vcpus <= room.vcpus:
        return True
    if machine.vcpus > room.vcpus:
        return False
    gpu, neuron = definition.accelerator.gpu, definition.accelerator.neuron
    if gpu and gpu.compute_percent is not None:
        return True
    return has_room_for_two(machine, whole_gpus(definition, revision), neuron, revision)


def has_room_for_two(machine: InstanceType, gpus: int, neuron: object, revision: Revision | None) -> bool:
    """Tell whether two such tasks fit onto one machine."""
    devices = getattr(neuron, "devices", None) or 0
    cores = getattr(neuron, "cores", None) or 0
    vcpus, memory_mib = 0.0, 0
    if revision:
        listed = [int(path[11:]) + 1 for each in revision.containers for path in each.neuron_devices]
        devices = max([devices, *listed])
        vcpus = max(revision.vcpus, sum(each.vcpus for each in revision.containers))
        memory_mib = max(revision.memory_mib, sum(each.memory_mib for each in revision.containers))
    pairs = [
        (gpus, machine.gpu_count),
        (devices, machine.neuron_devices),
        (cores, machine.neuron_devices * machine.neuron_cores_per_device),
        (vcpus, machine.vcpus),
        (memory_mib, machine.memory_mib - 256 - math.ceil(machine.memory_mib * 0.04)),
    ]
    return all(asked + asked <= has for asked, has in pairs)
