from typing import Any

import pytest
from botocore.stub import Stubber

from fakes.aws import aws_in_process, make_client
from fakes.sources import ListLog
from relaunch.adapters.aws.ec2.instance_types import Ec2InstanceTypeOfferings, Ec2InstanceTypes
from relaunch.adapters.offerings.bundled import bundled_snapshot, load_catalogue
from relaunch.ports import PermanentError, TransientError

SERVICE = "ec2"


def described(name: str, **more: Any) -> dict[str, Any]:
    card = {"Count": 1, "Manufacturer": "NVIDIA", "Name": "A10G", "MemoryInfo": {"SizeInMiB": 22_888}}
    return {
        "InstanceType": name,
        "VCpuInfo": {"DefaultVCpus": 4},
        "MemoryInfo": {"SizeInMiB": 16_384},
        "ProcessorInfo": {"SupportedArchitectures": ["x86_64"]},
        "NetworkInfo": {"EfaSupported": True, "EfaInfo": {"MaximumEfaInterfaces": 2}, "NetworkPerformance": "fast"},
        "BareMetal": False,
        "SupportedUsageClasses": ["spot", "on-demand"],
        "InstanceStorageInfo": {"TotalSizeInGB": 250},
        "GpuInfo": {"Gpus": [card]},
    } | more


def test_types_of_all_pages_are_read_and_those_without_an_accelerator_left_out(stubber: Stubber) -> None:
    plain = described("c5.large")
    del plain["GpuInfo"]
    first = {"InstanceTypes": [described("g9.xlarge"), plain], "NextToken": "more"}
    stubber.add_response("describe_instance_types", first, {"MaxResults": 100})
    second = {"InstanceTypes": [described("g9.2xlarge")]}
    stubber.add_response("describe_instance_types", second, {"MaxResults": 100, "NextToken": "more"})

    types = Ec2InstanceTypes(stubber.client, ListLog()).instance_types()

    assert list(types) == ["g9.xlarge", "g9.2xlarge"]
    row = types["g9.xlarge"]
    assert (row.efa_interfaces, row.nvme_gb, row.network, row.source) == (2, 250, "fast", "EC2")
    assert (row.usage_classes, row.compute_capability) == (("on-demand", "spot"), None)


@pytest.mark.parametrize(
    "odd",
    [
        pytest.param(described("x9.large", GpuInfo={"Gpus": [{"Name": "A"}, {"Name": "B"}]}), id="two kinds"),
        pytest.param(described("x9.large", GpuInfo={"Gpus": [{"Name": "A"}]}), id="half a card"),
        pytest.param(described("x9.large", ProcessorInfo={}), id="no architecture"),
    ],
)
def test_a_type_that_cannot_be_read_is_left_out_and_named(stubber: Stubber, odd: dict[str, Any]) -> None:
    stubber.add_response("describe_instance_types", {"InstanceTypes": [odd, described("g9.xlarge")]})
    log = ListLog()

    assert list(Ec2InstanceTypes(stubber.client, log).instance_types()) == ["g9.xlarge"]
    ((decision, facts),) = log.lines
    assert (decision, facts["instance_type"]) == ("instance-type-left-out", "x9.large")


def test_zones_of_all_pages_are_read_for_the_types_asked_about(stubber: Stubber) -> None:
    asked = {"LocationType": "availability-zone", "MaxResults": 1000}
    token = {"NextToken": "more"}
    first = [("g5.xlarge", "us-east-1b"), ("c5.large", "us-east-1a")]
    second = [("g5.xlarge", "us-east-1a")]
    for page, of_question, of_answer in ((first, {}, token), (second, token, {})):
        rows = [{"InstanceType": name, "LocationType": "availability-zone", "Location": zone} for name, zone in page]
        answer: dict[str, Any] = {"InstanceTypeOfferings": rows, **of_answer}
        stubber.add_response("describe_instance_type_offerings", answer, asked | of_question)

    zones = Ec2InstanceTypeOfferings(stubber.client).zones(["g5.xlarge", "p5.48xlarge"])

    assert zones == {"g5.xlarge": ("us-east-1a", "us-east-1b")}


@pytest.mark.parametrize(
    ("code", "error"), [("RequestLimitExceeded", TransientError), ("UnauthorizedOperation", PermanentError)]
)
def test_a_refusal_says_whether_to_try_again(stubber: Stubber, code: str, error: type[Exception]) -> None:
    stubber.add_client_error("describe_instance_types", code)
    stubber.add_client_error("describe_instance_type_offerings", code)

    with pytest.raises(error):
        Ec2InstanceTypes(stubber.client, ListLog()).instance_types()
    with pytest.raises(error):
        Ec2InstanceTypeOfferings(stubber.client).zones(["g5.xlarge"])


def test_the_zones_of_a_region_are_those_that_are_bundled() -> None:
    with aws_in_process():
        zones = Ec2InstanceTypeOfferings(make_client("ec2")).zones(load_catalogue())

    assert zones == bundled_snapshot("us-east-1").zones
