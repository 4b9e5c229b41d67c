"""GPU sharing and fractional GPUs: validation, placement, descriptions."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from fakes.simulated_region import INSTANCE_TYPES, SimulatedRegion, container, gpu, share
from relaunch_local.ecs import EcsError, ProcessSpec, Script

REGISTERED = INSTANCE_TYPES["g5.xlarge"].registered_gpu_memory_mib
HALF = REGISTERED // 2
SMALL = {"cpu": 256, "memory": 512}


def sharing(memory_mib: int = 2_048, percent: int | None = None, **members: Any) -> dict[str, Any]:
    return container(**SMALL, **members, resourceRequirements=share(memory_mib, percent))


def override(requirements: list[dict[str, Any]], name: str = "main") -> dict[str, Any]:
    return {"containerOverrides": [{"name": name, "resourceRequirements": requirements}]}


def devices(region: SimulatedRegion, instance_id: str) -> list[dict[str, Any]]:
    """Return `gpuDevices` of an instance without the ids."""
    instance = region.simulator.instance(instance_id)
    answer = region.ecs.describe_container_instances(cluster="c", containerInstances=[instance.arn])
    cards = answer["containerInstances"][0]["gpuDevices"]
    return [{name: value for name, value in card.items() if name != "gpuId"} for card in cards]


def card(mode: str, remaining_mib: int, containers: int) -> dict[str, Any]:
    return {
        "sharingMode": mode,
        "totalMemoryInMiB": REGISTERED,
        "remainingMemoryInMiB": remaining_mib,
        "containerCount": containers,
    }


def gpu_ids(region: SimulatedRegion, arn: str) -> list[list[str]]:
    return [each["gpuIds"] for each in region.task(arn)["containers"]]


NVIDIA_MPS = {"nvidiaMps": {"memory": 1_024}}
BAD_REQUIREMENTS = [
    pytest.param([{"type": "GPU", "value": "1", "sharingStrategy": NVIDIA_MPS}], id="value and strategy"),
    pytest.param([{"type": "GPU"}], id="neither value nor strategy"),
    pytest.param(share(0), id="no memory"),
    pytest.param(share(-1), id="less than nothing"),
    pytest.param([{"type": "GPU", "sharingStrategy": {"nvidiaMps": {}}}], id="memory not said"),
    pytest.param(share(percent=0), id="0 percent"),
    pytest.param(share(percent=101), id="101 percent"),
    pytest.param([{"type": "GPU", "sharingStrategy": {}}], id="no member"),
    pytest.param([{"type": "GPU", "sharingStrategy": {"timeSlicing": {}}}], id="another strategy"),
    pytest.param([{"type": "InferenceAccelerator", "value": "a", "sharingStrategy": NVIDIA_MPS}], id="another type"),
    pytest.param([*share(), *share()], id="two shares for one container"),
    pytest.param(gpu("0.0"), id="no part of a GPU"),
    pytest.param(gpu("1.25"), id="more than a part"),
]


@pytest.mark.parametrize("requirements", BAD_REQUIREMENTS)
def test_a_definition_that_breaks_a_rule_is_refused(
    region: SimulatedRegion, requirements: list[dict[str, Any]]
) -> None:
    request = {"family": "train", "containerDefinitions": [container(resourceRequirements=requirements)]}

    # Not by the client, which would refuse some of them itself.
    with pytest.raises(EcsError) as refused:
        region.simulator.call("RegisterTaskDefinition", request)

    assert refused.value.code == "ClientException"


@pytest.mark.parametrize("requirements", BAD_REQUIREMENTS)
def test_an_override_that_breaks_a_rule_is_refused(region: SimulatedRegion, requirements: list[dict[str, Any]]) -> None:
    region.register()
    region.instance()

    with pytest.raises(EcsError) as refused:
        region.simulator.call(
            "RunTask", {"cluster": "c", "taskDefinition": "train", "overrides": override(requirements)}
        )

    assert refused.value.code == "InvalidParameterException"


def test_containers_of_a_task_ask_for_gpus_the_same_way(region: SimulatedRegion) -> None:
    side = {"name": "side", "essential": False}
    with pytest.raises(ClientError, match="must all use value, or all sharingStrategy"):
        region.register("mixed", sharing(), container(resourceRequirements=gpu(), **side))
    region.register("whole", container(resourceRequirements=gpu()), container(resourceRequirements=gpu(), **side))
    region.instance("g5.12xlarge")

    with pytest.raises(ClientError, match="must all use value, or all sharingStrategy"):
        region.run(taskDefinition="whole", overrides=override(share()))


@pytest.mark.parametrize("compatibility", ["EXTERNAL", "FARGATE"])
def test_shares_are_not_for_every_launch_type(region: SimulatedRegion, compatibility: str) -> None:
    with pytest.raises(ClientError, match="GPU sharing is supported"):
        region.register("train", sharing(), requiresCompatibilities=["EC2", compatibility])

    assert region.register("train", container(resourceRequirements=gpu()), requiresCompatibilities=["EC2"])


def test_two_shares_are_on_one_card_and_a_third_finds_no_room(region: SimulatedRegion) -> None:
    region.register("train", sharing(HALF))
    instance = region.instance()
    idle = devices(region, instance)

    first, second = region.run_one(), region.run_one()

    assert idle == [card("IDLE", REGISTERED, 0)]
    assert gpu_ids(region, first) == gpu_ids(region, second)
    assert devices(region, instance) == [card("NVIDIA_MPS", REGISTERED - 2 * HALF, 2)]
    assert region.run()["failures"][0]["reason"] == "RESOURCE:GPU"


def test_the_nominal_memory_of_a_card_is_more_than_there_is(region: SimulatedRegion) -> None:
    region.register("train", sharing(INSTANCE_TYPES["g5.xlarge"].gpu_memory_mib))
    region.instance()

    assert region.run()["failures"][0]["reason"] == "RESOURCE:GPU"
    assert region.run(overrides=override(share(REGISTERED)))["tasks"]


def test_compute_is_a_limit_and_nothing_is_reserved(region: SimulatedRegion) -> None:
    region.register("train", sharing(1_024, percent=90))
    region.instance()

    assert len(region.run(count=4)["tasks"]) == 4


def test_a_share_goes_to_the_card_that_has_least_left_and_no_idle_one_is_broken_into(region: SimulatedRegion) -> None:
    region.register("train", sharing(HALF))
    instance = region.instance("g5.12xlarge")

    arns = [region.run_one() for _ in range(3)]
    fitting = region.run_one(overrides=override(share(REGISTERED - HALF)))

    first, second, third = (gpu_ids(region, arn)[0] for arn in arns)
    assert first == second != third == gpu_ids(region, fitting)[0]
    assert [each["sharingMode"] for each in devices(region, instance)] == ["NVIDIA_MPS", "NVIDIA_MPS", "IDLE", "IDLE"]


def test_containers_of_one_task_share_one_card_that_must_hold_them_all(region: SimulatedRegion) -> None:
    region.register("train", sharing(HALF), sharing(HALF, name="side", essential=False))
    instance = region.instance("g5.12xlarge")
    elsewhere = region.run_one(overrides=override(share(100)))

    arn = region.run_one()

    main, side = gpu_ids(region, arn)
    assert main == side != gpu_ids(region, elsewhere)[0]
    assert devices(region, instance)[1] == card("NVIDIA_MPS", REGISTERED - 2 * HALF, 2)
    too_much = override(share(REGISTERED - HALF + 1))
    assert region.run(overrides=too_much)["failures"][0]["reason"] == "RESOURCE:GPU"


def test_a_card_is_one_containers_own_or_shared_and_idle_again_when_all_have_gone(region: SimulatedRegion) -> None:
    region.register("whole", container(**SMALL, resourceRequirements=gpu()))
    region.register("train", sharing(HALF))
    instance = region.instance()
    first, second = region.run_one(), region.run_one()
    assert region.run(taskDefinition="whole")["failures"][0]["reason"] == "RESOURCE:GPU"

    for arn, left in ((first, card("NVIDIA_MPS", REGISTERED - HALF, 1)), (second, card("IDLE", REGISTERED, 0))):
        region.ecs.stop_task(cluster="c", task=arn)
        region.wait_for(arn, "STOPPED")
        assert devices(region, instance) == [left]
    region.run_one(taskDefinition="whole")

    assert devices(region, instance) == [card("DEDICATED", 0, 1)]
    assert region.run()["failures"][0]["reason"] == "RESOURCE:GPU"


def test_a_task_has_its_sharing_strategy_and_gpu(region: SimulatedRegion) -> None:
    region.register("train", sharing(percent=30), container(**SMALL, name="log", essential=False))
    region.instance()

    main, log = region.task(region.run_one())["containers"]

    assert main["gpuSharingStrategy"] == {"nvidiaMps": {"memory": 2_048, "maxComputePercent": 30}}
    assert len(main["gpuIds"]) == 1
    assert "gpuSharingStrategy" not in log
    assert "gpuIds" not in log


def test_the_override_replaces_the_definitions_whole_gpu_by_a_share(region: SimulatedRegion) -> None:
    region.register("train", container(**SMALL, resourceRequirements=gpu()))
    instance = region.instance()

    arn = region.run_one(overrides=override(share(percent=50)))

    assert region.task(arn)["containers"][0]["gpuSharingStrategy"]["nvidiaMps"]["maxComputePercent"] == 50
    assert devices(region, instance)[0]["sharingMode"] == "NVIDIA_MPS"


@pytest.mark.parametrize(
    ("requirements", "limits"),
    [
        pytest.param(
            share(2_048, 30),
            {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=2048M", "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": "30"},
            id="memory and compute",
        ),
        pytest.param(share(2_048), {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": "0=2048M"}, id="memory alone"),
        pytest.param(gpu(), {}, id="a whole GPU"),
    ],
)
def test_the_limits_are_in_the_containers_environment(
    region: SimulatedRegion, requirements: list[dict[str, Any]], limits: dict[str, str]
) -> None:
    specs: list[ProcessSpec] = []

    def script(spec: ProcessSpec) -> Script:
        specs.append(spec)
        return Script(runtime_seconds=5.0)

    region.script = script
    region.register("train", container(**SMALL, resourceRequirements=requirements))
    region.instance()
    region.wait_for(region.run_one(), "STOPPED")

    assert {name: value for name, value in specs[0].environment.items() if name.startswith("CUDA_")} == limits


def test_an_agent_that_knows_nothing_of_sharing_has_no_devices_and_no_room_for_shares(region: SimulatedRegion) -> None:
    region.register("train", sharing())
    arn = region.simulator.instance(region.instance("p3.2xlarge")).arn

    (machine,) = region.ecs.describe_container_instances(cluster="c", containerInstances=[arn])["containerInstances"]

    assert "gpuDevices" not in machine
    assert region.run()["failures"][0]["reason"] == "RESOURCE:GPU"


@pytest.mark.parametrize(
    ("requirements", "instance_type", "fits"),
    [
        pytest.param(gpu("0.25"), "g6f.2xlarge", True, id="the part that the type has"),
        pytest.param(gpu("0.5"), "g6f.2xlarge", False, id="another part"),
        pytest.param(gpu("0.25"), "g5.xlarge", False, id="a part of a whole GPU"),
        pytest.param(gpu("1"), "g6f.2xlarge", False, id="a whole GPU where there is a part"),
        pytest.param(share(), "g6f.2xlarge", False, id="a share of a part"),
        pytest.param(None, "g6f.2xlarge", True, id="no GPU at all"),
    ],
)
def test_a_part_of_a_gpu_is_for_one_container_of_that_part(
    region: SimulatedRegion, requirements: list[dict[str, Any]] | None, instance_type: str, fits: bool
) -> None:
    region.register("train", container(**SMALL, **({"resourceRequirements": requirements} if requirements else {})))
    region.instance(instance_type)

    assert bool(region.run()["tasks"]) is fits
    if fits and requirements:
        assert region.run()["failures"][0]["reason"] == "RESOURCE:GPU"


def test_as_many_machines_start_as_the_waiting_shares_need(region: SimulatedRegion) -> None:
    region.provider(max_size=4)
    region.register("train", sharing(HALF))

    arns = [str(task["taskArn"]) for task in region.run("g5-spot", count=5)["tasks"]]
    for arn in arns:
        region.wait_for(arn, "RUNNING")

    assert len({region.instance_of(arn) for arn in arns}) == 3
