"""Shares of GPUs and parts of GPUs: what is refused, where tasks go, and what is told of the cards."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from fakes.ecs_region import INSTANCE_TYPES, EcsWorld, container, gpu, share
from relaunch_local.ecs import EcsError, ProcessSpec, Script

REGISTERED = INSTANCE_TYPES["g5.xlarge"].registered_gpu_memory_mib
HALF = REGISTERED // 2
SMALL = {"cpu": 256, "memory": 512}


def sharing(memory_mib: int = 2_048, percent: int | None = None, **members: Any) -> dict[str, Any]:
    return container(**SMALL, **members, resourceRequirements=share(memory_mib, percent))


def override(requirements: list[dict[str, Any]], name: str = "main") -> dict[str, Any]:
    return {"containerOverrides": [{"name": name, "resourceRequirements": requirements}]}


def devices(world: EcsWorld, instance_id: str) -> list[dict[str, Any]]:
    """The cards of an instance without their ids."""
    host = world.simulator.host(instance_id)
    answer = world.ecs.describe_container_instances(cluster="c", containerInstances=[host.arn])
    cards = answer["containerInstances"][0]["gpuDevices"]
    return [{name: value for name, value in card.items() if name != "gpuId"} for card in cards]


def card(mode: str, remaining_mib: int, containers: int) -> dict[str, Any]:
    return {
        "sharingMode": mode,
        "totalMemoryInMiB": REGISTERED,
        "remainingMemoryInMiB": remaining_mib,
        "containerCount": containers,
    }


def gpu_ids(world: EcsWorld, arn: str) -> list[list[str]]:
    return [each["gpuIds"] for each in world.task(arn)["containers"]]


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
def test_a_definition_that_breaks_a_rule_is_refused(world: EcsWorld, requirements: list[dict[str, Any]]) -> None:
    request = {"family": "train", "containerDefinitions": [container(resourceRequirements=requirements)]}

    # Not by the client, which would refuse some of them itself.
    with pytest.raises(EcsError) as refused:
        world.simulator.call("RegisterTaskDefinition", request)

    assert refused.value.code == "ClientException"


@pytest.mark.parametrize("requirements", BAD_REQUIREMENTS)
def test_an_override_that_breaks_a_rule_is_refused(world: EcsWorld, requirements: list[dict[str, Any]]) -> None:
    world.register()
    world.instance()

    with pytest.raises(EcsError) as refused:
        world.simulator.call(
            "RunTask", {"cluster": "c", "taskDefinition": "train", "overrides": override(requirements)}
        )

    assert refused.value.code == "InvalidParameterException"


def test_containers_of_a_task_ask_for_gpus_the_same_way(world: EcsWorld) -> None:
    side = {"name": "side", "essential": False}
    with pytest.raises(ClientError, match="must all use value, or all sharingStrategy"):
        world.register("mixed", sharing(), container(resourceRequirements=gpu(), **side))
    world.register("whole", container(resourceRequirements=gpu()), container(resourceRequirements=gpu(), **side))
    world.instance("g5.12xlarge")

    with pytest.raises(ClientError, match="must all use value, or all sharingStrategy"):
        world.run(taskDefinition="whole", overrides=override(share()))


@pytest.mark.parametrize("compatibility", ["EXTERNAL", "FARGATE"])
def test_shares_are_not_for_every_launch_type(world: EcsWorld, compatibility: str) -> None:
    with pytest.raises(ClientError, match="GPU sharing is supported"):
        world.register("train", sharing(), requiresCompatibilities=["EC2", compatibility])

    assert world.register("train", container(resourceRequirements=gpu()), requiresCompatibilities=["EC2"])


def test_two_shares_are_on_one_card_and_a_third_finds_no_room(world: EcsWorld) -> None:
    world.register("train", sharing(HALF))
    instance = world.instance()
    idle = devices(world, instance)

    first, second = world.run_one(), world.run_one()

    assert idle == [card("IDLE", REGISTERED, 0)]
    assert gpu_ids(world, first) == gpu_ids(world, second)
    assert devices(world, instance) == [card("NVIDIA_MPS", REGISTERED - 2 * HALF, 2)]
    assert world.run()["failures"][0]["reason"] == "RESOURCE:GPU"


def test_the_nominal_memory_of_a_card_is_more_than_there_is(world: EcsWorld) -> None:
    world.register("train", sharing(INSTANCE_TYPES["g5.xlarge"].gpu_memory_mib))
    world.instance()

    assert world.run()["failures"][0]["reason"] == "RESOURCE:GPU"
    assert world.run(overrides=override(share(REGISTERED)))["tasks"]


def test_compute_is_a_limit_and_nothing_is_reserved(world: EcsWorld) -> None:
    world.register("train", sharing(1_024, percent=90))
    world.instance()

    assert len(world.run(count=4)["tasks"]) == 4


def test_a_share_goes_to_the_card_that_has_least_left_and_no_idle_one_is_broken_into(world: EcsWorld) -> None:
    world.register("train", sharing(HALF))
    instance = world.instance("g5.12xlarge")

    arns = [world.run_one() for _ in range(3)]
    fitting = world.run_one(overrides=override(share(REGISTERED - HALF)))

    first, second, third = (gpu_ids(world, arn)[0] for arn in arns)
    assert first == second != third == gpu_ids(world, fitting)[0]
    assert [each["sharingMode"] for each in devices(world, instance)] == ["NVIDIA_MPS", "NVIDIA_MPS", "IDLE", "IDLE"]


def test_containers_of_one_task_share_one_card_that_must_hold_them_all(world: EcsWorld) -> None:
    world.register("train", sharing(HALF), sharing(HALF, name="side", essential=False))
    instance = world.instance("g5.12xlarge")
    elsewhere = world.run_one(overrides=override(share(100)))

    arn = world.run_one()

    main, side = gpu_ids(world, arn)
    assert main == side != gpu_ids(world, elsewhere)[0]
    assert devices(world, instance)[1] == card("NVIDIA_MPS", REGISTERED - 2 * HALF, 2)
    too_much = override(share(REGISTERED - HALF + 1))
    assert world.run(overrides=too_much)["failures"][0]["reason"] == "RESOURCE:GPU"


def test_a_card_is_one_containers_own_or_shared_and_idle_again_when_all_have_gone(world: EcsWorld) -> None:
    world.register("whole", container(**SMALL, resourceRequirements=gpu()))
    world.register("train", sharing(HALF))
    instance = world.instance()
    first, second = world.run_one(), world.run_one()
    assert world.run(taskDefinition="whole")["failures"][0]["reason"] == "RESOURCE:GPU"

    for arn, left in ((first, card("NVIDIA_MPS", REGISTERED - HALF, 1)), (second, card("IDLE", REGISTERED, 0))):
        world.ecs.stop_task(cluster="c", task=arn)
        world.wait_for(arn, "STOPPED")
        assert devices(world, instance) == [left]
    world.run_one(taskDefinition="whole")

    assert devices(world, instance) == [card("DEDICATED", 0, 1)]
    assert world.run()["failures"][0]["reason"] == "RESOURCE:GPU"


def test_a_task_tells_its_strategy_and_its_card(world: EcsWorld) -> None:
    world.register("train", sharing(percent=30), container(**SMALL, name="log", essential=False))
    world.instance()

    main, log = world.task(world.run_one())["containers"]

    assert main["gpuSharingStrategy"] == {"nvidiaMps": {"memory": 2_048, "maxComputePercent": 30}}
    assert len(main["gpuIds"]) == 1
    assert "gpuSharingStrategy" not in log
    assert "gpuIds" not in log


def test_the_override_replaces_the_definitions_whole_gpu_by_a_share(world: EcsWorld) -> None:
    world.register("train", container(**SMALL, resourceRequirements=gpu()))
    instance = world.instance()

    arn = world.run_one(overrides=override(share(percent=50)))

    assert world.task(arn)["containers"][0]["gpuSharingStrategy"]["nvidiaMps"]["maxComputePercent"] == 50
    assert devices(world, instance)[0]["sharingMode"] == "NVIDIA_MPS"


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
    world: EcsWorld, requirements: list[dict[str, Any]], limits: dict[str, str]
) -> None:
    specs: list[ProcessSpec] = []

    def script(spec: ProcessSpec) -> Script:
        specs.append(spec)
        return Script(runtime_seconds=5.0)

    world.script = script
    world.register("train", container(**SMALL, resourceRequirements=requirements))
    world.instance()
    world.wait_for(world.run_one(), "STOPPED")

    assert {name: value for name, value in specs[0].environment.items() if name.startswith("CUDA_")} == limits


def test_an_agent_that_knows_nothing_of_sharing_has_no_devices_and_no_room_for_shares(world: EcsWorld) -> None:
    world.register("train", sharing())
    arn = world.simulator.host(world.instance("p3.2xlarge")).arn

    (machine,) = world.ecs.describe_container_instances(cluster="c", containerInstances=[arn])["containerInstances"]

    assert "gpuDevices" not in machine
    assert world.run()["failures"][0]["reason"] == "RESOURCE:GPU"


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
    world: EcsWorld, requirements: list[dict[str, Any]] | None, instance_type: str, fits: bool
) -> None:
    world.register("train", container(**SMALL, **({"resourceRequirements": requirements} if requirements else {})))
    world.instance(instance_type)

    assert bool(world.run()["tasks"]) is fits
    if fits and requirements:
        assert world.run()["failures"][0]["reason"] == "RESOURCE:GPU"


def test_as_many_machines_start_as_the_waiting_shares_need(world: EcsWorld) -> None:
    world.provider(max_size=4)
    world.register("train", sharing(HALF))

    arns = [str(task["taskArn"]) for task in world.run("g5-spot", count=5)["tasks"]]
    for arn in arns:
        world.wait_for(arn, "RUNNING")

    assert len({world.instance_of(arn) for arn in arns}) == 3
