"""Machines for tests."""

from dataclasses import replace
from typing import Any

from fakes.builders import NOW
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.machines.machine import Claim, FleetOverride, FleetRequest, Machine, MachineState, Resources
from relaunch.core.offerings.offering import OfferingKey

INSTANCE = "i-0a1b2c3d4e5f60718"
NODE = "arn:aws:ecs:us-east-1:111122223333:container-instance/relaunch/0123456789abcdef0123456789abcdef"
CAPACITY = Resources(4096, 15_000, 1.0)


def offering(
    name: str = "g5.xlarge", zone: str = "us-east-1a", purchase: PurchaseOption = PurchaseOption.SPOT
) -> OfferingKey:
    """Return the key of an offering."""
    return OfferingKey(name, zone, purchase)


def override(
    name: str = "g5.xlarge", zone: str = "us-east-1a", usd_per_hour: float = 0.4, **fields: Any
) -> FleetOverride:
    """Return an override of a request."""
    key = offering(name, zone, fields.pop("purchase", PurchaseOption.SPOT))
    return FleetOverride(key, f"subnet-{zone[-1]}", usd_per_hour, fields.pop("capacity", CAPACITY), **fields)


def fleet_request(*overrides: FleetOverride, machine_id: str = "m-1", **fields: Any) -> FleetRequest:
    """Return a request for one of these overrides, by default g5.xlarge or the more expensive g6.xlarge on spot."""
    chosen = overrides or (override(), override("g6.xlarge", "us-east-1b", 0.5))
    return FleetRequest(
        f"relaunch-{machine_id}", chosen[0].offering.purchase, "lt-0a", "7", chosen, fields.get("tags", {})
    )


def claim(job_id: str = "resnet-1", resources: Resources | None = None) -> Claim:
    """Return the claim of a job, by default on one GPU."""
    return Claim(job_id, 1, resources or Resources(2048, 8_000, 1.0), NOW)


def machine(state: MachineState = MachineState.REQUESTED, **fields: Any) -> Machine:
    """Return a machine in a state, as it usually is in it."""
    request = fields.pop("request", fleet_request())
    usual: dict[str, Any] = {
        "claims": (claim(),),
        "usd_per_hour": request.usd_per_hour,
        "state": state,
        "state_since": NOW,
        "wake_at": NOW,
        "version": 3,
    }
    if state is not MachineState.REQUESTED:
        usual |= {
            "instance_id": INSTANCE,
            "offering": request.overrides[0].offering,
            "launched_at": NOW,
            "asked_at": NOW,
        }
    if state is MachineState.READY:
        usual |= {"node": NODE, "registered_at": NOW}
    if state in (MachineState.ENDING, MachineState.GONE):
        usual["claims"] = ()
    created = Machine("m-1", request, NOW)
    return replace(created, **{**usual, **fields})
