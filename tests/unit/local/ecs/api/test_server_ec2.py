"""EC2 as boto3 meets it over HTTP."""

from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from fakes.clock import FakeClock
from fakes.fleet_region import fleet_request, override
from fakes.served_simulator import Served, client, run
from fakes.sources import ListLog
from relaunch.adapters.aws.ec2.instance_types import read_type
from relaunch.adapters.aws.ec2.placement_scores import Ec2ZoneScores


def test_ec2_answers_prices_offerings_types_and_instances(served: Served) -> None:
    run(served)
    served.advance(200)

    history = served.ec2.describe_spot_price_history(
        InstanceTypes=["g5.xlarge"], ProductDescriptions=["Linux/UNIX"], StartTime=served.clock.now()
    )["SpotPriceHistory"]
    offered = served.ec2.describe_instance_type_offerings(
        LocationType="availability-zone", Filters=[{"Name": "instance-type", "Values": ["m7g.large"]}]
    )["InstanceTypeOfferings"]
    everywhere = served.ec2.describe_instance_type_offerings()["InstanceTypeOfferings"]
    types = served.ec2.describe_instance_types(InstanceTypes=["g5.xlarge"])["InstanceTypes"]
    zones = served.ec2.describe_availability_zones()["AvailabilityZones"]
    spot = served.ec2.describe_instances(Filters=[{"Name": "instance-lifecycle", "Values": ["spot"]}])
    instance = spot["Reservations"][0]["Instances"][0]

    assert {(each["AvailabilityZone"], each["SpotPrice"]) for each in history} == {
        ("us-east-1a", "0.412000"),
        ("us-east-1b", "0.500000"),
    }
    assert offered == [{"InstanceType": "m7g.large", "LocationType": "availability-zone", "Location": "us-east-1a"}]
    assert [each["InstanceType"] for each in everywhere] == ["g5.xlarge", "m7g.large"]
    read = read_type("g5.xlarge", types[0], "EC2")
    assert read is not None
    assert (read.gpu_memory_mib, read.vcpus, read.is_bare_metal) == (22_888, 4, False)
    assert [(each["ZoneName"], each["ZoneId"]) for each in zones] == [
        ("us-east-1a", "use1-az1"),
        ("us-east-1b", "use1-az2"),
    ]
    assert (instance["State"]["Name"], instance["Placement"]["AvailabilityZone"]) == ("running", "us-east-1a")
    again = served.ec2.describe_instances(InstanceIds=[instance["InstanceId"]])
    assert again["Reservations"][0]["Instances"][0]["LaunchTime"] == instance["LaunchTime"]
    with pytest.raises(ClientError, match=r"InvalidInstanceID\.NotFound"):
        served.ec2.describe_instances(InstanceIds=["i-0"])


def test_boto3_launches_a_machine_once_per_token(served: Served) -> None:
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "machine", "Value": "m-1"}]}]
    request = fleet_request(override(), override(subnet="subnet-b", Priority=0.0), TagSpecifications=tags)
    served.control("fleet", {"code": "InsufficientInstanceCapacity", "overrides": 1})

    answer = served.ec2.create_fleet(**request, ClientToken="t")
    again = served.ec2.create_fleet(**request, ClientToken="t")
    other = served.ec2.create_fleet(**request)

    assert answer["Errors"][0]["ErrorCode"] == "InsufficientInstanceCapacity"
    assert answer["Errors"][0]["LaunchTemplateAndOverrides"]["Overrides"] == override()
    assert answer["Instances"][0]["LaunchTemplateAndOverrides"]["Overrides"]["Priority"] == 0.0
    assert again["Instances"] == answer["Instances"] != other["Instances"]


def test_boto3_finds_and_ends_machines(served: Served) -> None:
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "machine", "Value": "m-1"}]}]
    answer = served.ec2.create_fleet(**fleet_request(market="spot", TagSpecifications=tags))
    (instance_id,) = answer["Instances"][0]["InstanceIds"]
    served.advance(100)

    by_tag = served.ec2.describe_instances(Filters=[{"Name": "tag:machine", "Values": ["m-1"]}])
    described = by_tag["Reservations"][0]["Instances"][0]
    (registered,) = served.ecs.list_container_instances(cluster="c")["containerInstanceArns"]
    ended = served.ec2.terminate_instances(InstanceIds=[instance_id])["TerminatingInstances"][0]

    assert (described["InstanceId"], described["State"]["Name"]) == (instance_id, "running")
    assert described["ClientToken"] == f"{answer['FleetId']}-0"
    assert (ended["CurrentState"]["Name"], ended["PreviousState"]["Name"]) == ("shutting-down", "running")
    after = served.ec2.describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"][0]
    assert after["StateReason"]["Code"] == "Client.UserInitiatedShutdown"
    gone = served.ecs.deregister_container_instance(cluster="c", containerInstance=registered)
    assert gone["containerInstance"]["status"] == "INACTIVE"
    assert served.control("bill")[0]["billing_ended_at"] is not None


def test_boto3_launches_several_machines_by_one_call(served: Served) -> None:
    options = {"MinTargetCapacity": 3, "SingleInstanceType": True, "SingleAvailabilityZone": True}
    target = {"TotalTargetCapacity": 3, "DefaultTargetCapacityType": "spot"}
    request = fleet_request(market="spot", SpotOptions=options)
    fleet = served.ec2.create_fleet(**{**request, "TargetCapacitySpecification": target})
    template = {"LaunchTemplateId": "lt-1", "Version": "2"}
    launch = served.ec2.run_instances(
        MinCount=2, MaxCount=2, LaunchTemplate=template, InstanceType="g5.xlarge", SubnetId="subnet-a", ClientToken="t"
    )
    served.advance(100)

    (entry,) = fleet["Instances"]
    described = served.ec2.describe_instances(InstanceIds=entry["InstanceIds"])["Reservations"]
    addresses = {each["PrivateIpAddress"] for each in (*described[0]["Instances"], *launch["Instances"])}
    assert [len(row["Instances"]) for row in described] == [3]
    assert len(addresses) == 5
    assert launch["Instances"][0]["ClientToken"] == "t"


def refusal(caller: Any, **request: Any) -> tuple[str, int]:
    """Return the code and the HTTP status with which CreateFleet is refused."""
    with pytest.raises(ClientError) as caught:
        caller.create_fleet(**request)
    response = caught.value.response
    return response["Error"]["Code"], response["ResponseMetadata"]["HTTPStatusCode"]


def test_ec2s_errors_have_its_codes_and_statuses(served: Served) -> None:
    served.control("fail", {"action": "CreateFleet", "code": "InternalError"})
    served.control("fail", {"action": "CreateFleet", "moment": "throttle"})
    stranger = client("ec2", served.server.url, "AKIASTRANGER")

    assert refusal(served.ec2, **fleet_request()) == ("InternalError", 500)
    assert refusal(served.ec2, **fleet_request()) == ("RequestLimitExceeded", 503)
    assert refusal(served.ec2, **fleet_request(DryRun=True)) == ("DryRunOperation", 412)
    assert refusal(served.ec2, **fleet_request(override(), override())) == ("InvalidFleetConfig", 400)
    assert refusal(stranger, **fleet_request()) == ("UnauthorizedOperation", 403)
    assert served.control("bill") == []


def test_a_fleet_whose_answer_is_lost_has_launched(served: Served) -> None:
    served.control("fail", {"action": "CreateFleet", "moment": "after", "drop_connection": True})

    with pytest.raises(ConnectionClosedError):
        served.ec2.create_fleet(**fleet_request())

    assert len(served.control("bill")) == 1


def test_ec2_pages(served: Served) -> None:
    first = served.ec2.describe_spot_price_history(MaxResults=1)
    second = served.ec2.describe_spot_price_history(MaxResults=1, NextToken=first["NextToken"])

    zones = [page["SpotPriceHistory"][0]["AvailabilityZone"] for page in (first, second)]
    assert zones == ["us-east-1a", "us-east-1b"]
    assert not second.get("NextToken")


def test_scores_of_zones_are_unknown_and_that_is_no_error(served: Served) -> None:
    log = ListLog()
    scores = Ec2ZoneScores(served.ec2, "us-east-1", FakeClock(), log)

    assert scores.zone_scores(["g5.xlarge", "g5.2xlarge", "g5.4xlarge"]) == {}
    assert log.decisions == ["placement-scores-unknown"]
