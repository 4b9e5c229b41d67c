"""The control calls of EC2 Fleet: what its next answers and hosts are like, and what EC2 has."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from relaunch_local.ecs.engine.fleet import FleetFault, Fleets
from relaunch_local.ecs.engine.model import JsonObject
from relaunch_local.ecs.engine.reservations import CapacityReservation
from relaunch_local.ecs.engine.settings import HostPlan, LaunchTemplate, LaunchTemplateVersion, Purchase


def fleet_controls(fleets: Fleets) -> dict[str, Callable[[JsonObject], Any]]:
    """Return the control calls by name."""
    pools = fleets.pools
    return {
        "fleet": lambda each: fleets.faults.extend(_repeated(FleetFault, each)),
        "host": lambda each: fleets.plans.extend(_repeated(HostPlan, each)),
        "refuse": lambda each: _set(
            pools.refusals, (each["instance_type"], Purchase(each["purchase"]), each.get("zone")), each["code"]
        ),
        "reservation": lambda each: fleets.reservations.add(_reservation(each)),
        "reservation-cancelled": lambda each: fleets.reservations.cancel(each["reservation_id"]),
        "quota": lambda each: _set(pools.vcpu_quotas, (each["family"], Purchase(each["purchase"])), each["vcpus"]),
        "addresses": lambda each: _set(pools.addresses, each["subnet_id"], each["instances"]),
        "subnet": lambda each: _set(pools.subnets, each["subnet_id"], each["zone"]),
        "launch-template": lambda each: fleets.templates.put(_launch_template(each)),
    }


def _repeated(kind: Callable[..., Any], arguments: JsonObject) -> list[Any]:
    members: Any = {name: value for name, value in arguments.items() if name != "times"}
    return [kind(**members)] * arguments.get("times", 1)


def _set(holder: dict[Any, Any], key: Any, value: Any) -> None:
    """Set the value of the key, or remove it if the value is None."""
    if value is None:
        holder.pop(key, None)
    else:
        holder[key] = value


def _reservation(arguments: JsonObject) -> CapacityReservation:
    members = dict[str, Any](arguments)
    for name in {"starts_at", "ends_at"}.intersection(members):
        members[name] = datetime.fromisoformat(members[name])
    return CapacityReservation(**members)


def _launch_template(arguments: JsonObject) -> LaunchTemplate:
    versions = tuple(LaunchTemplateVersion(**each) for each in arguments["versions"])
    return LaunchTemplate(**{**arguments, "versions": versions})
