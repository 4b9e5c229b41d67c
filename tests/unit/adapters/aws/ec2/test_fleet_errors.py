"""What the codes of CreateFleet mean, in a response and as errors of the whole call."""

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    NoCredentialsError,
    ReadTimeoutError,
)
from botocore.stub import Stubber

from fakes.fleet import STACK, make_fleet_request
from fakes.unreachable_aws import UnreachableAws
from relaunch.adapters.aws.ec2.fleet import Ec2Fleet
from relaunch.core.machines.events import FleetAnswer, FleetDeferred, FleetRefused, FleetUncertain, Refusal, RefusalKind

SERVICE = "ec2"
URL = "http://127.0.0.1:9"

NO_CAPACITY = ("InsufficientInstanceCapacity", "UnfulfillableCapacity")
PRICE = ("SpotMaxPriceTooLow", "ReservationCapacityExceeded")
QUOTA = ("MaxSpotInstanceCountExceeded", "VcpuLimitExceeded", "InstanceLimitExceeded")
ACCOUNT_LIMIT = (
    *("VolumeLimitExceeded", "TargetCapacityLimitExceeded", "MaxFleetCountExceeded"),
    *("Blocked", "PendingVerification", "OptInRequired"),
)
CONFIGURATION = (
    *(
        "InvalidFleetConfig",
        "InvalidFleetConfiguration",
        "InvalidParameter",
        "InvalidParameterValue",
        "InvalidParameterCombination",
    ),
    *("MissingParameter", "InvalidInput", "InvalidAMIID.NotFound", "InvalidAMIID.Malformed"),
    *("InvalidBlockDeviceMapping", "InvalidUserData.Malformed", "InvalidLaunchTemplateId.NotFound"),
    *("InvalidLaunchTemplateId.VersionNotFound", "InvalidLaunchTemplateName.NotFoundException"),
    *("InvalidSubnetID.NotFound", "InvalidGroup.NotFound", "UnsupportedOperation", "MalformedQueryString"),
)
NOT_PERMITTED = (
    *("UnauthorizedOperation", "SsmAccessDenied", "AuthFailure", "AccessDenied", "InvalidClientTokenId"),
    "UnauthorizedOperation.SomethingNew",
)
KINDS = {
    **dict.fromkeys(NO_CAPACITY, RefusalKind.NO_CAPACITY),
    "Unsupported": RefusalKind.UNSUPPORTED,
    **dict.fromkeys(PRICE, RefusalKind.PRICE),
    "InsufficientFreeAddressesInSubnet": RefusalKind.SUBNET_FULL,
    **dict.fromkeys(QUOTA, RefusalKind.QUOTA),
    **dict.fromkeys(ACCOUNT_LIMIT, RefusalKind.ACCOUNT_LIMIT),
    **dict.fromkeys(CONFIGURATION, RefusalKind.CONFIGURATION),
    **dict.fromkeys(NOT_PERMITTED, RefusalKind.NOT_PERMITTED),
    "AuthFailure.ServiceLinkedRoleCreationNotPermitted": RefusalKind.NO_SPOT_ROLE,
    "SomethingNew": RefusalKind.UNKNOWN,
    "": RefusalKind.UNKNOWN,
}
THROTTLES = ("RequestLimitExceeded", "Throttling", "ThrottlingException", "RequestThrottled")
UNCERTAIN = ("InternalError", "InternalFailure", "Unavailable", "ServiceUnavailable")
SPENT_TOKEN = ("IdempotentParameterMismatch", "IdempotentInstanceTerminated", "InvalidClientToken")


def answer_to_code(stubber: Stubber, code: str) -> FleetAnswer:
    """Return the answer to a response without an instance and with this code for the one override."""
    echo = {"Overrides": {"InstanceType": "g6.xlarge", "AvailabilityZone": "us-east-1a"}}
    error = {"ErrorCode": code, "ErrorMessage": "so it is", "Lifecycle": "spot", "LaunchTemplateAndOverrides": echo}
    stubber.add_response("create_fleet", {"Instances": [], "Errors": [error]})
    return Ec2Fleet(stubber.client, stubber.client, STACK).request(make_fleet_request())


def answer_to_error(stubber: Stubber, code: str, status: int = 400) -> FleetAnswer:
    stubber.add_client_error("create_fleet", code, "so it is", status)
    return Ec2Fleet(stubber.client, stubber.client, STACK).request(make_fleet_request())


# In a response to a request with one override it is about that type in that zone.
IN_RESPONSE = {**KINDS, "InvalidFleetConfiguration": RefusalKind.UNSUPPORTED}


@pytest.mark.parametrize(
    ("code", "kind"), [*IN_RESPONSE.items(), *((code, RefusalKind.THROTTLED) for code in THROTTLES)]
)
def test_a_code_in_the_response_is_a_refusal_of_its_kind(stubber: Stubber, code: str, kind: RefusalKind) -> None:
    offering = make_fleet_request().overrides[0].offering

    assert answer_to_code(stubber, code) == FleetRefused((Refusal(kind, code, "so it is", offering),))


@pytest.mark.parametrize("code", [*UNCERTAIN, *SPENT_TOKEN])
def test_a_server_error_in_the_response_leaves_open_what_was_launched(stubber: Stubber, code: str) -> None:
    assert answer_to_code(stubber, code) == FleetUncertain(f"{code}: so it is")


@pytest.mark.parametrize(("code", "kind"), KINDS.items())
def test_an_error_of_the_call_is_a_refusal_of_the_whole_request(stubber: Stubber, code: str, kind: RefusalKind) -> None:
    assert answer_to_error(stubber, code) == FleetRefused((Refusal(kind, code, "so it is", None),), is_raised=True)


def test_the_free_plan_of_an_account_is_no_fault_of_the_launch_template(stubber: Stubber) -> None:
    message = "The specified instance type is not eligible for Free Tier. For a list of Free Tier instance types, run"
    stubber.add_client_error("create_fleet", "InvalidParameterCombination", message, 400)

    answer = Ec2Fleet(stubber.client, stubber.client, STACK).request(make_fleet_request())

    assert isinstance(answer, FleetRefused)
    assert [each.kind for each in answer.refusals] == [RefusalKind.ACCOUNT_LIMIT]


@pytest.mark.parametrize("code", THROTTLES)
@pytest.mark.parametrize("status", [400, 503])
def test_a_throttled_call_is_sent_again_whatever_its_status(stubber: Stubber, code: str, status: int) -> None:
    assert answer_to_error(stubber, code, status) == FleetDeferred(f"{code}: so it is")


@pytest.mark.parametrize("code", SPENT_TOKEN)
def test_a_token_that_was_used_before_may_have_launched_an_instance(stubber: Stubber, code: str) -> None:
    assert answer_to_error(stubber, code) == FleetUncertain(f"{code}: so it is")


@pytest.mark.parametrize(
    ("code", "status"),
    [*((code, 500) for code in UNCERTAIN), ("", 502), ("503", 503), ("SomethingNew", 500), ("ExpiredToken", 400)],
)
def test_a_server_error_of_the_call_leaves_open_what_was_launched(stubber: Stubber, code: str, status: int) -> None:
    assert answer_to_error(stubber, code, status) == FleetUncertain(f"{code}: so it is")


@pytest.mark.parametrize("code", NO_CAPACITY)
def test_a_refusal_that_comes_as_a_server_error_is_one(stubber: Stubber, code: str) -> None:
    refused = FleetRefused((Refusal(RefusalKind.NO_CAPACITY, code, "so it is"),), is_raised=True)
    assert answer_to_error(stubber, code, 500) == refused


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ReadTimeoutError(endpoint_url=URL), id="time-out-after-the-request-was-sent"),
        pytest.param(ConnectionClosedError(endpoint_url=URL), id="connection-reset"),
        pytest.param(ConnectTimeoutError(endpoint_url=URL), id="connect-time-out"),
        pytest.param(EndpointConnectionError(endpoint_url=URL), id="connection-refused"),
        pytest.param(NoCredentialsError(), id="no-credentials"),
    ],
)
def test_a_call_without_an_answer_leaves_open_what_was_launched(error: BotoCoreError) -> None:
    unreachable = UnreachableAws("ec2", error)

    answer = Ec2Fleet(unreachable.client, unreachable.client, STACK).request(make_fleet_request())

    assert answer == FleetUncertain(f"no answer to CreateFleet: {error}")


def test_a_request_that_the_sdk_does_not_send_is_refused() -> None:
    unreachable = UnreachableAws("ec2", ReadTimeoutError(endpoint_url=URL))

    answer = Ec2Fleet(unreachable.client, unreachable.client, STACK).request(make_fleet_request(launch_template_id=7))

    assert unreachable.bodies == []
    assert isinstance(answer, FleetRefused)
    ((kind, code),) = [(each.kind, each.code) for each in answer.refusals]
    assert (kind, code) == (RefusalKind.CONFIGURATION, "ParamValidationError")
    assert "LaunchTemplateId" in answer.refusals[0].message
