"""What the error codes of CreateFleet and RunInstances mean.

A code comes in `Errors[]` of CreateFleet's response, where it is about one override and final for the client token, or
as the error of the whole call. Sources: "Error codes for the Amazon EC2 API" (Amazon EC2 Developer Guide), and the
lists of other launchers for the codes that only fleets have.
"""

import re
from collections.abc import Iterable
from types import MappingProxyType

from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from relaunch.adapters.aws.errors import error_code, error_message, is_throttled, is_throttling_code, is_transient
from relaunch.core.machines.events import FleetAnswer, FleetDeferred, FleetRefused, FleetUncertain, Refusal, RefusalKind

TYPE_NOT_IN_ZONE = "InvalidFleetConfiguration"
"""EC2 has one code and text for a type that a zone does not offer and for one that does not exist."""

_UNFULFILLED = "UnfulfillableCapacity"
_TO_DO = frozenset({RefusalKind.CONFIGURATION, RefusalKind.NOT_PERMITTED, RefusalKind.ACCOUNT_LIMIT})
_KINDS = MappingProxyType(
    {
        "InsufficientInstanceCapacity": RefusalKind.NO_CAPACITY,
        _UNFULFILLED: RefusalKind.NO_CAPACITY,
        "Unsupported": RefusalKind.UNSUPPORTED,
        "InsufficientReservedInstanceCapacity": RefusalKind.PRICE,
        "ReservationCapacityExceeded": RefusalKind.PRICE,
        "SpotMaxPriceTooLow": RefusalKind.PRICE,
        "InsufficientFreeAddressesInSubnet": RefusalKind.SUBNET_FULL,
        "InstanceLimitExceeded": RefusalKind.QUOTA,
        "MaxSpotInstanceCountExceeded": RefusalKind.QUOTA,
        "VcpuLimitExceeded": RefusalKind.QUOTA,
        "Blocked": RefusalKind.ACCOUNT_LIMIT,
        "MaxFleetCountExceeded": RefusalKind.ACCOUNT_LIMIT,
        "OptInRequired": RefusalKind.ACCOUNT_LIMIT,
        "PendingVerification": RefusalKind.ACCOUNT_LIMIT,
        "TargetCapacityLimitExceeded": RefusalKind.ACCOUNT_LIMIT,
        "VolumeLimitExceeded": RefusalKind.ACCOUNT_LIMIT,
        "AuthFailure.ServiceLinkedRoleCreationNotPermitted": RefusalKind.NO_SPOT_ROLE,
    }
)
_NOT_PERMITTED = re.compile(r"AccessDenied|AuthFailure|InvalidClientTokenId|SsmAccessDenied|UnauthorizedOperation")
_CONFIGURATION = re.compile(r"Invalid|Malformed|Missing|UnsupportedOperation")
# An account on AWS's Free plan has six small types (InvalidParameterCombination; aws-samples/eks-workshop-v2#1644).
_FREE_PLAN = "not eligible for Free Tier"
# The request with this client token was another one, or its instance has ended (IdempotentInstanceTerminated), or EC2
# does not say what became of it.
_UNCERTAIN = re.compile(r"Idempotent.*|InvalidClientToken|Internal(Error|Failure)|(Service)?Unavailable")


def kind_of(code: str, message: str = "") -> RefusalKind:
    """Return what a code means, UNKNOWN for one that is not documented."""
    if _FREE_PLAN in message:
        return RefusalKind.ACCOUNT_LIMIT
    if code in _KINDS:
        return _KINDS[code]
    # A reservation that was cancelled or has ended since selection, or a block that EC2 has not activated yet
    # (InvalidCapacityReservationState.PendingActivation): the next one reads it as it is now.
    if code.startswith("InvalidCapacityReservation"):
        return RefusalKind.PRICE
    if is_throttling_code(code):
        return RefusalKind.THROTTLED
    if _NOT_PERMITTED.match(code):
        return RefusalKind.NOT_PERMITTED
    return RefusalKind.CONFIGURATION if _CONFIGURATION.match(code) else RefusalKind.UNKNOWN


def without_consequences(refusals: Iterable[Refusal]) -> tuple[Refusal, ...]:
    """Return the refusals without those that only say that the fleet was not fulfilled, if others say why.

    EC2 answers UnfulfillableCapacity "due to your request configuration": beside a wrong subnet, a missing permission
    or a limit of the account it says nothing of capacity.
    """
    given = tuple(refusals)
    if not any(each.kind in _TO_DO for each in given):
        return given
    return tuple(each for each in given if each.code != _UNFULFILLED)


def is_uncertain(code: str) -> bool:
    """Return whether an instance may have been launched in spite of this code."""
    return _UNCERTAIN.fullmatch(code) is not None


def answer_of_error(error: ClientError | BotoCoreError, action: str = "CreateFleet") -> FleetAnswer:
    """Return the answer that an error of the whole call is; without a response an instance may have been launched."""
    if isinstance(error, ParamValidationError):
        return FleetRefused((Refusal(RefusalKind.CONFIGURATION, error_code(error), str(error)),))
    if not isinstance(error, ClientError):
        return FleetUncertain(f"no answer to {action}: {error}")
    code = error_code(error)
    message = error_message(error)
    kind = kind_of(code, message)
    reason = f"{code}: {message}"
    if is_throttled(error):
        return FleetDeferred(reason)
    # Some codes of refusals have status 500 as well (InsufficientInstanceCapacity).
    if is_uncertain(code) or (kind is RefusalKind.UNKNOWN and is_transient(error)):
        return FleetUncertain(reason)
    return FleetRefused((Refusal(kind, code, message),), is_raised=True)
