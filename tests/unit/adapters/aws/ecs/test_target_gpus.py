import pytest

from fakes.builders import INSTANCE_ID, container_instance_arn
from fakes.scripted_aws import ScriptedAws
from relaunch.adapters.aws.ecs.events import observe_gpus
from relaunch.adapters.aws.ecs.target import EcsTarget
from relaunch.core.selection.gpu_devices import GpuDevice
from relaunch.ports import PermanentError, TransientError

CARD = {
    "gpuId": "GPU-1f2e",
    "sharingMode": "NVIDIA_MPS",
    "totalMemoryInMiB": 15_360,
    "remainingMemoryInMiB": 1_024,
    "containerCount": 3,
}


@pytest.fixture
def ecs() -> ScriptedAws:
    return ScriptedAws("ecs")


@pytest.fixture
def target(ecs: ScriptedAws) -> EcsTarget:
    return EcsTarget(ecs.client, "relaunch")


def machine(number: int = 1, provider: str = "g4dn-spot", **members: object) -> dict[str, object]:
    arn = container_instance_arn(number)
    return {
        "containerInstanceArn": arn,
        "ec2InstanceId": INSTANCE_ID,
        "capacityProviderName": provider,
        **members,
    }


def test_the_gpus_of_the_providers_machines_of_a_type_are_told(ecs: ScriptedAws, target: EcsTarget) -> None:
    arns = [container_instance_arn(number) for number in (1, 2, 3)]
    ecs.answer("ListContainerInstances", containerInstanceArns=arns)
    ecs.answer(
        "DescribeContainerInstances",
        containerInstances=[machine(1, gpuDevices=[CARD]), machine(2, "g4dn", gpuDevices=[CARD]), machine(3)],
        failures=[],
    )

    devices = target.find_gpus("g4dn.xlarge", "g4dn-spot")

    assert devices == [GpuDevice("GPU-1f2e", INSTANCE_ID, "NVIDIA_MPS", 15_360, 1_024, 3)]
    assert ecs.sent("ListContainerInstances") == [
        {
            "cluster": "relaunch",
            "filter": "attribute:ecs.instance-type == g4dn.xlarge",
            "status": "ACTIVE",
            "maxResults": 100,
        }
    ]
    assert ecs.sent("DescribeContainerInstances") == [{"cluster": "relaunch", "containerInstances": arns}]


def test_nothing_is_described_where_there_is_no_machine(ecs: ScriptedAws, target: EcsTarget) -> None:
    ecs.answer("ListContainerInstances", containerInstanceArns=[])

    assert target.find_gpus("g4dn.xlarge", "g4dn-spot") == []
    assert ecs.sent("DescribeContainerInstances") == []


def test_a_machine_that_went_in_between_has_no_gpu(ecs: ScriptedAws, target: EcsTarget) -> None:
    arn = container_instance_arn()
    ecs.answer("ListContainerInstances", containerInstanceArns=[arn])
    ecs.answer("DescribeContainerInstances", containerInstances=[], failures=[{"arn": arn, "reason": "MISSING"}])

    assert target.find_gpus("g4dn.xlarge", "g4dn-spot") == []


@pytest.mark.parametrize(
    ("code", "error"), [("ThrottlingException", TransientError), ("AccessDeniedException", PermanentError)]
)
def test_what_fails_is_told_by_kind(ecs: ScriptedAws, target: EcsTarget, code: str, error: type[Exception]) -> None:
    ecs.refuse("ListContainerInstances", code, "no")

    with pytest.raises(error, match=r"g4dn\.xlarge"):
        target.find_gpus("g4dn.xlarge", "g4dn-spot")


def test_a_card_without_figures_has_nothing_left() -> None:
    assert observe_gpus(machine(gpuDevices=[{"gpuId": "GPU-1"}])) == [GpuDevice("GPU-1", INSTANCE_ID, "", 0, 0, 0)]


def test_a_machine_whose_agent_knows_nothing_of_sharing_has_no_gpus_to_share() -> None:
    assert observe_gpus(machine()) == []
    assert observe_gpus(machine(gpuDevices=None)) == []


def test_figures_of_a_wrong_type_are_named() -> None:
    with pytest.raises(PermanentError, match="totalMemoryInMiB"):
        observe_gpus(machine(gpuDevices=[{**CARD, "totalMemoryInMiB": "much"}]))
