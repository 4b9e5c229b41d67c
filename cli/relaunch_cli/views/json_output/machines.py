"""Machines of our own."""

from collections.abc import Iterable

from relaunch.core.machines.decision import MICRO_USD, MachineTotals
from relaunch.core.machines.machine import Claim, Machine
from relaunch_cli.views.json_output.values import JsonObject, json_time


def machines_json(machines: Iterable[Machine], totals: MachineTotals, *, is_cut: bool) -> JsonObject:
    """Return the document of `machines`."""
    return {
        "machines": [_machine_json(machine) for machine in machines],
        "totals": {"machines": totals.machines, "usd_per_hour": totals.micro_usd_per_hour / MICRO_USD},
        "is_cut": is_cut,
    }


def _machine_json(machine: Machine) -> JsonObject:
    chosen = machine.offering
    return {
        "machine_id": machine.machine_id,
        "state": machine.state.value,
        "state_since": json_time(machine.state_since),
        "reason": machine.reason,
        "instance_id": machine.instance_id,
        "node": machine.node,
        "instance_type": chosen.instance_type if chosen else None,
        "zone": chosen.zone if chosen else None,
        "purchase": machine.request.purchase.value,
        "usd_per_hour": machine.usd_per_hour,
        "is_price_limit": chosen is None,
        "asked_for": [str(override.offering) for override in machine.request.overrides],
        "claims": [_claim_json(claim) for claim in machine.claims],
        "created_at": json_time(machine.created_at),
        "launched_at": json_time(machine.launched_at),
        "registered_at": json_time(machine.registered_at),
        "warned_at": json_time(machine.warned_at),
    }


def _claim_json(claim: Claim) -> JsonObject:
    return {
        "job_id": claim.job_id,
        "attempt": claim.attempt_number,
        "cpu_units": claim.resources.cpu_units,
        "memory_mib": claim.resources.memory_mib,
        "gpus": claim.resources.gpus,
        "neuron_devices": claim.resources.neuron_devices,
        "since": json_time(claim.since),
    }
