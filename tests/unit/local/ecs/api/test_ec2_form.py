from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode

import pytest
from botocore.serialize import EC2Serializer

from fakes.fleet_region import fleet_request, override
from relaunch_local.ecs import EcsError
from relaunch_local.ecs.api.ec2_form import parse_form
from relaunch_local.ecs.api.in_process import service_model

FLEET = fleet_request(
    override(Priority=0.0, AvailabilityZone="us-east-1a"),
    override("g5.12xlarge", "subnet-b"),
    market="spot",
    SpotOptions={"AllocationStrategy": "lowest-price", "SingleInstanceType": True},
    DryRun=False,
    TagSpecifications=[{"ResourceType": "instance", "Tags": [{"Key": "a.b", "Value": ""}, {"Key": "c", "Value": "1"}]}],
)


@pytest.mark.parametrize(
    ("action", "parameters"),
    [
        ("CreateFleet", FLEET),
        ("TerminateInstances", {"InstanceIds": [f"i-{number}" for number in range(12)]}),
        (
            "DescribeInstances",
            {"Filters": [{"Name": "tag:a", "Values": ["1", "2"]}, {"Name": "tag-key", "Values": ["b"]}]},
        ),
        ("DescribeInstances", {"MaxResults": 5, "NextToken": "5"}),
        ("DescribeSpotPriceHistory", {"StartTime": datetime(2026, 1, 2, tzinfo=UTC), "InstanceTypes": ["g5.xlarge"]}),
    ],
)
def test_what_botocore_writes_is_read(action: str, parameters: dict[str, Any]) -> None:
    model = service_model("ec2").operation_model(action)
    form = urlencode(EC2Serializer().serialize_to_request(parameters, model)["body"])

    assert parse_form(action, parse_qsl(form, keep_blank_values=True)) == parameters


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("Colour", "red", "UnknownParameter"),
        ("Filter.1.Colour", "red", "UnknownParameter"),
        ("MaxResults", "many", "InvalidParameterValue"),
        ("Filter.first.Name", "tag-key", "InvalidParameterValue"),
    ],
)
def test_what_ec2_does_not_know_is_refused(name: str, value: str, code: str) -> None:
    with pytest.raises(EcsError) as caught:
        parse_form("DescribeInstances", [("Action", "DescribeInstances"), (name, value)])
    assert caught.value.code == code


def test_an_unknown_action_has_no_parameters() -> None:
    assert parse_form("DescribeColours", [("Action", "DescribeColours"), ("Colour", "red")]) == {}
