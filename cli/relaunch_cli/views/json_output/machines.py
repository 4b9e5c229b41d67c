"""Machines of our own."""

from collections.abc import Iterable
from datetime import datetime

from relaunch.core.machines.charges import cost_so_far
from relaunch.core.machines.decision import MICRO_USD, MachineTotals
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import Claim, FleetRequest, Machine, MachineTimelineEntry
from relaunch_cli.views.json_output.json_time import JsonObject, json_time


def machines_json(
    machines: Iterable[Machine],
    totals: MachineTotals,
    limits: MachineLimits,
    now: datetime,
    *,
    is_on: bool,
    is_cut: bool,
) -> JsonObject:
    """Return the document of `machines`; `is_on`: the stack requests machines of its own."""
    return {
        "machines": [machine_json(machine, now) for machine in machines],
        "totals": _totals_json(totals),
        "limits": _limits_json(limits.totals(is_handover=True)),
        "limits_without_handovers": _limits_json(limits.totals(is_handover=False)),
        "warm_seconds": limits.warm_time.total_seconds(),
        "is_on": is_on,
        "is_cut": is_cut,
    }


def fleet_request_json(request: FleetRequest) -> JsonObject:
    """Return what EC2 would be asked for."""
    return {
        "machines": request.size,
        "purchase": request.purchase.value,
        "launch_template_id": request.launch_template_id,
        "launch_template_version": request.launch_template_version,
        "usd_per_hour": request.usd_per_hour,
        "reservation_id": request.reservation.reservation_id if request.reservation else None,
        "overrides": [
            {
                "instance_type": override.offering.instance_type,
                "zone": override.offering.zone,
                "subnet_id": override.subnet_id,
                "usd_per_hour": override.usd_per_hour,
            }
            for override in request.overrides
        ],
    }


def _totals_json(totals: MachineTotals) -> JsonObject:
    return {"machines": totals.machines, "usd_per_hour": totals.micro_usd_per_hour / MICRO_USD}


def _limits_json(limits: MachineTotals) -> JsonObject:
    """Return limits, of which 0 stands for none."""
    return {key: value or None for key, value in _totals_json(limits).items()}


def machine_json(machine: Machine, now: datetime) -> JsonObject:
    """Return a machine."""
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
        "cost_usd": cost_so_far(machine, now),
        "beside_usd_per_hour": machine.beside_usd_per_hour,
        "paid_by": dict(machine.holdings[-1].shares) if machine.holdings else {},
        "is_price_limit": chosen is None,
        "asked_for": [str(override.offering) for override in machine.request.overrides],
        "claims": [_claim_json(claim) for claim in machine.claims],
        "created_at": json_time(machine.created_at),
        "asked_at": json_time(machine.asked_at),
        "launched_at": json_time(machine.launched_at),
        "registered_at": json_time(machine.registered_at),
        "warned_at": json_time(machine.warned_at),
        "idle_since": json_time(machine.idle_since),
        "ended_at": json_time(machine.ended_at),
        "is_refused": machine.refusal is not None,
        "timeline": [_entry_json(entry) for entry in machine.timeline],
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


def _entry_json(entry: MachineTimelineEntry) -> JsonObject:
    return {
        "at": json_time(entry.at),
        "state": entry.state.value,
        "event": entry.event,
        "detail": entry.detail,
    }
