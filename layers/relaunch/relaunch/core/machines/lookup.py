"""Keys by which stores find machines."""

from datetime import datetime, timedelta

from relaunch.core.machines.machine import Machine, MachineState
from relaunch.core.machines.resources import Resources

KEPT_AFTER_END = timedelta(days=30)

_LEAST = Resources(cpu_units=1, memory_mib=1)
# A share has at least one percent of a GPU's compute.
_LEAST_WITH_ACCELERATOR = (
    Resources(cpu_units=1, memory_mib=1, gpus=0.01),
    Resources(cpu_units=1, memory_mib=1, neuron_devices=1),
)


def due_at(machine: Machine) -> datetime | None:
    """Return when the machine is to be checked again, None if never.

    A machine that is gone is due while effects are pending; loading it for the next event repeats them.

    Raises:
        ValueError: the machine is not gone and has no `wake_at`.
    """
    if machine.state is MachineState.GONE:
        return (machine.wake_at or gone_at(machine)) if machine.pending else None
    if machine.wake_at is None:
        raise ValueError(f"machine {machine.machine_id} is {machine.state} and has no wake_at")
    return machine.wake_at


def gone_at(machine: Machine) -> datetime | None:
    """Return since when the machine is gone, None while it is not."""
    return (machine.state_since or machine.created_at) if machine.state is MachineState.GONE else None


def has_room(machine: Machine) -> bool:
    """Return whether another job may find room on the machine.

    The rest must have CPU, memory and, if the machine has accelerators, some of those. A machine that was warned takes
    no more jobs.
    """
    if not machine.state.is_usable or machine.warned_at is not None or machine.is_unusable:
        return False
    capacity, free = machine.capacity, machine.free
    needed = [least for least in _LEAST_WITH_ACCELERATOR if capacity.holds(least)]
    return any(free.holds(least) for least in needed or [_LEAST])
