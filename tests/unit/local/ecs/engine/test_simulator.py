"""Random histories: resources are neither lost nor counted twice, and the same seed gives the same events."""

import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fakes.simulated_region import TASK_STATE_CHANGE, SimulatedRegion, container, gpu, share
from relaunch_local.ecs import ProcessSpec, Purchase, Script
from relaunch_local.ecs.engine.model import Instance, Task

STEPS = 250


def random_dependencies(seed: int) -> tuple[SimulatedRegion, random.Random]:
    chance = random.Random(seed)  # noqa: S311
    region = SimulatedRegion(throttling=False, seed=seed)

    def script_of(_spec: ProcessSpec) -> Script:
        return Script(
            runtime_seconds=chance.choice([5.0, 100.0, 2_000.0, None]),
            exit_code=chance.choice([0, 1]),
            sigterm_delay_seconds=chance.choice([0.0, 20.0, None]),
        )

    region.script = script_of
    region.provider("small", max_size=3)
    region.provider("large", "g5.12xlarge", purchase=Purchase.ON_DEMAND, max_size=2)
    ports = [{"containerPort": 80, "hostPort": 8_080}, {"containerPort": 81}]
    region.register("train", container(resourceRequirements=gpu()))
    region.register("serve", container(portMappings=ports), container(name="side", cpu=64, memory=64, essential=False))
    region.register("all", container(resourceRequirements=gpu("ALL")))
    sharing = {"cpu": 256, "memory": 512, "resourceRequirements": share(4_000)}
    region.register("share", container(**sharing), container(**sharing, name="side", essential=False))
    return region, chance


def act(region: SimulatedRegion, chance: random.Random) -> None:
    """Perform a random action of a caller or of EC2."""
    tasks = sorted(region.simulator.clusters.get("c").tasks)
    instances = sorted(
        instance.instance_id for instance in region.simulator.instances.by_id.values() if instance.is_alive
    )
    family = chance.choice(["train", "serve", "all", "share", "share"])
    provider = chance.choice(["small", "large"])
    choices: list[Callable[[], Any]] = [
        lambda: region.run(provider, taskDefinition=family, count=chance.randint(1, 3)),
        lambda: region.run(None, taskDefinition=family),
        lambda: region.clock.advance(chance.choice([0, 1, 30, 400])),
    ]
    if tasks:
        choices.append(lambda: region.ecs.stop_task(cluster="c", task=chance.choice(tasks)))
    if instances:
        instance_id = chance.choice(instances)
        choices += [
            lambda: region.simulator.interrupt(instance_id),
            lambda: region.simulator.terminate(instance_id),
            lambda: region.simulator.set_agent(instance_id, connected=chance.random() < 0.7),
        ]
    choices.append(lambda: region.simulator.set_capacity("g5.xlarge", Purchase.SPOT, chance.choice([0, 1, None])))
    try:
        chance.choice(choices)()
    except ClientError as error:
        # The one refusal a random caller meets: launch type EC2 without any instance.
        assert "No Container Instances" in str(error)  # noqa: PT017


def check_accounts(instance: Instance) -> None:
    """Check that free and reserved resources add up to the instance's."""
    tasks = list(instance.tasks.values())
    assert instance.cpu + sum(task.requirement.cpu_units for task in tasks) == instance.shape.vcpus * 1_024
    assert (
        instance.memory_mib + sum(task.requirement.memory_mib for task in tasks) == instance.shape.registered_memory_mib
    )
    whole = [task for task in tasks if not task.requirement.share_mib]
    pinned = [gpu_id for task in whole for each in task.containers for gpu_id in each.gpu_ids]
    assert sorted([*pinned, *instance.gpu_shares, *instance.free_gpu_ids]) == sorted(instance.gpu_ids)
    check_shares(instance, [task for task in tasks if task.requirement.share_mib])
    assert sum(len(task.requirement.tcp_ports) for task in tasks) == len(instance.tcp_ports) - 5
    assert min(instance.cpu, instance.memory_mib) >= 0


def check_shares(instance: Instance, sharing: list[Task]) -> None:
    """Check that every share is on one GPU, no GPU is overcommitted, and none is reserved without a task."""
    assert sorted(task_id for shares in instance.gpu_shares.values() for task_id in shares) == sorted(
        task.task_id for task in sharing
    )
    assert all(len({gpu_id for each in task.containers for gpu_id in each.gpu_ids}) == 1 for task in sharing)
    for shares in instance.gpu_shares.values():
        assert 0 < sum(mib for task in shares.values() for mib in task) <= instance.shape.registered_gpu_memory_mib


def check(region: SimulatedRegion) -> None:
    cluster = region.simulator.clusters.get("c")
    for instance in region.simulator.instances.by_id.values():
        check_accounts(instance)
        assert all(task.instance is instance and task.task_id in cluster.tasks for task in instance.tasks.values())
    waiting = {task_id for each in cluster.providers.values() for task_id in each.waiting}
    assert len(waiting) == cluster.provisioning_count
    for task_id, task in cluster.tasks.items():
        assert (task_id in waiting) == (task.instance is None)
    for provider in cluster.providers.values():
        assert len(provider.group.instances) <= provider.group.spec.max_size


def history(seed: int) -> SimulatedRegion:
    region, chance = random_dependencies(seed)
    for _ in range(STEPS):
        act(region, chance)
        check(region)
    return region


@pytest.mark.parametrize("seed", range(8))
def test_accounts_hold_at_every_step_and_in_the_end_nothing_is_left(seed: int) -> None:
    region = history(seed)
    for instance_id in list(region.simulator.instances.by_id):
        region.simulator.set_agent(instance_id, connected=True)
    for task_id in list(region.simulator.clusters.get("c").tasks):
        region.ecs.stop_task(cluster="c", task=task_id)
    region.clock.advance(7_200)
    check(region)

    assert region.simulator.clusters.get("c").tasks == {}
    assert all(line.terminated_at is not None for line in region.simulator.instances.bill)
    assert region.clock.next_due_at() is None
    versions: dict[str, list[int]] = defaultdict(list)
    last: dict[str, dict[str, Any]] = {}
    for detail in region.details(TASK_STATE_CHANGE):
        versions[detail["taskArn"]].append(detail["version"])
        last[detail["taskArn"]] = detail
    assert len(versions) > 20
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in versions.values())
    assert all(detail["lastStatus"] == "STOPPED" and detail["stopCode"] for detail in last.values())


def test_the_same_seed_gives_the_same_events() -> None:
    assert history(3).events == history(3).events
    assert history(3).events != history(4).events
