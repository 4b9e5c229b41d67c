from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError

from fakes.fleet_region import FleetRegion
from relaunch_local.ecs import Fault, FaultMoment, HostPlan
from relaunch_local.ecs.engine.model import StateReason


@pytest.fixture
def region() -> FleetRegion:
    return FleetRegion()


def tagged(**tags: str) -> dict[str, Any]:
    found = [{"Key": key, "Value": value} for key, value in tags.items()]
    return {"TagSpecifications": [{"ResourceType": "instance", "Tags": found}]}


def found(region: FleetRegion, **filters: list[str]) -> list[str]:
    rows = [{"Name": name.replace("__", ":").replace("_", "-"), "Values": values} for name, values in filters.items()]
    answer = region.ec2.describe_instances(Filters=rows)
    return [each["InstanceId"] for row in answer["Reservations"] for each in row["Instances"]]


def test_an_instance_is_unknown_for_a_while_after_its_launch(region: FleetRegion) -> None:
    instance_id = region.launch(plan=HostPlan(visibility=60.0), **tagged(machine="m-1"))
    region.clock.advance(59)

    assert region.raised("describe_instances", InstanceIds=[instance_id]) == "InvalidInstanceID.NotFound"
    assert region.raised("terminate_instances", InstanceIds=[instance_id]) == "InvalidInstanceID.NotFound"
    assert found(region, tag__machine=["m-1"]) == []

    region.clock.advance(1)
    assert region.state(instance_id) == "running"
    assert found(region, tag__machine=["m-1"]) == [instance_id]


def test_an_instance_is_terminated_by_call_and_again_without_harm(region: FleetRegion) -> None:
    instance_id = region.ready()

    answers = [region.ec2.terminate_instances(InstanceIds=[instance_id]) for _ in range(2)]

    first, second = (each["TerminatingInstances"][0] for each in answers)
    assert (first["PreviousState"], first["CurrentState"]) == (
        {"Code": 16, "Name": "running"},
        {"Code": 32, "Name": "shutting-down"},
    )
    assert second["PreviousState"] == second["CurrentState"] == first["CurrentState"]
    reason = region.described(instance_id)["StateReason"]
    assert reason["Code"] == "Client.UserInitiatedShutdown"
    region.clock.advance(65)
    again = region.ec2.terminate_instances(InstanceIds=[instance_id])["TerminatingInstances"][0]
    assert again["CurrentState"]["Name"] == "terminated"


def test_a_termination_that_times_out_has_happened(region: FleetRegion) -> None:
    instance_id = region.ready()
    region.simulator.faults.fail_next("TerminateInstances", 1, Fault(FaultMoment.AFTER, drop_connection=True))

    with pytest.raises(ConnectionClosedError):
        region.ec2.terminate_instances(InstanceIds=[instance_id])

    assert region.state(instance_id) == "shutting-down"


@pytest.mark.parametrize(
    ("bad", "code"), [("i-0123456789abcdef0", "InvalidInstanceID.NotFound"), ("machine", "InvalidInstanceID.Malformed")]
)
def test_one_bad_id_fails_the_whole_call(region: FleetRegion, bad: str, code: str) -> None:
    instance_id = region.ready()

    assert region.raised("terminate_instances", InstanceIds=[instance_id, bad]) == code
    assert region.state(instance_id) == "running"


def test_a_terminated_instance_is_shown_for_an_hour_and_refused_after_it(region: FleetRegion) -> None:
    living, ended = region.ready(), region.ready(**tagged(machine="m-1"))
    region.ec2.terminate_instances(InstanceIds=[ended])
    region.clock.advance(65 + 3_599)
    assert found(region, tag__machine=["m-1"]) == [ended]
    assert region.ec2.terminate_instances(InstanceIds=[ended])["TerminatingInstances"]

    region.clock.advance(1)

    assert found(region, tag__machine=["m-1"]) == []
    assert region.raised("describe_instances", InstanceIds=[ended]) == "InvalidInstanceID.NotFound"
    assert region.raised("terminate_instances", InstanceIds=[living, ended]) == "UnauthorizedOperation"
    assert region.state(living) == "running"


def test_the_number_of_instances_in_a_call_is_limited(region: FleetRegion) -> None:
    most = [f"i-{number:017x}" for number in range(1_000)]

    assert region.raised("terminate_instances", InstanceIds=most) == "InvalidInstanceID.NotFound"
    assert region.raised("terminate_instances", InstanceIds=[*most, "i-00000000000001000"]) == "InvalidParameterValue"
    assert region.raised("terminate_instances", InstanceIds=[]) == "MissingParameter"


def test_a_hundred_calls_at_once_and_five_a_second_are_taken(region: FleetRegion) -> None:
    codes = [region.raised("terminate_instances", InstanceIds=["machine"]) for _ in range(101)]

    assert codes == ["InvalidInstanceID.Malformed"] * 100 + ["RequestLimitExceeded"]
    region.clock.advance(1)
    assert [region.raised("terminate_instances", InstanceIds=["machine"]) for _ in range(6)] == codes[-6:]


def test_instances_are_found_by_tag_and_state(region: FleetRegion) -> None:
    first = region.ready(**tagged(machine="m-1"))
    second = region.ready(**tagged(machine="m-2"))
    region.ec2.terminate_instances(InstanceIds=[second])

    assert found(region, tag__machine=["m-1"]) == [first]
    assert found(region, tag__machine=["m-?"], instance_state_name=["pending", "running"]) == [first]
    assert found(region, tag_key=["machine"]) == [first, second]
    assert found(region, tag__machine=["m-[12]"]) == []
    assert found(region, tag__other=["*"]) == []


def test_descriptions_come_in_pages(region: FleetRegion) -> None:
    all_ids = [region.ready() for _ in range(7)]
    first = region.ec2.describe_instances(MaxResults=5)
    second = region.ec2.describe_instances(MaxResults=5, NextToken=first["NextToken"])

    ids = [row["Instances"][0]["InstanceId"] for page in (first, second) for row in page["Reservations"]]
    assert ids == all_ids
    assert "NextToken" not in second
    assert region.raised("describe_instances", MaxResults=4) == "InvalidParameterValue"
    by_id = {"InstanceIds": all_ids[:1], "MaxResults": 5}
    assert region.raised("describe_instances", **by_id) == "InvalidParameterCombination"


def test_the_status_checks_of_running_instances_are_told(region: FleetRegion) -> None:
    sound, hung = region.ready(), region.ready()
    ended = region.ready()
    region.simulator.instances.by_id[hung].is_impaired = True
    region.ec2.terminate_instances(InstanceIds=[ended])
    ids = [sound, hung, ended]

    running = region.ec2.describe_instance_status(InstanceIds=ids)["InstanceStatuses"]
    every = region.ec2.describe_instance_status(InstanceIds=ids, IncludeAllInstances=True)["InstanceStatuses"]

    assert [(each["InstanceId"], each["InstanceStatus"]["Status"]) for each in running] == [
        (sound, "ok"),
        (hung, "impaired"),
    ]
    assert [each["SystemStatus"]["Status"] for each in every] == ["ok", "ok", "not-applicable"]
    assert every[2]["InstanceStatus"]["Status"] == "not-applicable"
    assert len(region.ec2.describe_instance_status()["InstanceStatuses"]) == 2
    unknown = [sound, "i-0123456789abcdef0"]
    assert region.raised("describe_instance_status", InstanceIds=unknown) == "InvalidInstanceID.NotFound"


def test_the_spot_request_tells_an_interruption_before_the_instance_does(region: FleetRegion) -> None:
    instance_id = region.ready(market="spot")
    instance = region.simulator.instances.by_id[instance_id]

    def request() -> dict[str, Any]:
        named = [{"Name": "instance-id", "Values": [instance_id]}]
        answer = region.ec2.describe_spot_instance_requests(Filters=named)
        return answer["SpotInstanceRequests"][0]["Status"]

    assert request()["Code"] == "fulfilled"
    region.simulator.instances.interrupt(instance)
    assert (region.state(instance_id), request()["Code"]) == ("running", "instance-terminated-no-capacity")
    region.clock.advance(120)
    told = region.described(instance_id)
    assert told["StateTransitionReason"].startswith("Service initiated (")
    assert request()["UpdateTime"] == instance.warned_at


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (StateReason.USER_INITIATED, "instance-terminated-by-user"),
        (StateReason.SPOT_TERMINATION, "instance-terminated-no-capacity"),
    ],
)
def test_the_spot_request_tells_an_end_without_notice(region: FleetRegion, reason: StateReason, code: str) -> None:
    instance_id = region.ready(market="spot")
    region.simulator.instances.terminate(region.simulator.instances.by_id[instance_id], reason)

    (request,) = region.ec2.describe_spot_instance_requests()["SpotInstanceRequests"]

    assert (request["Status"]["Code"], request["State"]) == (code, "closed")
