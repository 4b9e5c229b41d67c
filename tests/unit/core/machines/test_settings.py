import pytest

from fakes.builders import make_instance_type
from relaunch.core.machines.settings import LaunchTemplate, MachineSettings
from relaunch.core.offerings.instance_types import AmiKind

SETTINGS = MachineSettings(
    "relaunch", subnets={"us-east-1a": "subnet-0a1"}, launch_templates={AmiKind.GPU: LaunchTemplate("lt-0a", "7")}
)


def test_machines_are_on_where_there_is_a_subnet_for_them():
    assert MachineSettings(stack="relaunch", subnets={"us-east-1a": "subnet-0a1"}).is_on
    assert not MachineSettings(stack="relaunch", queue_url="https://sqs/machines").is_on


@pytest.mark.parametrize(
    ("machine", "zones", "may_start"),
    [
        (make_instance_type(), ("us-east-1a", "us-east-1b"), True),
        (make_instance_type(), ("us-east-1b",), False),
        (make_instance_type(), (), False),
        (make_instance_type("trn1.32xlarge", gpu_count=0, neuron_devices=16), ("us-east-1a",), False),
        (make_instance_type("g5g.xlarge", architecture="arm64"), ("us-east-1a",), False),
        (make_instance_type("g6f.xlarge", gpu_partition_size=0.25), ("us-east-1a",), False),
    ],
    ids=["yes", "no subnet", "not offered", "no launch template", "no image", "a fraction of a GPU"],
)
def test_a_type_may_be_started_where_image_launch_template_and_subnet_are_there(machine, zones, may_start):
    assert SETTINGS.may_start(machine, zones) is may_start
