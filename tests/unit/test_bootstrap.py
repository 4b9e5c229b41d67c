"""How often the clients that are made for the stack send a call that EC2 throttles."""

from collections.abc import Callable
from io import BytesIO
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse

from fakes.fleet import STACK, make_fleet_request
from relaunch.bootstrap import make_dependencies
from relaunch.ports import MachineSource, TransientError
from relaunch.settings import Settings

OUTPUTS = {
    "StackName": STACK,
    "TableName": "jobs",
    "AttemptsQueueUrl": "https://sqs.us-east-1.amazonaws.com/1/attempts",
    "ClusterName": "relaunch",
    "CapacityProviders": "g5=g5.xlarge/on-demand",
    "MaxRunningJobs": "20",
    "MaxWaitingJobs": "5000",
    "MaxPricePerHour": "40",
    "MaxSpotRatio": "0.75",
    "TaskDefinitionFamilies": "relaunch-*",
    "TaskRolePath": "relaunch/",
    "ProvisioningDeadlineSeconds": "480",
}
THROTTLED = (
    b"<Response><Errors><Error><Code>RequestLimitExceeded</Code><Message>-</Message></Error></Errors></Response>"
)


class _Body(BytesIO):
    def stream(self, **_: Any) -> Any:
        yield self.read()


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    return []


@pytest.fixture
def fleet(sent: list[str]) -> MachineSource:
    """Return the machines of a stack in a region where EC2 throttles every call."""

    def throttle(request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        body: Any = request.body
        sent.extend(part.removeprefix("Action=") for part in body.split("&") if part.startswith("Action="))
        return AWSResponse(request.url or "", 503, {}, _Body(THROTTLED))  # type: ignore[arg-type]

    session = boto3.Session("testing", "testing", region_name="us-east-1")
    session.events.register("before-send.ec2", throttle)
    return make_dependencies(Settings.from_stack_outputs(OUTPUTS), session).fleet


@pytest.mark.parametrize(
    ("call", "action"),
    [
        (lambda fleet: fleet.terminate(["i-0123456789abcdef0"]), "TerminateInstances"),
        (lambda fleet: fleet.describe(["i-0123456789abcdef0"]), "DescribeInstances"),
        (lambda fleet: fleet.find("m-1"), "DescribeInstances"),
        (lambda fleet: fleet.find_impaired(["i-0123456789abcdef0"]), "DescribeInstanceStatus"),
    ],
    ids=["terminate", "describe", "find", "find impaired"],
)
def test_what_reads_or_is_idempotent_is_sent_again(
    fleet: MachineSource, sent: list[str], call: Callable[[MachineSource], object], action: str
) -> None:
    with pytest.raises(TransientError, match="RequestLimitExceeded"):
        call(fleet)

    assert sent == [action] * 3


def test_create_fleet_is_sent_once(fleet: MachineSource, sent: list[str]) -> None:
    answer = fleet.request(make_fleet_request())

    assert "RequestLimitExceeded" in str(answer)
    assert sent == ["CreateFleet"]
