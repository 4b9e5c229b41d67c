"""The remaining resources of a container instance (`remainingResources` of DescribeContainerInstances)."""

from collections.abc import Mapping
from typing import Any

from relaunch.core.selection.neuron_devices import RemainingResources
from relaunch.core.task_definitions.reservation import CPU_UNITS_PER_VCPU


def read_remaining_resources(machine: Mapping[str, Any]) -> RemainingResources:
    """Parse the remaining vCPUs and memory, and the host ports used by tasks and the agent."""
    remaining = {each.get("name"): each for each in machine.get("remainingResources") or ()}
    taken = remaining.get("PORTS", {}).get("stringSetValue") or ()
    return RemainingResources(
        vcpus=remaining.get("CPU", {}).get("integerValue", 0) / CPU_UNITS_PER_VCPU,
        memory_mib=remaining.get("MEMORY", {}).get("integerValue", 0),
        used_ports=frozenset(int(port) for port in taken if str(port).isdecimal()),
    )
