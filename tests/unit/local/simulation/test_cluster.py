"""The cluster of a run: pods are reported as tasks are, and its API answers, fails and pages as a real one."""

from collections.abc import Callable
from typing import Any

import pytest

from fakes.builders import make_definition, make_launch_request
from relaunch.core.definitions.accelerator import GpuRequirement, PurchaseOption
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import AttemptKey
from relaunch.core.launches.launch import TaskPlaced
from relaunch.core.offerings.offering import OfferingKey
from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.calls import Calls
from relaunch_local.simulation.aws.recipes import Recipe
from relaunch_local.simulation.aws.runtime import Runtime
from relaunch_local.simulation.aws.s3 import ObjectStore
from relaunch_local.simulation.aws.trainings import Trainings
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.cluster import ClusterWorld
from relaunch_local.simulation.cluster_sign_in import SignIn
from relaunch_local.simulation.scenario import ClusterScenario

DEFINITION = make_definition(name="atari", target=Target.ACK, kubernetes=KubernetesWorkload("image:1"))


class World:
    def __init__(self) -> None:
        self.clock = Clock()
        self.chance = Chance(1, self.clock.now)
        recipes = {"atari": Recipe(600.0, None)}
        trainings = Trainings(self.clock, self.chance, ObjectStore(), recipes)
        self.world = ClusterWorld(self.clock, trainings, ClusterScenario(DEFINITION, 36, 1))
        self.events: list[tuple[str, str]] = []
        self.world.on_event = lambda event: self.events.append(
            (event["detail"]["taskArn"], event["detail"]["lastStatus"])
        )
        self.stopped: list[str] = []
        self.refused: list[str] = []
        calls = Calls(Runtime(self.clock, self.chance, lambda _line: None), self.chance)
        note: Callable[..., None] = lambda _kind, of: self.stopped.append(of)  # noqa: E731
        self.tokens = 0
        self.target = self.world.make_target(calls, SignIn(self, self), 1, note, self.refused.append)

    def get_web_identity_token(self, **_parameters: Any) -> dict[str, str]:
        self.tokens += 1
        return {"WebIdentityToken": "a.b.c"}

    def launch(self, job_id: str) -> str:
        request = make_launch_request(
            attempt=AttemptKey(job_id, 1),
            workload=KubernetesWorkload("image:1"),
            gpu=GpuRequirement(count=1),
            environment={"RECIPE": "atari", "RELAUNCH_JOB_ID": job_id},
            offering=OfferingKey("ack", None, PurchaseOption.ON_DEMAND),
        )
        placed = self.target.launch(request)
        assert isinstance(placed, TaskPlaced)
        return placed.task_id


@pytest.fixture
def world() -> World:
    return World()


def test_a_pod_is_reported_from_its_creation_to_its_end(world: World) -> None:
    task = world.launch("job-1")
    world.clock.advance(1_000)

    assert world.events == [(task, "PROVISIONING"), (task, "STOPPED")]
    assert world.world.trainings.logs["job-1"].finished == 1


def test_what_is_stopped_ends_and_is_reported(world: World) -> None:
    task = world.launch("job-1")
    world.clock.advance(60)
    world.target.stop(task, "not needed any more")
    world.clock.advance(60)

    assert world.stopped == [task]
    assert world.events[-1] == (task, "STOPPED")


def test_nothing_runs_any_more_on_a_node_that_is_lost(world: World) -> None:
    task = world.launch("job-1")
    world.clock.advance(60)
    (node,) = world.world.nodes()
    world.world.cluster.lose_node(node)

    assert world.events[-1] == (task, "STOPPED")
    assert world.world.nodes() == []


def test_lists_come_in_pages_of_the_run_and_nodes_need_not_be_listed(world: World) -> None:
    tasks = {world.launch(f"job-{number}") for number in (1, 2)}
    world.clock.advance(60)
    pages: list[Any] = list(world.target.list_tasks())

    assert [len(page) for page in pages] == [1, 1]
    assert {task.task_id for page in pages for task in page} == tasks
    assert list(world.target.list_nodes()) == []
    assert world.refused == []


def test_functions_sign_in_again_before_their_credentials_expire(world: World) -> None:
    for seconds in (0, 13 * 60, 60, 10):
        world.clock.advance(seconds)
        list(world.target.list_tasks())

    assert world.tokens == 2
