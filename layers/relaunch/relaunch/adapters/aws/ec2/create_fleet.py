"""Builds CreateFleet requests, and maps responses to answers.

Sources: "CreateFleet" (Amazon EC2 API Reference); "EC2 Fleet quotas" and "Use allocation strategies to determine how
EC2 Fleet or Spot Fleet fulfills Spot and On-Demand capacity" (Amazon EC2 User Guide).
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from relaunch.adapters.aws.ec2.fleet_errors import TYPE_NOT_IN_ZONE, is_uncertain, kind_of, without_consequences
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.machines.events import (
    FleetAnswer,
    FleetRefused,
    FleetUncertain,
    InstanceLaunched,
    Refusal,
    RefusalKind,
)
from relaunch.core.machines.machine import FleetRequest
from relaunch.core.machines.settings import MACHINE_TAG, STACK_TAG
from relaunch.core.offerings.offering import OfferingKey

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import (
        CreateFleetRequestTypeDef,
        CreateFleetResultTypeDef,
        FleetLaunchTemplateSpecificationRequestTypeDef,
        TagSpecificationTypeDef,
    )

# EC2 documents 300 launch specifications for the other types of fleets and nothing for instant ones; large requests are
# known to fail, and other launchers stay at 60.
MAX_OVERRIDES = 60
_CLIENT_TOKEN = re.compile(r"[!-~]{1,64}", re.ASCII)
_VERSION = re.compile(r"[1-9][0-9]*", re.ASCII)
# Keys that instance metadata offers; a template with tags in metadata fails every launch with another key.
_TAG_KEY = re.compile(r"(?!aws:)(?!\.{1,2}\Z)(?!_index\Z)[A-Za-z0-9+\-=.,_:@]{1,127}", re.ASCII)
_MAX_TAGS = 50
_MAX_TAG_VALUE = 256


def check_limits(request: FleetRequest, stack: str) -> tuple[str, ...]:
    """Return why the request is not sent: limits of EC2 that the SDK does not check, and tags that are missing."""
    violations = [*_override_violations(request), *_tag_violations(request.tags, stack)]
    if request.size > 1 and len(request.overrides) > 1:
        violations.append(
            f"a request for {request.size} instances has one type in one zone, not {len(request.overrides)}"
        )
    if not _CLIENT_TOKEN.fullmatch(request.client_token):
        violations.append(f"the client token must be 1 to 64 of ASCII 33 to 126: {request.client_token!r}")
    if not _VERSION.fullmatch(request.launch_template_version):
        # $Default stays at the first version when a stack is updated, $Latest may change between two sends.
        violations.append(f"the launch template version must be a number: {request.launch_template_version!r}")
    if (request.purchase is PurchaseOption.RESERVED) != (request.reservation is not None):
        violations.append(
            f"a {request.purchase} request must{'' if request.reservation is None else ' not'} name a reservation"
        )
    return tuple(violations)


def _override_violations(request: FleetRequest) -> list[str]:
    count = len(request.overrides)
    violations = [] if 0 < count <= MAX_OVERRIDES else [f"a request has 1 to {MAX_OVERRIDES} overrides, not {count}"]
    pairs = Counter((each.offering.instance_type, each.offering.zone) for each in request.overrides)
    violations += [
        f"EC2 takes one override of {instance_type} in {zone}, not {number}: keep one subnet per zone"
        for (instance_type, zone), number in pairs.items()
        if number > 1
    ]
    for each in request.overrides:
        if not each.offering.zone or not each.subnet_id:
            violations.append(f"the override of {each.offering} must have a zone and a subnet")
        if each.offering.purchase is not request.purchase:
            violations.append(f"the override of {each.offering} is not {request.purchase}")
        if each.priority < 0:
            violations.append(f"the priority of {each.offering} must be 0 or more: {each.priority}")
    return violations


def _tag_violations(tags: Mapping[str, str], stack: str) -> list[str]:
    violations = [] if len(tags) <= _MAX_TAGS else [f"EC2 takes {_MAX_TAGS} tags, not {len(tags)}"]
    for key, value in tags.items():
        if not _TAG_KEY.fullmatch(key):
            violations.append(
                f"the tag key {key!r} must be 1 to 127 of letters, digits and + - = . , _ : @, and not begin with aws:"
            )
        if len(value) > _MAX_TAG_VALUE:
            violations.append(f"the value of the tag {key} has {len(value)} characters, EC2 takes {_MAX_TAG_VALUE}")
    if not tags.get(MACHINE_TAG):
        violations.append(f"without the tag {MACHINE_TAG} the instance could not be found again")
    if tags.get(STACK_TAG) != stack:
        violations.append(f"the tag {STACK_TAG} must be {stack!r}, not {tags.get(STACK_TAG)!r}")
    return violations


def build_create_fleet(request: FleetRequest) -> "CreateFleetRequestTypeDef":
    """Return the parameters of CreateFleet, identical for identical requests, as their client token requires.

    There is no maximum price, which would raise the rate of interruptions. Volumes and fleet have the instance's tags.
    """
    is_ordered = request.purchase is PurchaseOption.ON_DEMAND and len({each.priority for each in request.overrides}) > 1
    overrides = [
        {
            "InstanceType": each.offering.instance_type,
            "SubnetId": each.subnet_id,
            # EC2 echoes it in errors, which name the zone by it.
            "AvailabilityZone": each.offering.zone,
            **({"Priority": each.priority} if is_ordered else {}),
        }
        for each in request.overrides
    ]
    parameters: dict[str, Any] = {
        "Type": "instant",
        "ClientToken": request.client_token,
        "TargetCapacitySpecification": {
            "TotalTargetCapacity": request.size,
            "DefaultTargetCapacityType": "reserved-capacity" if request.reservation else str(request.purchase),
        },
        "LaunchTemplateConfigs": [
            {
                "LaunchTemplateSpecification": launch_template_of(request),
                "Overrides": overrides,
            }
        ],
        "TagSpecifications": tags_of(request, "instance", "volume", "fleet"),
    }
    # EC2 refuses the options of the other purchase option.
    if request.purchase is PurchaseOption.SPOT:
        parameters["SpotOptions"] = {"AllocationStrategy": "price-capacity-optimized"}
    elif request.reservation is not None:
        # Without ReservedCapacityFallbackOptions EC2 falls back to no other purchase option.
        parameters["ReservedCapacityOptions"] = {
            "ReservationTypes": [request.reservation.type.value],
            "CapacityReservationTarget": {"CapacityReservationIds": [request.reservation.reservation_id]},
        }
    else:
        parameters["OnDemandOptions"] = {"AllocationStrategy": "prioritized" if is_ordered else "lowest-price"}
    if request.size > 1:
        # "If this minimum capacity isn't reached, no instances are launched"; it needs one of the other two.
        options = parameters["SpotOptions" if request.purchase is PurchaseOption.SPOT else "OnDemandOptions"]
        options |= {"SingleInstanceType": True, "SingleAvailabilityZone": True, "MinTargetCapacity": request.size}
    return cast("CreateFleetRequestTypeDef", parameters)


def launch_template_of(request: FleetRequest) -> "FleetLaunchTemplateSpecificationRequestTypeDef":
    """Return the launch template with the number of its version."""
    return {"LaunchTemplateId": request.launch_template_id, "Version": request.launch_template_version}


def tags_of(request: FleetRequest, *kinds: str) -> "list[TagSpecificationTypeDef]":
    """Return the tags of what is made of these kinds, in one order for identical requests."""
    tags = [{"Key": key, "Value": value} for key, value in sorted(request.tags.items())]
    specifications: list[Any] = [{"ResourceType": kind, "Tags": tags} for kind in kinds]
    return specifications


def answer_of_response(request: FleetRequest, response: "CreateFleetResultTypeDef") -> FleetAnswer:
    """Return the answer of a response; instances win over the errors beside them.

    Of several instances, which a target capacity of one excludes, the first is the machine's; all have its tag.
    """
    refusals = _refusals(request, response.get("Errors", ()))
    launched = [(each, entry) for entry in response.get("Instances", ()) for each in entry.get("InstanceIds", ())]
    if launched:
        (instance_id, entry), *others = launched
        offering = _offering(request, entry)
        if offering is None:
            return FleetUncertain(f"CreateFleet launched {instance_id} and did not say its type and zone")
        rest = tuple(each for each, _ in others) if request.size > 1 else ()
        return InstanceLaunched(instance_id, offering, refusals, others=rest)
    unclear = [refusal for refusal in refusals if is_uncertain(refusal.code)]
    if unclear:
        return FleetUncertain("; ".join(f"{refusal.code}: {refusal.message}" for refusal in unclear))
    return FleetRefused(refusals) if refusals else FleetUncertain("CreateFleet answered with no instance and no error")


def _refusals(request: FleetRequest, errors: Sequence[Mapping[str, Any]]) -> tuple[Refusal, ...]:
    given = [(error.get("ErrorCode", ""), error.get("ErrorMessage", ""), error) for error in errors]
    refusals = [Refusal(kind_of(code, text), code, text, _offering(request, error)) for code, text, error in given]
    not_in_zone = {refusal.offering for refusal in refusals if refusal.code == TYPE_NOT_IN_ZONE}
    is_whole_request = None in not_in_zone and all(refusal.code == TYPE_NOT_IN_ZONE for refusal in refusals)
    # A zone may lack a type; that several lack it is rather a fault of the request.
    offerings = {each.offering for each in request.overrides}
    is_fault = len(offerings) > 1 and (is_whole_request or not_in_zone >= offerings)
    kind = RefusalKind.CONFIGURATION if is_fault else RefusalKind.UNSUPPORTED
    return without_consequences(
        Refusal(kind, refusal.code, refusal.message, refusal.offering) if refusal.code == TYPE_NOT_IN_ZONE else refusal
        for refusal in dict.fromkeys(refusals)
    )


def _offering(request: FleetRequest, entry: Mapping[str, Any]) -> OfferingKey | None:
    """Return what an entry of `Instances` or `Errors` is about; None if it does not say the type and the zone."""
    said = {**entry.get("LaunchTemplateAndOverrides", {}).get("Overrides", {}), **entry}
    # What EC2 says of an instance in a reservation is not documented; the request has nothing else.
    lifecycle = request.purchase if request.reservation else said.get("Lifecycle", request.purchase)
    if lifecycle not in set(PurchaseOption) or not said.get("InstanceType") or not said.get("AvailabilityZone"):
        return None
    return OfferingKey(said["InstanceType"], said["AvailabilityZone"], PurchaseOption(lifecycle))
