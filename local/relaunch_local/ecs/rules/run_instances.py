"""Validation of RunInstances (Amazon EC2 API Reference) with a launch template, without network settings.

What is valid but not simulated is refused with UnsupportedOperation: spot, and what the launch template has to say.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from relaunch_local.ecs.errors import EcsError
from relaunch_local.ecs.rules.fleet import (
    CAPACITY_BLOCK,
    FleetOverride,
    check_template,
    check_token,
    checked_place,
    needed,
    only,
    parse_tags,
    refuse,
)

_REQUEST = {
    "CapacityReservationSpecification", "ClientToken", "DryRun", "ImageId", "InstanceMarketOptions", "InstanceType",
    "LaunchTemplate", "MaxCount", "MinCount", "SubnetId", "TagSpecifications",
}  # fmt: skip
_PLACE = ("ImageId", "InstanceType", "SubnetId")
_TAGGED = ("instance", "volume", "network-interface")


@dataclass(frozen=True, slots=True)
class InstancesRequest:
    """A valid request: at least `minimum` and at most `total` instances of one type in one subnet."""

    minimum: int
    total: int
    place: FleetOverride
    tags: Mapping[str, Mapping[str, str]]
    """Tags by resource type."""
    market: str = ""
    """`capacity-block`, or empty for on-demand."""
    reservation_id: str = ""


def parse_run_instances(request: Mapping[str, Any]) -> InstancesRequest:
    """Return the content of a RunInstances request.

    Raises:
        EcsError: MissingParameter, InvalidParameterValue, InvalidParameterCombination, InvalidClientToken,
            InvalidAMIID.Malformed; UnsupportedOperation for what is not simulated.
    """
    only(request, _REQUEST, "RunInstances")
    check_token(request)
    minimum = _count(request, "MinCount")
    total = _count(request, "MaxCount")
    refuse(minimum > total, f"MinCount ({minimum}) exceeds MaxCount ({total}).")
    template = needed(request, "LaunchTemplate")
    check_template(template)
    place = checked_place({name: request[name] for name in _PLACE if name in request})
    market = _market(request)
    reservation_id = _reservation(request)
    if market and not reservation_id:
        raise EcsError("MissingParameter", "A launch into a Capacity Block names its CapacityReservationId.")
    # Its default version, where none is named.
    override = FleetOverride({"Version": "$Default", **template}, place)
    tags = parse_tags(request, _TAGGED)
    return InstancesRequest(minimum, total, override, tags, market, reservation_id)


def _count(request: Mapping[str, Any], name: str) -> int:
    if request.get(name) is None:
        raise EcsError("MissingParameter", f"The request must contain the parameter {name}")
    count = int(request[name])
    refuse(count < 1, f"Value ({count}) for parameter {name} is invalid. Expecting a positive number.")
    return count


def _market(request: Mapping[str, Any]) -> str:
    options = request.get("InstanceMarketOptions")
    if options is None:
        return ""
    only(options, {"MarketType"}, "InstanceMarketOptions")
    market = str(needed(options, "MarketType", "InstanceMarketOptions."))
    refuse(market not in ("spot", CAPACITY_BLOCK), f"Invalid MarketType: {market}")
    if market == "spot":
        raise EcsError("UnsupportedOperation", "The simulator launches spot instances by CreateFleet alone.")
    return market


def _reservation(request: Mapping[str, Any]) -> str:
    specification = request.get("CapacityReservationSpecification")
    if specification is None:
        return ""
    only(specification, {"CapacityReservationTarget"}, "CapacityReservationSpecification")
    target = needed(specification, "CapacityReservationTarget", "CapacityReservationSpecification.")
    only(target, {"CapacityReservationId"}, "CapacityReservationTarget")
    return str(needed(target, "CapacityReservationId", "CapacityReservationTarget."))
