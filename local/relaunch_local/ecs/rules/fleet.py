"""Validation of CreateFleet (CreateFleet, Amazon EC2 API Reference), of the type `instant` for one instance.

The reference gives no error codes for invalid parameters: these are in EC2's style. What is valid but not simulated is
refused with UnsupportedOperation.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relaunch_local.ecs.errors import EcsError
from relaunch_local.ecs.rules.tags import check_tags

MAX_CONFIGS = 50
MAX_OVERRIDES = 300
SPOT = "spot"
ON_DEMAND = "on-demand"
RESERVED = "reserved-capacity"
CAPACITY_BLOCK = "capacity-block"
"""The type of a Capacity Block, and the older target for one, which is not simulated."""
ON_DEMAND_RESERVATION = "on-demand-capacity-reservation"

_TOKEN = re.compile(r"[\x21-\x7e]{1,64}")
_IMAGE = re.compile(r"ami-([0-9a-f]{8}|[0-9a-f]{17})|resolve:ssm:.+")
_INSTANCE_TYPE = re.compile(r"[a-z0-9-]+\.[a-z0-9-]+")
_TAGGED = ("fleet", "instance", "volume", "network-interface")
_REQUEST = {
    "ClientToken", "DryRun", "LaunchTemplateConfigs", "OnDemandOptions", "ReservedCapacityOptions", "SpotOptions",
    "TagSpecifications", "TargetCapacitySpecification", "Type",
}  # fmt: skip
_TARGET = {"TotalTargetCapacity", "DefaultTargetCapacityType"}
_OPTIONS = {"AllocationStrategy", "SingleInstanceType", "SingleAvailabilityZone"}
_TEMPLATE = {"LaunchTemplateId", "LaunchTemplateName", "Version"}
_OVERRIDE = {"AvailabilityZone", "ImageId", "InstanceType", "Priority", "SubnetId"}

_OPTIONS_OF = {SPOT: "SpotOptions", ON_DEMAND: "OnDemandOptions", RESERVED: "ReservedCapacityOptions"}
_STRATEGIES = {
    SPOT: (
        "lowest-price", "diversified", "capacity-optimized", "capacity-optimized-prioritized",
        "price-capacity-optimized",
    ),
    ON_DEMAND: ("lowest-price", "prioritized"),
}  # fmt: skip
"""The allocation strategies of each market; the first is the default."""


@dataclass(frozen=True, slots=True)
class FleetOverride:
    """An override with the launch template of its configuration."""

    template: Mapping[str, Any]
    """LaunchTemplateSpecification."""
    members: Mapping[str, Any]

    @property
    def view(self) -> dict[str, Any]:
        """LaunchTemplateAndOverrides, which repeats what was sent."""
        return {"LaunchTemplateSpecification": dict(self.template), "Overrides": dict(self.members)}


@dataclass(frozen=True, slots=True)
class FleetRequest:
    """A valid request."""

    market: str
    """`spot`, `on-demand` or `reserved-capacity`."""
    strategy: str
    overrides: tuple[FleetOverride, ...]
    tags: Mapping[str, Mapping[str, str]]
    """Tags by resource type."""
    reservation_id: str = ""
    """The reservation that it launches into, empty without one."""
    reservation_type: str = ""


def parse_create_fleet(request: Mapping[str, Any]) -> FleetRequest:
    """Return the content of a CreateFleet request.

    Raises:
        EcsError: MissingParameter, InvalidParameterValue, InvalidParameterCombination, InvalidClientToken,
            InvalidAMIID.Malformed; UnsupportedOperation for what is not simulated.
    """
    _only(request, _REQUEST, "CreateFleet")
    token = request.get("ClientToken")
    if token is not None and not _TOKEN.fullmatch(token):
        raise EcsError("InvalidClientToken", "A client token has 1 to 64 ASCII characters.")
    fleet_type = request.get("Type", "maintain")
    _refuse(fleet_type not in ("instant", "maintain", "request"), f"Invalid fleet type: {fleet_type}")
    if fleet_type != "instant":
        raise EcsError("UnsupportedOperation", f"The simulator has fleets of the type instant only, not {fleet_type}.")
    market = _market(request)
    strategy = _strategy(request, market)
    reserved = _reserved(request) if market == RESERVED else ("", "")
    return FleetRequest(market, strategy, _overrides(request), _tags(request), *reserved)


def _market(request: Mapping[str, Any]) -> str:
    target = _needed(request, "TargetCapacitySpecification")
    _only(target, _TARGET, "TargetCapacitySpecification")
    total = _needed(target, "TotalTargetCapacity", "TargetCapacitySpecification.")
    _refuse(total < 1, "TotalTargetCapacity must be at least 1.")
    if total > 1:
        raise EcsError("UnsupportedOperation", "The simulator launches one instance in each fleet.")
    market = str(_needed(target, "DefaultTargetCapacityType", "TargetCapacitySpecification."))
    if market == CAPACITY_BLOCK:
        raise EcsError("UnsupportedOperation", f"The simulator does not simulate {market}.")
    _refuse(market not in _OPTIONS_OF, f"Invalid DefaultTargetCapacityType: {market}")
    return market


def _strategy(request: Mapping[str, Any], market: str) -> str:
    for other, name in _OPTIONS_OF.items():
        if other != market and request.get(name):
            raise EcsError("InvalidParameterCombination", f"{name} cannot be used with the target capacity {market}.")
    if market == RESERVED:
        return _STRATEGIES[ON_DEMAND][0]
    options = request.get(_OPTIONS_OF[market], {})
    _only(options, _OPTIONS | ({"InstanceInterruptionBehavior"} if market == SPOT else set()), _OPTIONS_OF[market])
    behavior = options.get("InstanceInterruptionBehavior", "terminate")
    if behavior != "terminate":
        raise EcsError("UnsupportedOperation", f"The simulator does not {behavior} interrupted instances.")
    strategy = str(options.get("AllocationStrategy", _STRATEGIES[market][0]))
    _refuse(strategy not in _STRATEGIES[market], f"Invalid AllocationStrategy for {market}: {strategy}")
    return strategy


def _reserved(request: Mapping[str, Any]) -> tuple[str, str]:
    """Return the ID and the type of the reservation that a request names (ReservedCapacityOptionsRequest)."""
    options = _needed(request, "ReservedCapacityOptions")
    _only(options, {"ReservationTypes", "CapacityReservationTarget"}, "ReservedCapacityOptions")
    types = _needed(options, "ReservationTypes", "ReservedCapacityOptions.")
    target = _needed(options, "CapacityReservationTarget", "ReservedCapacityOptions.")
    _only(target, {"CapacityReservationIds"}, "CapacityReservationTarget")
    ids = _needed(target, "CapacityReservationIds", "CapacityReservationTarget.")
    for each in types:
        _refuse(each not in (CAPACITY_BLOCK, ON_DEMAND_RESERVATION), f"Invalid reservation type: {each}")
    if len(types) > 1 or len(ids) > 1:
        raise EcsError("UnsupportedOperation", "The simulator takes one reservation and its type in each fleet.")
    return ids[0], types[0]


def _overrides(request: Mapping[str, Any]) -> tuple[FleetOverride, ...]:
    configs = _needed(request, "LaunchTemplateConfigs")
    _refuse(len(configs) > MAX_CONFIGS, f"A request has at most {MAX_CONFIGS} launch template configurations.")
    found: list[FleetOverride] = []
    for config in configs:
        template = _needed(config, "LaunchTemplateSpecification", "LaunchTemplateConfigs.")
        _check_template(template)
        if not config.get("Overrides"):
            message = "The simulator has no default VPC: each configuration needs overrides."
            raise EcsError("UnsupportedOperation", message)
        found += [FleetOverride(template, _checked_override(each)) for each in config["Overrides"]]
    _refuse(len(found) > MAX_OVERRIDES, f"A request has at most {MAX_OVERRIDES} overrides.")
    return tuple(found)


def _check_template(template: Mapping[str, Any]) -> None:
    _only(template, _TEMPLATE, "LaunchTemplateSpecification")
    if ("LaunchTemplateId" in template) == ("LaunchTemplateName" in template):
        message = "A LaunchTemplateSpecification has either a LaunchTemplateId or a LaunchTemplateName."
        raise EcsError("InvalidParameterCombination", message)
    _needed(template, "Version", "LaunchTemplateSpecification.")


def _checked_override(override: Mapping[str, Any]) -> Mapping[str, Any]:
    _only(override, _OVERRIDE, "Overrides")
    instance_type = _needed(override, "InstanceType", "Overrides.")
    _refuse(not _INSTANCE_TYPE.fullmatch(instance_type), f"Invalid instance type: {instance_type}")
    subnet = override.get("SubnetId")
    if subnet is None:
        raise EcsError("UnsupportedOperation", "The simulator has no default VPC: each override needs a SubnetId.")
    _refuse("," in subnet, "An override of an instant fleet has one SubnetId.")
    _refuse(override.get("Priority", 0.0) < 0, "A Priority is not negative.")
    image = override.get("ImageId")
    if image is not None and not _IMAGE.fullmatch(image):
        raise EcsError("InvalidAMIID.Malformed", f'Invalid id: "{image}"')
    return override


def _tags(request: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for specification in request.get("TagSpecifications", ()):
        kind = _needed(specification, "ResourceType", "TagSpecifications.")
        _refuse(kind not in _TAGGED, f"'{kind}' is not a valid taggable resource type for this operation.")
        _refuse(kind in found, f"TagSpecifications name the resource type {kind} more than once.")
        found[kind] = _tags_of(specification.get("Tags", ()))
    return found


def _tags_of(tags: Sequence[Mapping[str, str]]) -> dict[str, str]:
    _refuse(not tags, "Tag specification must have at least one tag")
    check_tags([{"key": tag.get("Key", ""), "value": tag.get("Value", "")} for tag in tags], _refuse)
    return {tag["Key"]: tag.get("Value", "") for tag in tags}


def _needed(holder: Mapping[str, Any], name: str, prefix: str = "") -> Any:
    value = holder.get(name)
    if value is None or value in ("", [], {}):
        raise EcsError("MissingParameter", f"The request must contain the parameter {prefix}{name}")
    return value


def _only(holder: Mapping[str, Any], known: set[str], where: str) -> None:
    others = sorted(set(holder) - known)
    if others:
        raise EcsError("UnsupportedOperation", f"The simulator does not simulate {', '.join(others)} of {where}.")


def _refuse(condition: bool, message: str) -> None:  # noqa: FBT001 - is read as an assert
    if condition:
        raise EcsError("InvalidParameterValue", message)
