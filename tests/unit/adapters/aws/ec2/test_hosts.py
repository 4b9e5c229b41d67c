"""What EC2 says of the end of an instance that a task ran on."""

from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.stub import Stubber

from fakes.builders import INSTANCE_ID
from fakes.simulated_region import SimulatedRegion
from relaunch.adapters.aws.ec2.hosts import Ec2Hosts
from relaunch.core.launches.launch import HostObservation
from relaunch.ports import PermanentError, TransientError
from relaunch_local.ecs import InProcessClient

SERVICE = "ec2"
AT = datetime(2026, 11, 26, 5, 45, 43, tzinfo=UTC)
BY_ID = {"InstanceIds": [INSTANCE_ID]}
BY_INSTANCE = {"Filters": [{"Name": "instance-id", "Values": [INSTANCE_ID]}]}


def described(state: str, reason: str = "") -> dict[str, Any]:
    instance = {"InstanceId": INSTANCE_ID, "State": {"Name": state}, "StateTransitionReason": reason}
    return {"Reservations": [{"Instances": [instance]}]}


def requested(code: str, at: datetime | None = AT) -> dict[str, Any]:
    status = {"Code": code, **({"UpdateTime": at} if at else {})}
    return {"SpotInstanceRequests": [{"InstanceId": INSTANCE_ID, "Status": status}]}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param(described("running"), HostObservation(), id="it runs"),
        pytest.param(
            described("running", "User initiated (2026-11-01 00:00:00 GMT)"),
            HostObservation(),
            id="it was started again",
        ),
        pytest.param(
            described("shutting-down", "User initiated (2026-11-26 05:45:43 GMT)"),
            HostObservation(has_ended=True, ended_at=AT),
            id="somebody ends it",
        ),
        pytest.param(described("terminated"), HostObservation(has_ended=True), id="nobody says when"),
        pytest.param({"Reservations": []}, HostObservation(), id="nothing is said"),
    ],
)
def test_an_end_is_told_with_its_time(client, stubber: Stubber, answer: dict[str, Any], expected) -> None:
    stubber.add_response("describe_instances", answer, BY_ID)

    assert Ec2Hosts(client).look(INSTANCE_ID, is_spot=False) == expected


@pytest.mark.parametrize("code", ["InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed"])
def test_of_an_instance_that_ec2_does_not_know_nothing_is_known(client, stubber: Stubber, code: str) -> None:
    stubber.add_client_error("describe_instances", code)

    assert Ec2Hosts(client).look(INSTANCE_ID, is_spot=False) == HostObservation()


@pytest.mark.parametrize(
    ("answer", "warned_at"),
    [
        pytest.param(requested("fulfilled"), None, id="fulfilled"),
        pytest.param(requested("instance-terminated-no-capacity"), AT, id="for want of capacity"),
        pytest.param(requested("marked-for-stop"), AT, id="to be stopped"),
        pytest.param(requested("instance-terminated-by-user"), None, id="somebody ended it"),
        pytest.param(requested("marked-for-termination", None), None, id="nobody says when"),
        pytest.param({"SpotInstanceRequests": []}, None, id="no request"),
    ],
)
def test_the_spot_request_tells_the_interruption_while_the_instance_runs(
    client, stubber: Stubber, answer: dict[str, Any], warned_at: datetime | None
) -> None:
    stubber.add_response("describe_instances", described("running"), BY_ID)
    stubber.add_response("describe_spot_instance_requests", answer, BY_INSTANCE)

    assert Ec2Hosts(client).look(INSTANCE_ID, is_spot=True) == HostObservation(warnings=frozenset({warned_at} - {None}))


@pytest.mark.parametrize(
    ("code", "error"), [("RequestLimitExceeded", TransientError), ("UnauthorizedOperation", PermanentError)]
)
def test_no_answer_is_an_error(client, stubber: Stubber, code: str, error: type[Exception]) -> None:
    stubber.add_client_error("describe_instances", code)

    with pytest.raises(error, match=INSTANCE_ID):
        Ec2Hosts(client).look(INSTANCE_ID, is_spot=False)


def test_instances_of_groups_are_listed_by_the_names_of_providers() -> None:
    region = SimulatedRegion()
    region.provider("g5-spot")
    region.provider("g5-other")
    region.register()
    region.run("g5-spot")
    region.run("g5-other")
    region.clock.advance(600)
    # In the simulated region a group has a name of its own.
    groups = ["g5-spot-asg", *(f"group-{number}" for number in range(400))]
    ec2: Any = InProcessClient(region.simulator, "ec2")

    found = Ec2Hosts(ec2, groups).running_in_groups()

    assert {each.offering.instance_type for each in found if each.offering} == {"g5.xlarge"}
    assert len(found) == 2
    assert all(each.launched_at for each in found)
    assert list(Ec2Hosts(ec2).running_in_groups()) == []


def test_the_address_of_an_instance_is_found(client, stubber: Stubber) -> None:
    instance = {"InstanceId": INSTANCE_ID, "State": {"Name": "running"}, "PrivateIpAddress": "10.0.0.7"}
    stubber.add_response("describe_instances", {"Reservations": [{"Instances": [instance]}]}, BY_ID)

    assert Ec2Hosts(client).find_address(INSTANCE_ID) == "10.0.0.7"


@pytest.mark.parametrize("answer", [described("pending"), {"Reservations": []}])
def test_an_address_that_is_not_known_yet_is_asked_for_again(client, stubber: Stubber, answer: dict[str, Any]) -> None:
    stubber.add_response("describe_instances", answer, BY_ID)

    with pytest.raises(TransientError, match=f"EC2 does not say the private address of {INSTANCE_ID}"):
        Ec2Hosts(client).find_address(INSTANCE_ID)
