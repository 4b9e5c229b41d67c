import pytest

from fakes.builders import INSTANCE_ID, container_instance_arn
from relaunch.adapters.aws.ecs.events import observe_gpus
from relaunch.core.selection.gpu_share import GpuDevice
from relaunch.ports import PermanentError, TransientError

CARD = {
    "gpuId": "GPU-1f2e",
    "sharingMode": "NVIDIA_MPS",
    "totalMemoryInMiB": 15_360,
    "remainingMemoryInMiB": 1_024,
    "containerCount": 3,
}


def machine(number: int = 1, provider: str = "g4dn-spot", **members: object) -> dict[str, object]:
    arn = container_instance_arn(number)
    return {"containerInstanceArn": arn, "ec2InstanceId": INSTANCE_ID, "capacityProviderName": provider, **members}


def test_the_gpus_of_the_providers_machines_of_a_type_are_told(ecs, target):
    arns = [container_instance_arn(number) for number in (1, 2, 3)]
    ecs.answer("ListContainerInstances", containerInstanceArns=arns)
    ecs.answer(
        "DescribeContainerInstances",
        containerInstances=[machine(1, gpuDevices=[CARD]), machine(2, "g4dn", gpuDevices=[CARD]), machine(3)],
        failures=[],
    )

    devices = target.find_gpus("g4dn.xlarge", "g4dn-spot")

    assert devices == [GpuDevice("GPU-1f2e", INSTANCE_ID, "NVIDIA_MPS", 15_360, 1_024, 3)]
    of_type = "attribute:ecs.instance-type == g4dn.xlarge"
    assert ecs.sent("ListContainerInstances") == [
        {"cluster": "relaunch", "filter": of_type, "status": "ACTIVE", "maxResults": 100}
    ]
    assert ecs.sent("DescribeContainerInstances") == [{"cluster": "relaunch", "containerInstances": arns}]


def test_machines_of_our_own_are_those_of_no_provider(ecs, target):
    own = {name: said for name, said in machine(1).items() if name != "capacityProviderName"}
    ecs.answer("ListContainerInstances", containerInstanceArns=[container_instance_arn(1), container_instance_arn(2)])
    ecs.answer(
        "DescribeContainerInstances",
        containerInstances=[{**own, "gpuDevices": [CARD]}, machine(2, gpuDevices=[CARD])],
        failures=[],
    )

    assert len(target.find_gpus("g4dn.xlarge", "")) == 1


def test_nothing_is_described_where_there_is_no_machine(ecs, target):
    ecs.answer("ListContainerInstances", containerInstanceArns=[])

    assert target.find_gpus("g4dn.xlarge", "g4dn-spot") == []
    assert ecs.sent("DescribeContainerInstances") == []


def test_a_machine_that_went_in_between_has_no_gpu(ecs, target):
    arn = container_instance_arn()
    ecs.answer("ListContainerInstances", containerInstanceArns=[arn])
    ecs.answer("DescribeContainerInstances", containerInstances=[], failures=[{"arn": arn, "reason": "MISSING"}])

    assert target.find_gpus("g4dn.xlarge", "g4dn-spot") == []


@pytest.mark.parametrize(
    ("code", "error"), [("ThrottlingException", TransientError), ("AccessDeniedException", PermanentError)]
)
def test_what_fails_is_told_by_kind(ecs, target, code, error):
    ecs.refuse("ListContainerInstances", code, "no")

    with pytest.raises(error, match=r"g4dn\.xlarge"):
        target.find_gpus("g4dn.xlarge", "g4dn-spot")


def test_a_card_without_figures_has_nothing_left():
    assert observe_gpus(machine(gpuDevices=[{"gpuId": "GPU-1"}])) == [GpuDevice("GPU-1", INSTANCE_ID, "", 0, 0, 0)]


def test_a_machine_whose_agent_knows_nothing_of_sharing_has_no_gpus_to_share():
    assert observe_gpus(machine()) == []
    assert observe_gpus(machine(gpuDevices=None)) == []


def test_figures_of_a_wrong_type_are_named():
    with pytest.raises(PermanentError, match="totalMemoryInMiB"):
        observe_gpus(machine(gpuDevices=[{**CARD, "totalMemoryInMiB": "much"}]))
