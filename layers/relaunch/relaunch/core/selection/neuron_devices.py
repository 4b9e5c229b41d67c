"""The Neuron devices that a job claims, and the host ports that keep their claims disjoint.

ECS does not reserve Neuron devices: a container gets the devices in its definition (`linuxParameters.devices`), even if
another task has them ("Neuron", Amazon ECS Developer Guide). It does reserve host ports. A job that claims device i
therefore also uses host port FIRST_PORT + i, so that two tasks with a common device are never on the same instance.
"""

import math
from collections.abc import Iterable

from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.records import dataclass
from relaunch.core.selection.requirements import Requirements

# Below the ephemeral port range of Linux, which ECS also uses for dynamic host ports and which starts at 32768
# ("PortMapping", Amazon ECS API Reference), and below the node ports of Kubernetes, which start at 30000.
FIRST_PORT = 28_620

NETWORK_MODES = ("bridge", "host")
"""Network modes in which tasks use ports of the instance; others have their own network interface, or none."""


@dataclass(frozen=True, slots=True)
class NeuronClaim:
    """Zero-based indices of devices of an instance; empty if ECS itself assigns all devices (Managed Instances)."""

    devices: tuple[int, ...]

    @property
    def host_ports(self) -> tuple[int, ...]:
        """Return the host ports that stand for the devices."""
        return tuple(FIRST_PORT + device for device in self.devices)

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the paths of the devices on the instance."""
        return tuple(f"/dev/neuron{device}" for device in self.devices)

    def __str__(self) -> str:
        """Return `Neuron device 3` or `all 6 Neuron devices`."""
        return (
            f"Neuron device {self.devices[0]}" if len(self.devices) == 1 else f"all {len(self.devices)} Neuron devices"
        )


@dataclass(frozen=True, slots=True)
class RemainingResources:
    """The remaining vCPUs and memory of a container instance, and its used host ports."""

    vcpus: float
    memory_mib: int
    used_ports: frozenset[int]


def requires_neuron(required: Requirements) -> bool:
    """Return whether a job requires Neuron devices, by its definition or its task definition."""
    return required.is_neuron or required.neuron_devices > 0


def required_devices(required: Requirements, machine: InstanceType) -> int:
    """Return the number of devices that a job needs on this type, at least one: as many as show it its cores."""
    cores_per_device = machine.logical_cores_per_device or 1
    return max(required.neuron_devices, math.ceil(required.neuron_cores / cores_per_device), 1)


def claims_all_devices(required: Requirements, machine: InstanceType) -> bool:
    """Return whether the job claims all devices: it does if it needs more than one."""
    return required_devices(required, machine) > 1 or machine.neuron_devices == 1


def claim_all(machine: InstanceType) -> NeuronClaim:
    """Claim all devices of an instance."""
    return NeuronClaim(tuple(range(machine.neuron_devices)))


def claim_one(
    machine: InstanceType, turn: int, required: Requirements, instances: Iterable[RemainingResources]
) -> NeuronClaim:
    """Claim a device that is free on a container instance with room for the task, else the next one in turn.

    `turn` counts the claims on this type, so that jobs waiting for the first instance claim different devices of it
    instead of one instance each.
    """
    order = [(turn + step) % machine.neuron_devices for step in range(machine.neuron_devices)]
    used_ports = [
        remaining.used_ports
        for remaining in instances
        if remaining.vcpus >= required.vcpus and remaining.memory_mib >= required.memory_mib
    ]
    free = (device for device in order if any(FIRST_PORT + device not in used for used in used_ports))
    return NeuronClaim((next(free, order[0]),))
