from datetime import datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from fakes.fleet_region import FleetRegion, fleet_request, override
from relaunch.core.lifecycle.start_stages import read_boot
from relaunch_local.ecs import (
    Fault,
    FaultMoment,
    FleetFault,
    HostPlan,
    LaunchTemplate,
    LaunchTemplateVersion,
    Purchase,
    Timing,
)

A, B = override(), override(subnet="subnet-b")
BIG = override("g5.12xlarge")
DRY = "InsufficientInstanceCapacity"


@pytest.fixture
def region() -> FleetRegion:
    return FleetRegion()


def tags(kind: str, **values: str) -> dict[str, Any]:
    return {"ResourceType": kind, "Tags": [{"Key": key, "Value": value} for key, value in values.items()]}


def test_an_instance_is_launched_and_the_answer_says_which(region: FleetRegion) -> None:
    sent = override(AvailabilityZone="us-east-1a", Priority=0.0)

    answer = region.create(sent, market="spot", SpotOptions={"AllocationStrategy": "price-capacity-optimized"})

    (launched,) = answer["Instances"]
    (instance_id,) = launched.pop("InstanceIds")
    assert answer["Errors"] == []
    assert answer["FleetId"].startswith("fleet-")
    assert launched == {
        "LaunchTemplateAndOverrides": {
            "LaunchTemplateSpecification": {"LaunchTemplateId": "lt-1", "Version": "2"},
            "Overrides": sent,
        },
        "Lifecycle": "spot",
        "InstanceType": "g5.xlarge",
        "AvailabilityZone": "us-east-1a",
        "SubnetId": "subnet-a",
    }
    assert region.simulator.instance(instance_id).purchase is Purchase.SPOT


def test_the_instance_is_what_template_and_request_say_together(region: FleetRegion) -> None:
    of_request = [tags("instance", own="request", machine="m-1"), tags("volume", machine="m-1"), tags("fleet", a="b")]
    instance_id = region.launch(TagSpecifications=of_request)
    region.clock.advance(60)

    described = region.described(instance_id)

    (line,) = region.simulator.instances.bill
    own = {each["Key"]: each["Value"] for each in described["Tags"] if not each["Key"].startswith("aws:")}
    assert own == {"stack": "relaunch", "own": "request", "machine": "m-1"}
    assert described["ImageId"] == "ami-00000000000000002"
    assert described["SubnetId"] == "subnet-a"
    assert described["IamInstanceProfile"] == {"Arn": "arn:aws:iam::111122223333:instance-profile/relaunch/host"}
    assert (line.instance_id, line.price_usd_per_hour, line.purchase) == (instance_id, 0.5, Purchase.ON_DEMAND)


def test_an_instance_has_a_client_token_of_ec2s_own_and_the_tag_of_its_fleet(region: FleetRegion) -> None:
    answer = region.create(ClientToken="ours")
    region.clock.advance(60)

    described = region.described(answer["Instances"][0]["InstanceIds"][0])
    by_token = region.ec2.describe_instances(Filters=[{"Name": "client-token", "Values": ["ours"]}])
    by_fleet = region.ec2.describe_instances(Filters=[{"Name": "tag:aws:ec2:fleet-id", "Values": [answer["FleetId"]]}])

    assert described["ClientToken"] == f"{answer['FleetId']}-0"
    assert by_token["Reservations"] == []
    assert len(by_fleet["Reservations"]) == 1


def test_an_override_may_name_an_image(region: FleetRegion) -> None:
    instance_id = region.launch(override(ImageId="ami-00000000000000009"))

    assert region.simulator.instance(instance_id).image_id == "ami-00000000000000009"
    by_parameter = region.launch(override(ImageId="resolve:ssm:/aws/service/ecs/image_id"))
    assert region.simulator.instance(by_parameter).image_id.startswith("ami-")


def test_a_new_version_leaves_the_default_at_1(region: FleetRegion) -> None:
    request = fleet_request()
    images = {}
    for version in ("$Default", "$Latest", "1"):
        request["LaunchTemplateConfigs"][0]["LaunchTemplateSpecification"]["Version"] = version
        launched = region.ec2.create_fleet(**request)["Instances"][0]["InstanceIds"][0]
        images[version] = region.simulator.instance(launched).image_id

    assert images == {"$Default": "ami-00000000000000001", "$Latest": "ami-00000000000000002", "1": images["$Default"]}


def test_errors_come_beside_the_instance(region: FleetRegion) -> None:
    region.simulator.set_capacity("g5.xlarge", Purchase.ON_DEMAND, 0, zone="us-east-1b")

    answer = region.create(A, B)

    (error,) = answer["Errors"]
    assert (error["ErrorCode"], error["Lifecycle"]) == (DRY, "on-demand")
    assert error["LaunchTemplateAndOverrides"]["Overrides"] == B
    assert "g5.xlarge" in error["ErrorMessage"]
    assert [each["AvailabilityZone"] for each in answer["Instances"]] == ["us-east-1a"]


def test_without_capacity_every_override_has_its_error(region: FleetRegion) -> None:
    for instance_type in ("g5.xlarge", "g5.12xlarge"):
        region.simulator.set_capacity(instance_type, Purchase.ON_DEMAND, 0)

    assert region.refused(A, B, BIG) == [DRY, DRY, DRY]
    assert region.simulator.instances.bill == []


def test_capacity_comes_and_goes(region: FleetRegion) -> None:
    region.simulator.set_capacity("g5.xlarge", Purchase.SPOT, 1)
    first = region.launch(market="spot")
    assert region.refused(market="spot") == [DRY]

    region.simulator.terminate(first)

    assert region.launch(market="spot") != first


@pytest.mark.parametrize(
    "code",
    [
        "InsufficientInstanceCapacity", "UnfulfillableCapacity", "Unsupported", "SpotMaxPriceTooLow",
        "ReservationCapacityExceeded", "InsufficientFreeAddressesInSubnet", "MaxSpotInstanceCountExceeded",
        "VcpuLimitExceeded", "InstanceLimitExceeded", "VolumeLimitExceeded", "TargetCapacityLimitExceeded",
        "MaxFleetCountExceeded", "InvalidFleetConfiguration", "InvalidParameterValue", "UnauthorizedOperation",
        "AuthFailure.ServiceLinkedRoleCreationNotPermitted", "RequestLimitExceeded", "Blocked", "PendingVerification",
        "OptInRequired", "InternalError", "Unavailable", "SsmAccessDenied",
    ],
)  # fmt: skip
def test_every_code_can_be_among_the_errors_and_raised(region: FleetRegion, code: str) -> None:
    region.simulator.fleets.faults.append(FleetFault(code))
    region.simulator.faults.fail_next("CreateFleet", 1, Fault(FaultMoment.BEFORE, code))

    assert region.raised("create_fleet", **fleet_request()) == code
    assert region.refused(A, B) == [code, code]
    assert region.create()["Instances"]


def test_some_overrides_may_be_refused_though_there_is_capacity(region: FleetRegion) -> None:
    region.simulator.fleets.faults.append(FleetFault("UnfulfillableCapacity", overrides=1))

    answer = region.create(A, B)

    assert [each["ErrorCode"] for each in answer["Errors"]] == ["UnfulfillableCapacity"]
    assert len(answer["Instances"]) == 1


@pytest.mark.parametrize(("code", "launched"), [("", 1), (DRY, 0)])
def test_an_answer_may_be_empty_whatever_was_launched(region: FleetRegion, code: str, launched: int) -> None:
    region.simulator.fleets.faults.append(FleetFault(code, is_empty=True))

    answer = region.create(ClientToken="t")

    assert (answer["Errors"], answer["Instances"]) == ([], [])
    assert len(region.simulator.instances.bill) == launched
    assert region.create(ClientToken="t") == answer


def test_a_call_that_times_out_has_launched_and_its_repetition_says_what(region: FleetRegion) -> None:
    lost = Fault(FaultMoment.AFTER, drop_connection=True)
    region.simulator.faults.fail_next("CreateFleet", 1, lost)

    with pytest.raises(ConnectionClosedError):
        region.create(ClientToken="t")
    answer = region.create(ClientToken="t")

    (line,) = region.simulator.instances.bill
    assert answer["Instances"][0]["InstanceIds"] == [line.instance_id]


def test_a_throttled_call_is_told_so_in_ec2s_words(region: FleetRegion) -> None:
    region.simulator.faults.fail_next("CreateFleet", 1, Fault(FaultMoment.THROTTLE))

    assert region.raised("create_fleet", **fleet_request()) == "RequestLimitExceeded"
    assert region.simulator.instances.bill == []


def test_five_launches_at_once_and_two_a_second_are_taken(region: FleetRegion) -> None:
    for _ in range(5):
        region.launch()

    assert region.refused() == ["RequestLimitExceeded"]
    region.clock.advance(1)
    assert [bool(region.create()["Instances"]) for _ in range(3)] == [True, True, False]


def test_a_throttled_launch_may_fail_the_whole_call() -> None:
    region = FleetRegion(raises_throttling=True)
    for _ in range(5):
        region.launch()

    assert region.raised("create_fleet", **fleet_request(ClientToken="t")) == "RequestLimitExceeded"
    region.clock.advance(1)
    assert region.create(ClientToken="t")["Instances"], "what was raised was not kept with the token"


def test_two_overrides_of_one_type_in_one_zone_fail_the_call(region: FleetRegion) -> None:
    twice = fleet_request(override(), override(subnet="subnet-a2"))

    assert region.raised("create_fleet", **twice) == "InvalidFleetConfig"
    assert region.simulator.instances.bill == []


def test_a_subnet_of_another_zone_fails_the_call(region: FleetRegion) -> None:
    request = fleet_request(override(AvailabilityZone="us-east-1b"))

    assert region.raised("create_fleet", **request) == "InvalidFleetConfig"


@pytest.mark.parametrize(
    ("refused", "code"),
    [
        pytest.param(override("g5.xlrge"), "InvalidFleetConfiguration", id="misspelled"),
        pytest.param(override("g5.12xlarge", "subnet-b"), "InvalidFleetConfiguration", id="not-in-the-zone"),
        pytest.param(override(subnet="subnet-x"), "InvalidSubnetID.NotFound", id="unknown-subnet"),
    ],
)
def test_what_cannot_be_launched_is_an_error_of_its_override(
    region: FleetRegion, refused: dict[str, Any], code: str
) -> None:
    assert region.refused(refused) == [code]
    assert region.create(refused, B)["Instances"][0]["AvailabilityZone"] == "us-east-1b"


def test_a_misspelled_type_and_one_that_is_not_in_the_zone_have_the_same_message(region: FleetRegion) -> None:
    answers = [region.create(each) for each in (override("g5.xlrge"), override("g5.12xlarge", "subnet-b"))]

    texts = [each["Errors"][0]["ErrorMessage"] for each in answers]
    assert texts[0].replace("g5.xlrge", "g5.12xlarge").replace("1a", "1b") == texts[1]


def test_tags_of_a_spot_request_in_the_template_fail_on_demand_launches(region: FleetRegion) -> None:
    spot_only = LaunchTemplateVersion(cluster="c", tags={"spot-instances-request": {"a": "b"}})
    region.simulator.fleets.templates.put(LaunchTemplate("lt-1", "hosts", (spot_only, spot_only)))

    assert region.refused() == ["InvalidParameterValue"]
    assert region.create(market="spot")["Instances"]


def test_a_dry_run_launches_nothing(region: FleetRegion) -> None:
    assert region.raised("create_fleet", **fleet_request(DryRun=True)) == "DryRunOperation"
    assert region.simulator.instances.bill == []


def test_hosts_join_the_cluster_of_the_template_with_its_attributes(region: FleetRegion) -> None:
    instance_id = region.ready()

    (registration,) = region.registrations()
    attributes = {each["name"]: each.get("value") for each in registration["attributes"]}
    assert registration["ec2InstanceId"] == instance_id
    assert registration["clusterArn"].endswith("cluster/c")
    assert (registration["agentConnected"], registration["status"]) == (True, "ACTIVE")
    assert (attributes["stack"], attributes["ecs.instance-type"]) == ("relaunch", "g5.xlarge")
    assert (attributes["ecs.subnet-id"], attributes["ecs.ami-id"]) == ("subnet-a", "ami-00000000000000002")
    resources = {each["name"]: each for each in registration["registeredResources"]}
    assert set(resources) == {"CPU", "MEMORY", "PORTS", "PORTS_UDP", "GPU"}
    assert (resources["GPU"]["type"], len(resources["GPU"]["stringSetValue"])) == ("STRINGSET", 1)
    assert "capacityProviderName" not in registration


def test_the_user_data_names_the_machine_of_the_tag(region: FleetRegion) -> None:
    tags = [{"Key": "relaunch:machine", "Value": "m-1"}]
    region.ready(TagSpecifications=[{"ResourceType": "instance", "Tags": tags}])

    (registration,) = region.registrations()
    assert {"name": "relaunch.machine", "value": "m-1"} in registration["attributes"]


def boot_of(region: FleetRegion, **version: Any) -> tuple[str, datetime]:
    """Return what a machine of such a launch template reports of its boot, and when it registered."""
    template = LaunchTemplateVersion(cluster="c", **version)
    region.simulator.fleets.templates.put(LaunchTemplate("lt-1", "hosts", (template, template)))
    region.ready()
    (seen,) = region.registrations()
    attributes = {each["name"]: each.get("value") for each in seen["attributes"]}
    return attributes.get("relaunch.boot") or "", datetime.fromisoformat(seen["registeredAt"])


def test_a_machine_reports_its_boot_when_it_registers(region: FleetRegion) -> None:
    boot, registered_at = boot_of(region)

    kernel, *others = read_boot(boot)

    assert kernel == registered_at - timedelta(seconds=Timing().registration)
    assert kernel < others[0] < others[1] < others[2] < registered_at  # type: ignore[operator]


def test_user_data_of_an_earlier_version_reports_nothing_of_the_boot(region: FleetRegion) -> None:
    assert boot_of(region, reports_boot=False)[0] == ""


@pytest.mark.parametrize("value", ["a{b", "a" * 129, "a "])
def test_an_agent_with_an_attribute_that_ecs_refuses_does_not_register(region: FleetRegion, value: str) -> None:
    version = LaunchTemplateVersion(cluster="c", attributes={"stack": value})
    region.simulator.fleets.templates.put(LaunchTemplate("lt-1", "hosts", (version, version)))
    region.launch()

    region.clock.advance(600)

    assert region.registrations() == []


def test_without_user_data_in_the_template_the_agent_makes_the_cluster_default(region: FleetRegion) -> None:
    bare = LaunchTemplateVersion(cluster="c", attributes={"stack": "relaunch"}, has_user_data=False)
    region.simulator.fleets.templates.put(LaunchTemplate("lt-1", "hosts", (bare, bare)))

    region.ready()

    (registration,) = region.registrations()
    assert registration["clusterArn"].endswith("cluster/default")
    assert "stack" not in {each["name"] for each in registration["attributes"]}


def test_a_host_cannot_join_a_cluster_that_does_not_exist(region: FleetRegion) -> None:
    lost = LaunchTemplateVersion(cluster="gone")
    region.simulator.fleets.templates.put(LaunchTemplate("lt-1", "hosts", (lost, lost)))
    instance_id = region.launch()

    region.clock.advance(3_600)

    assert region.state(instance_id) == "running"
    assert region.registrations() == []


@pytest.mark.parametrize(("plan", "devices"), [(HostPlan(), "6"), (HostPlan(has_device_attribute=False), None)])
def test_user_data_counts_neuron_devices(region: FleetRegion, plan: HostPlan, devices: str | None) -> None:
    region.ready(override("inf2.24xlarge"), plan=plan)

    (registration,) = region.registrations()
    attributes = {each["name"]: each.get("value") for each in registration["attributes"]}
    assert attributes.get("relaunch.neuron-devices") == devices


def test_an_unknown_template_is_raised(region: FleetRegion) -> None:
    request = fleet_request()
    request["LaunchTemplateConfigs"][0]["LaunchTemplateSpecification"]["LaunchTemplateId"] = "lt-2"

    with pytest.raises(ClientError, match=r"InvalidLaunchTemplateId\.NotFound.*lt-2"):
        region.ec2.create_fleet(**request)
