"""Placeholder: the use case of the function request_machine."""

from relaunch.core.machines.machine import Machine
from relaunch.ports import MachineDependencies


def request_machine(machine_id: str, deps: MachineDependencies) -> Machine | None:
    """Ignore a machine that is not stored.

    Raises:
        NotImplementedError: it is stored.
    """
    if deps.machines.load_machine(machine_id) is None:
        deps.log.decided("ignored", machine_id=machine_id, reason="the machine is not stored")
        return None
    raise NotImplementedError
