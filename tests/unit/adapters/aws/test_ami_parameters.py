import json

import boto3
import pytest
from botocore.stub import Stubber
from moto.utilities.utils import load_resource

from fakes.aws import aws_in_process
from relaunch.adapters.aws.ami_parameters import SsmAmis
from relaunch.core.offerings.instance_types import NEURON_REGIONS, Ami, AmiKind, AmiSystem, ami_parameter
from relaunch.ports import PermanentError, TransientError

SERVICE = "ssm"
GPU, NEURON = AmiKind.GPU, AmiKind.NEURON
NEW = AmiSystem.AMAZON_LINUX_2023
GPU_PARAMETER = ami_parameter(GPU, NEW)
TOLD = {
    "schema_version": 1,
    "image_id": "ami-0abc",
    "image_name": "al2023-ami-ecs-gpu-hvm-2023.0.20260922-kernel-6.1-x86_64-ebs",
    "ecs_agent_version": "1.107.0",
    "ecs_runtime_version": "Docker version 25.0.16",
}


def answer(stubber: Stubber, **values: str) -> None:
    """Let SSM know the GPU parameter as `whole` and its part `image_id`."""
    names = {"whole": GPU_PARAMETER, "image_id": f"{GPU_PARAMETER}/image_id"}
    found = [{"Name": names[name], "Value": value} for name, value in values.items()]
    stubber.add_response("get_parameters", {"Parameters": found}, {"Names": list(names.values())})


def test_an_image_is_read_with_its_agent(stubber: Stubber) -> None:
    answer(stubber, whole=json.dumps(TOLD), image_id="ami-0abc")

    (image,) = SsmAmis(stubber.client, "eu-west-1").recommended([GPU], NEW)

    assert image == Ami(
        kind=GPU,
        system=NEW,
        region="eu-west-1",
        parameter=GPU_PARAMETER,
        image_id="ami-0abc",
        image_name="al2023-ami-ecs-gpu-hvm-2023.0.20260922-kernel-6.1-x86_64-ebs",
        agent_version="1.107.0",
        runtime_version="Docker version 25.0.16",
    )


def test_a_driver_is_read_where_one_is_told(stubber: Stubber) -> None:
    answer(stubber, whole=json.dumps(TOLD | {"nvidia_driver_version": "580.95.05"}), image_id="ami-0abc")

    (image,) = SsmAmis(stubber.client, "eu-west-1").recommended([GPU], NEW)

    assert image.driver_version == "580.95.05"


@pytest.mark.parametrize("whole", ["{'image_id': 'ami-0abc'}", "", "[]", '"ami"'])
def test_a_value_that_is_no_object_is_made_up_for_by_the_image_s_own_parameter(stubber: Stubber, whole: str) -> None:
    answer(stubber, whole=whole, image_id="ami-0abc")

    (image,) = SsmAmis(stubber.client, "eu-west-1").recommended([GPU], NEW)

    assert (image.image_id, image.agent_version) == ("ami-0abc", None)


def test_a_region_without_the_parameter_has_no_image(stubber: Stubber) -> None:
    answer(stubber)

    (image,) = SsmAmis(stubber.client, "eu-west-1").recommended([GPU], NEW)

    assert (image.image_id, image.parameter) == (None, GPU_PARAMETER)


@pytest.mark.parametrize(
    ("code", "error"), [("ThrottlingException", TransientError), ("AccessDeniedException", PermanentError)]
)
def test_a_refusal_says_whether_to_try_again(stubber: Stubber, code: str, error: type[Exception]) -> None:
    stubber.add_client_error("get_parameters", code)

    with pytest.raises(error, match="reading the recommended images of eu-west-1"):
        SsmAmis(stubber.client, "eu-west-1").recommended([GPU], NEW)


def test_the_images_of_a_region_are_those_of_its_public_parameters() -> None:
    with aws_in_process():
        source = SsmAmis(boto3.client("ssm", region_name="eu-west-1"), "eu-west-1")
        (image,) = source.recommended([GPU], NEW)

    # moto writes what should be JSON as Python does.
    assert (image.image_id or "").startswith("ami-")
    assert image.agent_version is None


@pytest.mark.parametrize("region", sorted(NEURON_REGIONS))
def test_the_regions_that_the_developer_guide_lists_have_neuron_images(region: str) -> None:
    # moto has the parameters as they were in every region, as a tree of their names.
    tree = load_resource(f"ssm/resources/ecs/optimized_amis/{region}.json")

    for system in AmiSystem:
        found = tree
        for name in ami_parameter(NEURON, system).strip("/").split("/"):
            found = found[name]
        assert found["image_id"]["Value"].startswith("ami-")
