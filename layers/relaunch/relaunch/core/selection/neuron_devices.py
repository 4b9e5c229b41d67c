"""Which Neuron devices of a machine a job takes, and the host ports that let ECS keep device sets apart.

ECS reserves no Neuron devices: a container gets those its definition lists (`linuxParameters.devices`), whoever else
has them ("Neuron", Amazon ECS Developer Guide). It does reserve host ports. A job that takes device i therefore also
takes host port FIRST_PORT + i, and two tasks with a device in common never fit onto one machine.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.selection.requirements import Requirements

# Below 32768, where the ports begin that Linux gives to connections and ECS to containers without a fixed port: such a
# port could be in use just when a task starts ("PortMapping", Amazon ECS API Reference). Kubernetes' node ports, which
# some hosts leave alone for the same reason, begin at 30000.
FIRST_PORT = 28_620

NETWORK_MODES = ("bridge", "host")
"""In which tasks take ports of their machine; others have a network interface of their own, or none."""


@dataclass(frozen=True, slots=True)
class NeuronClaim:
    """Devices of one machine, counted from 0; none at all where ECS itself gives a task every device."""

    devices: tuple[int, ...]

    @property
    def host_ports(self) -> tuple[int, ...]:
        """Return the host ports that go with the devices."""
        return tuple(FIRST_PORT + device for device in self.devices)

    @property
    def paths(self) -> tuple[str, ...]:
        """Return the devices' paths, on the machine and in the container alike."""
        return tuple(f"/dev/neuron{device}" for device in self.devices)

    def __str__(self) -> str:
        """Write `Neuron device 3`, or `all 6 Neuron devices`."""
        return (
            f"Neuron device {self.devices[0]}" if len(self.devices) == 1 else f"all {len(self.devices)} Neuron devices"
        )


@dataclass(frozen=True, slots=True)
class MachineRoom:
    """What is left of a container instance: vCPUs, memory, and the host ports that are taken."""

    free_vcpus: float
    free_memory_mib: int
    taken_ports: frozenset[int]


def wants_neuron(required: Requirements) -> bool:
    """Tell whether a job needs Neuron devices: its definition says so, or its task definition lists some."""
    return required.is_neuron or required.neuron_devices > 0


def required_devices(required: Requirements, machine: InstanceType) -> int:
    """Return how many devices of this machine have the devices and the cores asked for, at least one."""
    cores_per_device = machine.neuron_cores_per_device or 1
    return max(required.neuron_devices, math.ceil(required.neuron_cores / cores_per_device), 1)


def is_whole_machine(required: Requirements, machine: InstanceType) -> bool:
    """Tell whether the job takes every device: more than one are never shared out."""
    return required_devices(required, machine) > 1 or machine.neuron_devices == 1


def claim_all(machine: InstanceType) -> NeuronClaim:
    """Claim every device of a machine."""
    return NeuronClaim(tuple(range(machine.neuron_devices)))


def claim_one(machine: InstanceType, turn: int, required: Requirements, rooms: Iterable[MachineRoom]) -> NeuronClaim:
    """Claim one device: one that is free on a running machine with room for the task, else the one whose turn it is.

    `turn` counts the claims on this type: jobs that wait for their first machine at the same time want different
    devices of it, and not a machine each.
    """
    order = [(turn + step) % machine.neuron_devices for step in range(machine.neuron_devices)]
    roomy = [
        room.taken_ports
        for room in rooms
        if room.free_vcpus >= required.vcpus and room.free_memory_mib >= required.memory_mib
    ]
    free = (device for device in order if any(FIRST_PORT + device not in taken for taken in roomy))
    return NeuronClaim((next(free, order[0]),))
