"""Where a machine is, in words."""

from relaunch.core.machines.machine import Machine, MachineState


def describe_machine(machine: Machine) -> str:
    """Return what a job waits for that claims the machine; the same for the same state of affairs."""
    if machine.state is MachineState.REQUESTED:
        asked = "EC2 is asked for" if machine.asked_at is None else "asked EC2 for"
        again = f"; {machine.reason}" if machine.reason else ""
        return f"{asked} {describe_request(machine)}{again}"
    place = f"{machine.instance_id} ({machine.offering})"
    if machine.state is MachineState.STARTING:
        return f"{place} is starting" + (f": {machine.reason}" if machine.reason else "")
    if machine.state is MachineState.READY:
        return f"{place} is ready" + (f": {machine.reason}" if machine.reason else "")
    return machine.reason or f"{place} is {machine.state.lower()}"


def describe_request(machine: Machine) -> str:
    """Return what was requested: `g6.xlarge, g5.xlarge on spot in 3 zones`."""
    names = dict.fromkeys(each.offering.instance_type for each in machine.request.overrides)
    zones = sorted({each.offering.zone or "" for each in machine.request.overrides})
    where = zones[0] if len(zones) == 1 else f"{len(zones)} zones"
    within = f" from {machine.request.reservation}" if machine.request.reservation else ""
    return f"{', '.join(names)} on {machine.request.purchase} in {where}{within}"
