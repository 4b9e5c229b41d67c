"""Placeholder: the use case of the function request_machine."""

from relaunch.core.machines.machine import Machine
from relaunch.ports import MachineDependencies


def request_machine(machine_id: str, deps: MachineDependencies) -> Machine | None:
    """Log that nothing is requested yet."""
    deps.log.decided("ignored", machine_id=machine_id, reason="machines are not requested yet")
    return None
