"""Machines of our own with sensible values, and decisions about them; name only what a test is about."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from fakes.builders import NOW, make_offering_key
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.machines.decision import MachineDecision, MachineTotals, micro_usd
from relaunch.core.machines.machine import (
    Claim,
    FleetOverride,
    FleetRequest,
    Machine,
    MachineState,
    Resources,
    client_token_of,
)
from relaunch.ports import MachineStore

CAPACITY = Resources(cpu_units=4096, memory_mib=15_000, gpus=1.0)


def make_override(zone: str = "us-east-1a", **fields: Any) -> FleetOverride:
    """Build an override: a g5.xlarge for 0.4 USD per hour."""
    override = FleetOverride(make_offering_key(zone=zone), f"subnet-{zone[-1]}", 0.4, CAPACITY)
    return replace(override, **fields)


def make_machine(machine_id: str = "m-1", **fields: Any) -> Machine:
    """Build a machine that was just requested, in one zone."""
    request = FleetRequest(client_token_of(machine_id), PurchaseOption.SPOT, "lt-1", "7", (make_override(),))
    machine = Machine(machine_id, request, NOW, wake_at=NOW + timedelta(minutes=1), usd_per_hour=0.4)
    return replace(machine, **fields)


def make_gone(machine: Machine, **fields: Any) -> Machine:
    """Return a machine whose instance is gone since NOW."""
    return replace(machine, state=MachineState.GONE, state_since=NOW, wake_at=None, claims=(), **fields)


def make_claim(job_id: str = "resnet-1", **resources: Any) -> Claim:
    """Build a claim of a job's first attempt on half of a machine."""
    return Claim(job_id, 1, replace(Resources(2048, 7_500, 0.5), **resources), NOW)


def counted(machine: Machine | None) -> MachineTotals:
    """Return what a machine counts."""
    if machine is None or machine.state is MachineState.GONE:
        return MachineTotals()
    return MachineTotals(1, micro_usd(machine.usd_per_hour))


def change(
    machine: Machine, before: Machine | None = None, *, machines: int = 0, micro_usd_per_hour: int = 0
) -> MachineDecision:
    """Return the decision to save a machine, and the limits, which change the counters by the difference."""
    after, earlier = counted(machine), counted(before)
    return MachineDecision(
        machine,
        MachineTotals(after.machines - earlier.machines, after.micro_usd_per_hour - earlier.micro_usd_per_hour),
        MachineTotals(machines, micro_usd_per_hour),
    )


def save(store: MachineStore, machine: Machine | None = None, before: Machine | None = None) -> Machine:
    """Save a machine, a new one unless `before` is given."""
    return store.save_machine(change(machine or make_machine(), before))


def follow(store: MachineStore, machine: Machine, **fields: Any) -> Machine:
    """Save a machine with other fields."""
    return save(store, replace(machine, **fields), machine)


def totals_of(machines: Iterable[Machine]) -> MachineTotals:
    """Return what the counters must be."""
    parts = [counted(each) for each in machines]
    return MachineTotals(sum(each.machines for each in parts), sum(each.micro_usd_per_hour for each in parts))
