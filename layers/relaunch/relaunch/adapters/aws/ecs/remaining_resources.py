"""The remaining resources of a container instance (`remainingResources` of DescribeContainerInstances)."""

from collections.abc import Mapping
from typing import Any

from relaunch.adapters.aws.ecs.revisions import CPU_UNITS_PER_VCPU
from relaunch.core.selection.neuron_devices import MachineRoom


def read_room(machine: Mapping[str, Any]) -> MachineRoom:
    """Parse the remaining vCPUs and memory, and the host ports used by tasks and the agent."""
    remaining = {each.get("name"): each for each in machine.get("remainingResources") or ()}
    taken = remaining.get("PORTS", {}).get("stringSetValue") or ()
    return MachineRoom(
        free_vcpus=remaining.get("CPU", {}).get("integerValue", 0) / CPU_UNITS_PER_VCPU,
        free_memory_mib=remaining.get("MEMORY", {}).get("integerValue", 0),
        taken_ports=frozenset(int(port) for port in taken if str(port).isdecimal()),
    )
