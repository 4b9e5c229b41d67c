"""Long random histories: nothing is lost, counted twice or left over, and the same seed tells the same story."""

import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from fakes.ecs_region import TASK_STATE_CHANGE, EcsWorld, container, gpu, share
from relaunch_local.ecs import ProcessSpec, Purchase, Script
from relaunch_local.ecs.engine.model import Host, Task

STEPS = 250


def random_dependencies(seed: int) -> tuple[EcsWorld, random.Random]:
    chance = random.Random(seed)  # noqa: S311
    world = EcsWorld(throttling=False, seed=seed)

    def script_of(_spec: ProcessSpec) -> Script:
        return Script(
            runtime_seconds=chance.choice([5.0, 100.0, 2_000.0, None]),
            exit_code=chance.choice([0, 1]),
            sigterm_delay_seconds=chance.choice([0.0, 20.0, None]),
        )

    world.script = script_of
    world.provider("small", max_size=3)
    world.provider("large", "g5.12xlarge", purchase=Purchase.ON_DEMAND, max_size=2)
    ports = [{"containerPort": 80, "hostPort": 8_080}, {"containerPort": 81}]
    world.register("train", container(resourceRequirements=gpu()))
    world.register("serve", container(portMappings=ports), container(name="side", cpu=64, memory=64, essential=False))
    world.register("all", container(resourceRequirements=gpu("ALL")))
    sharing = {"cpu": 256, "memory": 512, "resourceRequirements": share(4_000)}
    world.register("share", container(**sharing), container(**sharing, name="side", essential=False))
    return world, chance


def act(world: EcsWorld, chance: random.Random) -> None:
    """One random action of a caller or of fate."""
    tasks = sorted(world.simulator.clusters.get("c").tasks)
    instances = sorted(host.instance_id for host in world.simulator.machines.hosts.values() if host.is_alive)
    family = chance.choice(["train", "serve", "all", "share", "share"])
    provider = chance.choice(["small", "large"])
    choices: list[Callable[[], Any]] = [
        lambda: world.run(provider, taskDefinition=family, count=chance.randint(1, 3)),
        lambda: world.run(None, taskDefinition=family),
        lambda: world.clock.advance(chance.choice([0, 1, 30, 400])),
    ]
    if tasks:
        choices.append(lambda: world.ecs.stop_task(cluster="c", task=chance.choice(tasks)))
    if instances:
        instance_id = chance.choice(instances)
        choices += [
            lambda: world.simulator.interrupt(instance_id),
            lambda: world.simulator.terminate(instance_id),
            lambda: world.simulator.set_agent(instance_id, connected=chance.random() < 0.7),
        ]
    choices.append(lambda: world.simulator.set_capacity("g5.xlarge", Purchase.SPOT, chance.choice([0, 1, None])))
    try:
        chance.choice(choices)()
    except ClientError as error:
        # The one refusal a random caller meets: launch type EC2 without any instance.
        assert "No Container Instances" in str(error)  # noqa: PT017


def check_accounts(host: Host) -> None:
    """What is free and what is taken make up what the machine has."""
    tasks = list(host.tasks.values())
    assert host.cpu + sum(task.requirement.cpu_units for task in tasks) == host.shape.vcpus * 1_024
    assert host.memory_mib + sum(task.requirement.memory_mib for task in tasks) == host.shape.registered_memory_mib
    whole = [task for task in tasks if not task.requirement.share_mib]
    pinned = [gpu_id for task in whole for each in task.containers for gpu_id in each.gpu_ids]
    assert sorted([*pinned, *host.gpu_shares, *host.free_gpu_ids]) == sorted(host.gpu_ids)
    check_shares(host, [task for task in tasks if task.requirement.share_mib])
    assert sum(len(task.requirement.tcp_ports) for task in tasks) == len(host.tcp_ports) - 5
    assert min(host.cpu, host.memory_mib) >= 0


def check_shares(host: Host, sharing: list[Task]) -> None:
    """Every share is on one card, no card gives more than it has, and none is kept for nobody."""
    assert sorted(task_id for shares in host.gpu_shares.values() for task_id in shares) == sorted(
        task.task_id for task in sharing
    )
    assert all(len({gpu_id for each in task.containers for gpu_id in each.gpu_ids}) == 1 for task in sharing)
    for shares in host.gpu_shares.values():
        assert 0 < sum(mib for task in shares.values() for mib in task) <= host.shape.registered_gpu_memory_mib


def check(world: EcsWorld) -> None:
    cluster = world.simulator.clusters.get("c")
    for host in world.simulator.machines.hosts.values():
        check_accounts(host)
        assert all(task.host is host and task.task_id in cluster.tasks for task in host.tasks.values())
    waiting = {task_id for each in cluster.providers.values() for task_id in each.waiting}
    assert len(waiting) == cluster.provisioning_count
    for task_id, task in cluster.tasks.items():
        assert (task_id in waiting) == (task.host is None)
    for provider in cluster.providers.values():
        assert len(provider.group.hosts) <= provider.group.spec.max_size


def history(seed: int) -> EcsWorld:
    world, chance = random_dependencies(seed)
    for _ in range(STEPS):
        act(world, chance)
        check(world)
    return world


@pytest.mark.parametrize("seed", range(8))
def test_accounts_hold_at_every_step_and_in_the_end_nothing_is_left(seed: int) -> None:
    world = history(seed)
    for instance_id in list(world.simulator.machines.hosts):
        world.simulator.set_agent(instance_id, connected=True)
    for task_id in list(world.simulator.clusters.get("c").tasks):
        world.ecs.stop_task(cluster="c", task=task_id)
    world.clock.advance(7_200)
    check(world)

    assert world.simulator.clusters.get("c").tasks == {}
    assert all(line.terminated_at is not None for line in world.simulator.machines.bill)
    assert world.clock.next_due_at() is None
    versions: dict[str, list[int]] = defaultdict(list)
    last: dict[str, dict[str, Any]] = {}
    for detail in world.details(TASK_STATE_CHANGE):
        versions[detail["taskArn"]].append(detail["version"])
        last[detail["taskArn"]] = detail
    assert len(versions) > 20
    assert all(numbers == list(range(1, len(numbers) + 1)) for numbers in versions.values())
    assert all(detail["lastStatus"] == "STOPPED" and detail["stopCode"] for detail in last.values())


def test_the_same_seed_tells_the_same_story() -> None:
    assert history(3).events == history(3).events
    assert history(3).events != history(4).events
