"""Validation of CreateFleet (CreateFleet, Amazon EC2 API Reference), of the type `instant`.

The reference gives no error codes for invalid parameters: these are in EC2's style. What is valid but not simulated is
refused with UnsupportedOperation.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relaunch_local.ecs.errors import EcsError
from relaunch_local.ecs.rules.tags import check_tags

MAX_CONFIGS = 50
MAX_OVERRIDES = 300
MAX_TARGET = 10_000
"""The target capacity of one fleet ("Quotas for EC2 Fleet and Spot Fleet", Amazon EC2 User Guide)."""
MAX_MINIMUM = 1_000
"""The most of MinTargetCapacity (SpotOptionsRequest and OnDemandOptionsRequest)."""
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
_OPTIONS = {"AllocationStrategy", "MinTargetCapacity", "SingleInstanceType", "SingleAvailabilityZone"}
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
class FleetTarget:
    """How many instances a fleet is to have, and which of them must be alike."""

    total: int = 1
    minimum: int = 0
    """With fewer than this none is launched; 0: as many as there are."""
    is_of_one_type: bool = False
    is_in_one_zone: bool = False


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
    target: FleetTarget = FleetTarget()


def parse_create_fleet(request: Mapping[str, Any]) -> FleetRequest:
    """Return the content of a CreateFleet request.

    Raises:
        EcsError: MissingParameter, InvalidParameterValue, InvalidParameterCombination, InvalidClientToken,
            InvalidAMIID.Malformed, TargetCapacityLimitExceeded, UnknownParameter; UnsupportedOperation for what is
            not simulated.
    """
    only(request, _REQUEST, "CreateFleet")
    check_token(request)
    fleet_type = request.get("Type", "maintain")
    refuse(fleet_type not in ("instant", "maintain", "request"), f"Invalid fleet type: {fleet_type}")
    if fleet_type != "instant":
        raise EcsError("UnsupportedOperation", f"The simulator has fleets of the type instant only, not {fleet_type}.")
    market = _market(request)
    strategy = _strategy(request, market)
    reserved = _reserved(request) if market == RESERVED else ("", "")
    tags = parse_tags(request, _TAGGED)
    return FleetRequest(market, strategy, _overrides(request), tags, *reserved, _target(request, market, strategy))


def check_token(request: Mapping[str, Any]) -> None:
    """Raise InvalidClientToken for a client token that EC2 does not take."""
    token = request.get("ClientToken")
    if token is not None and not _TOKEN.fullmatch(token):
        raise EcsError("InvalidClientToken", "A client token has 1 to 64 ASCII characters.")


def _market(request: Mapping[str, Any]) -> str:
    target = needed(request, "TargetCapacitySpecification")
    only(target, _TARGET, "TargetCapacitySpecification")
    total = needed(target, "TotalTargetCapacity", "TargetCapacitySpecification.")
    refuse(total < 1, "TotalTargetCapacity must be at least 1.")
    if total > MAX_TARGET:
        raise EcsError("TargetCapacityLimitExceeded", f"The target capacity of a fleet is at most {MAX_TARGET}.")
    market = str(needed(target, "DefaultTargetCapacityType", "TargetCapacitySpecification."))
    if market == CAPACITY_BLOCK:
        raise EcsError("UnsupportedOperation", f"The simulator does not simulate {market}.")
    refuse(market not in _OPTIONS_OF, f"Invalid DefaultTargetCapacityType: {market}")
    return market


def _target(request: Mapping[str, Any], market: str, strategy: str) -> FleetTarget:
    total = request["TargetCapacitySpecification"]["TotalTargetCapacity"]
    if total > 1 and strategy == "diversified":
        raise EcsError("UnsupportedOperation", "The simulator does not spread instances over pools.")
    options = request.get(_OPTIONS_OF[market], {})
    minimum = options.get("MinTargetCapacity")
    target = FleetTarget(
        total, minimum or 0, options.get("SingleInstanceType", False), options.get("SingleAvailabilityZone", False)
    )
    if minimum is not None:
        refuse(not 1 <= minimum <= MAX_MINIMUM, f"MinTargetCapacity must be 1 to {MAX_MINIMUM}.")
        refuse(minimum > total, f"MinTargetCapacity ({minimum}) exceeds the TotalTargetCapacity ({total}).")
        if not target.is_of_one_type and not target.is_in_one_zone:
            message = "MinTargetCapacity requires SingleInstanceType or SingleAvailabilityZone."
            raise EcsError("MissingParameter", message)
    return target


def _strategy(request: Mapping[str, Any], market: str) -> str:
    for other, name in _OPTIONS_OF.items():
        if other != market and request.get(name):
            raise EcsError("InvalidParameterCombination", f"{name} cannot be used with the target capacity {market}.")
    if market == RESERVED:
        return _STRATEGIES[ON_DEMAND][0]
    options = request.get(_OPTIONS_OF[market], {})
    only(options, _OPTIONS | ({"InstanceInterruptionBehavior"} if market == SPOT else set()), _OPTIONS_OF[market])
    behavior = options.get("InstanceInterruptionBehavior", "terminate")
    if behavior != "terminate":
        raise EcsError("UnsupportedOperation", f"The simulator does not {behavior} interrupted instances.")
    strategy = str(options.get("AllocationStrategy", _STRATEGIES[market][0]))
    refuse(strategy not in _STRATEGIES[market], f"Invalid AllocationStrategy for {market}: {strategy}")
    return strategy


def _reserved(request: Mapping[str, Any]) -> tuple[str, str]:
    """Return the ID and the type of the reservation that a request names (ReservedCapacityOptionsRequest)."""
    options = needed(request, "ReservedCapacityOptions")
    if "MinTargetCapacity" in options:
        # ReservedCapacityOptionsRequest has none: a fleet fills a reservation as far as it goes.
        raise EcsError("UnknownParameter", "The parameter ReservedCapacityOptions.MinTargetCapacity is not recognized")
    only(options, {"ReservationTypes", "CapacityReservationTarget"}, "ReservedCapacityOptions")
    types = needed(options, "ReservationTypes", "ReservedCapacityOptions.")
    target = needed(options, "CapacityReservationTarget", "ReservedCapacityOptions.")
    only(target, {"CapacityReservationIds"}, "CapacityReservationTarget")
    ids = needed(target, "CapacityReservationIds", "CapacityReservationTarget.")
    for each in types:
        refuse(each not in (CAPACITY_BLOCK, ON_DEMAND_RESERVATION), f"Invalid reservation type: {each}")
    if len(types) > 1 or len(ids) > 1:
        raise EcsError("UnsupportedOperation", "The simulator takes one reservation and its type in each fleet.")
    return ids[0], types[0]


def _overrides(request: Mapping[str, Any]) -> tuple[FleetOverride, ...]:
    configs = needed(request, "LaunchTemplateConfigs")
    refuse(len(configs) > MAX_CONFIGS, f"A request has at most {MAX_CONFIGS} launch template configurations.")
    found: list[FleetOverride] = []
    for config in configs:
        template = needed(config, "LaunchTemplateSpecification", "LaunchTemplateConfigs.")
        check_template(template)
        needed(template, "Version", "LaunchTemplateSpecification.")
        if not config.get("Overrides"):
            message = "The simulator has no default VPC: each configuration needs overrides."
            raise EcsError("UnsupportedOperation", message)
        found += [FleetOverride(template, _checked_override(each)) for each in config["Overrides"]]
    refuse(len(found) > MAX_OVERRIDES, f"A request has at most {MAX_OVERRIDES} overrides.")
    return tuple(found)


def check_template(template: Mapping[str, Any]) -> None:
    """Raise an error for what names no launch template, or two."""
    only(template, _TEMPLATE, "LaunchTemplateSpecification")
    if ("LaunchTemplateId" in template) == ("LaunchTemplateName" in template):
        message = "A LaunchTemplateSpecification has either a LaunchTemplateId or a LaunchTemplateName."
        raise EcsError("InvalidParameterCombination", message)


def _checked_override(override: Mapping[str, Any]) -> Mapping[str, Any]:
    only(override, _OVERRIDE, "Overrides")
    refuse(override.get("Priority", 0.0) < 0, "A Priority is not negative.")
    return checked_place(override)


def checked_place(override: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what names an instance type, a subnet and perhaps an image, if each is well-formed; raises an error."""
    instance_type = needed(override, "InstanceType", "Overrides.")
    refuse(not _INSTANCE_TYPE.fullmatch(instance_type), f"Invalid instance type: {instance_type}")
    subnet = override.get("SubnetId")
    if subnet is None:
        raise EcsError("UnsupportedOperation", "The simulator has no default VPC: each override needs a SubnetId.")
    refuse("," in subnet, "An override of an instant fleet has one SubnetId.")
    image = override.get("ImageId")
    if image is not None and not _IMAGE.fullmatch(image):
        raise EcsError("InvalidAMIID.Malformed", f'Invalid id: "{image}"')
    return override


def parse_tags(request: Mapping[str, Any], kinds: Collection[str]) -> dict[str, dict[str, str]]:
    """Return the tags of a request by resource type, of which `kinds` can be tagged; raises InvalidParameterValue."""
    found: dict[str, dict[str, str]] = {}
    for specification in request.get("TagSpecifications", ()):
        kind = needed(specification, "ResourceType", "TagSpecifications.")
        refuse(kind not in kinds, f"'{kind}' is not a valid taggable resource type for this operation.")
        refuse(kind in found, f"TagSpecifications name the resource type {kind} more than once.")
        found[kind] = _tags_of(specification.get("Tags", ()))
    return found


def _tags_of(tags: Sequence[Mapping[str, str]]) -> dict[str, str]:
    refuse(not tags, "Tag specification must have at least one tag")
    check_tags([{"key": tag.get("Key", ""), "value": tag.get("Value", "")} for tag in tags], refuse)
    return {tag["Key"]: tag.get("Value", "") for tag in tags}


def needed(holder: Mapping[str, Any], name: str, prefix: str = "") -> Any:
    """Return a member that a request must have; raises MissingParameter."""
    value = holder.get(name)
    if value is None or value in ("", [], {}):
        raise EcsError("MissingParameter", f"The request must contain the parameter {prefix}{name}")
    return value


def only(holder: Mapping[str, Any], known: set[str], where: str) -> None:
    """Raise UnsupportedOperation for members that are not simulated."""
    others = sorted(set(holder) - known)
    if others:
        raise EcsError("UnsupportedOperation", f"The simulator does not simulate {', '.join(others)} of {where}.")


def refuse(condition: bool, message: str) -> None:  # noqa: FBT001 - is read as an assert
    """Raise InvalidParameterValue if the condition holds."""
    if condition:
        raise EcsError("InvalidParameterValue", message)
