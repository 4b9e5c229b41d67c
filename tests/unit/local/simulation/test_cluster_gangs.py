"""Gangs in the cluster of a run: how their ranks meet, what they come to, and what is checked of them."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from fakes.builders import make_definition, make_launch_request
from relaunch.core.definitions.accelerator import GpuRequirement, PurchaseOption
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import AttemptKey, Stop, StopKind
from relaunch.core.launches.launch import LaunchRefused, TaskPlaced
from relaunch.core.offerings.offering import OfferingKey
from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.calls import Calls
from relaunch_local.simulation.aws.recipes import GangRecipe, Recipe
from relaunch_local.simulation.aws.runtime import Runtime
from relaunch_local.simulation.aws.s3 import ObjectStore
from relaunch_local.simulation.aws.trainings import Trainings
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.checks.cluster_gangs import (
    FAILED,
    FINISHED,
    NOTHING_LEFT,
    PART_RUNS,
    PART_WAITS,
    REFUSED,
    TAKEN,
    ClusterGangChecks,
)
from relaunch_local.simulation.cluster import ClusterWorld
from relaunch_local.simulation.cluster_api import NAMESPACE
from relaunch_local.simulation.cluster_gangs import GENERATIONS, GangTask, is_untold
from relaunch_local.simulation.cluster_queue import ClusterQueue
from relaunch_local.simulation.cluster_sign_in import SignIn
from relaunch_local.simulation.scenario import ClusterScenario

NODES = 3
RECIPE = Recipe(600.0, None, gang=GangRecipe(nccl_share=1.0))


class World:
    def __init__(self, minor: int = 36, nodes: int = 2, queue: str = "", target: Target = Target.KUBERNETES) -> None:
        self.clock = Clock()
        self.chance = Chance(1, self.clock.now)
        self.chance.is_calm = True
        self.workload = KubernetesWorkload("image:1", queue=queue)
        definition = make_definition(name="atari", target=target, kubernetes=self.workload, nodes=NODES)
        trainings = Trainings(self.clock, self.chance, ObjectStore(), {"atari": RECIPE})
        self.world = ClusterWorld(self.clock, trainings, ClusterScenario(definition, minor, nodes))
        self.events: list[tuple[str, str]] = []
        self.world.on_event = lambda event: self.events.append(
            (event["detail"]["taskArn"], event["detail"]["lastStatus"])
        )
        self.gangs = self.world.gangs
        self.broken: list[str] = []
        self.gangs.check = trainings.check = trainings.gangs.check = self.check
        self.checks = ClusterGangChecks(self.clock, self.gangs, self.check, lambda _since, _until: timedelta(0))
        calls = Calls(Runtime(self.clock, self.chance, lambda _line: None), self.chance)
        note: Callable[..., None] = lambda *_given: None  # noqa: E731
        signed: Callable[..., object] = lambda **_parameters: {"WebIdentityToken": "a.b.c"}  # noqa: E731
        clients = SignIn(self, self)
        self.get_web_identity_token = signed
        self.describe_cluster: Callable[..., object] = lambda **_parameters: {}
        self.target = self.world.make_target(calls, replace(clients), None, note, self.broken.append)
        self.kind = target

    def check(self, name: str, holds: bool, message: str = "") -> None:
        del message
        self.broken += [] if holds else [name]

    def launch(self, job_id: str = "job-1", number: int = 1) -> str:
        group = {"RELAUNCH_GROUP": f"{job_id}/1/{number}", "RELAUNCH_NODES": str(NODES), "PET_NNODES": str(NODES)}
        ports = dict.fromkeys(("RELAUNCH_MASTER_PORT", "PET_MASTER_PORT"), "29500")
        own = {"RECIPE": "atari", "RELAUNCH_JOB_ID": job_id, "RELAUNCH_ATTEMPT": "1"}
        request = make_launch_request(
            attempt=AttemptKey(job_id, 1),
            placement_number=number,
            workload=self.workload,
            gpu=GpuRequirement(count=1),
            nodes=NODES,
            environment={**own, **group, **ports},
            offering=OfferingKey(str(self.kind), None, PurchaseOption.ON_DEMAND),
        )
        placed = self.target.launch(request)
        assert isinstance(placed, TaskPlaced), placed
        return placed.task_id

    def train(self) -> GangTask:
        task = self.gangs.tasks[self.launch()]
        self.clock.advance(60)
        assert task.is_formed
        return task

    def pod(self, task: GangTask, rank: int = 0):
        return sorted(self.gangs.pods_of(task), key=lambda each: each["spec"]["hostname"])[rank]

    def judge(self, task: GangTask, kind: StopKind, asked_at: datetime | None = None, *, is_told: bool = True):
        self.broken.clear()
        self.checks.check_stop(task, Stop(kind, self.clock.now(), "", ""), asked_at, is_told=is_told)
        return self.broken


@pytest.fixture(autouse=True)
def _sign_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SignIn, "sign_in", lambda _self, _target: None)


def test_ranks_meet_by_the_name_of_the_first_and_are_reported_as_one_task() -> None:
    world = World()
    task = world.train()
    world.clock.advance(1_000)

    assert world.events == [(task.name, "PROVISIONING"), (task.name, "STOPPED")]
    assert task.made == NODES
    assert {ending for _, ending, _ in task.ends.values()} == {"finished"}
    assert world.world.trainings.logs["job-1"].finished == 1
    assert world.judge(task, StopKind.SUCCESS) == []
    assert world.judge(task, StopKind.INTERRUPTION) == [FINISHED]


def test_ranks_wait_until_the_service_is_there() -> None:
    world = World()
    state = world.world.cluster.state
    task = world.gangs.tasks[world.launch()]
    (service,) = state.all("services", NAMESPACE)
    state.remove("services", service)
    world.clock.advance(120)
    assert not task.is_formed

    state.add("services", NAMESPACE, service)
    world.clock.advance(10)
    assert task.is_formed
    assert world.broken == []


def test_a_part_that_finds_no_nodes_fails_after_ten_minutes_and_may_wait_no_longer_than_it_should() -> None:
    world = World(nodes=1)
    task = world.gangs.tasks[world.launch()]
    assert task.held_since == world.clock.now()
    world.clock.advance(700)

    # The first that gives up takes the store with it.
    assert {ending for _, ending, _ in task.ends.values()} <= {"not joined", "store lost"}
    assert task.held_since is None
    assert timedelta(minutes=10) < world.checks.longest[PART_WAITS] < timedelta(minutes=12)
    assert world.broken == []


def test_a_part_that_waits_or_runs_for_too_long_is_a_violation_though_nothing_happens() -> None:
    world = World()
    task = world.train()
    rank = world.world.trainings.gangs.ranks[world.pod(task)["metadata"]["uid"]]
    world.gangs.hang(world.pod(task))
    for other in rank.gang.ranks.values():
        if other.timer is not None:
            other.timer.cancel()
    world.clock.advance(3_600)

    assert PART_RUNS in world.broken
    assert PART_WAITS not in world.broken


@pytest.mark.parametrize("how", ["evicted", "deleted", "node", "job", "suspended"])
def test_what_is_taken_away_first_is_no_failure(how: str) -> None:
    world = World()
    task = world.train()
    pod = world.pod(task)
    cluster = world.world.cluster
    match how:
        case "evicted":
            cluster.evict_pod(NAMESPACE, pod["metadata"]["name"])
        case "deleted":
            cluster.delete_pod(NAMESPACE, pod["metadata"]["name"])
        case "node":
            cluster.lose_node(pod["spec"]["nodeName"])
        case "job":
            cluster.delete_job(NAMESPACE, task.name)
        case _:
            cluster.suspend_job(NAMESPACE, task.name)

    assert task.is_taken_first
    assert world.judge(task, StopKind.INTERRUPTION) == []
    assert world.judge(task, StopKind.USER_ERROR) == [TAKEN]
    assert world.judge(task, StopKind.USER_ERROR, is_told=False) == []


def test_a_rank_that_hangs_is_a_failure_of_the_program_unless_it_was_asked_to_stop_before() -> None:
    world = World()
    task = world.train()
    assert world.gangs.hang(world.pod(task, 1))
    assert not world.gangs.hang(world.pod(task, 1))
    world.clock.advance(900)

    assert sorted(ending for _, ending, _ in task.ends.values())[0] == "hung"
    assert not task.pods
    assert world.judge(task, StopKind.USER_ERROR) == []
    assert world.judge(task, StopKind.INTERRUPTION) == [FAILED]
    assert world.judge(task, StopKind.INTERRUPTION, task.failed_at) == []
    assert world.judge(task, StopKind.TIME_OUT) == []
    # A node out of reach may be the cause as well.
    world.gangs.unclear([{"metadata": {"labels": {}}}])
    task.is_unclear = True
    assert world.judge(task, StopKind.INTERRUPTION) == []


def test_two_generations_at_once_are_a_violation() -> None:
    world = World(nodes=4)
    world.train()
    world.launch(number=2)
    world.clock.advance(60)

    assert GENERATIONS in world.broken


def test_pods_on_a_node_out_of_reach_hold_nothing_that_could_be_given_up() -> None:
    world = World(nodes=3)
    task = world.train()
    node = world.pod(task, 2)["spec"]["nodeName"]
    world.world.cluster.cut_off_node(node, for_seconds=2_000)
    world.gangs.hang(world.pod(task))
    world.clock.advance(800)

    assert task.broken_since is None
    assert {each["spec"]["nodeName"] for each in world.gangs.pods_of(task) if each["metadata"]["uid"] in task.pods} == {
        node
    }


def test_a_pod_that_an_old_server_makes_in_the_place_of_another_meets_nobody() -> None:
    world = World(minor=24, nodes=3)
    task = world.train()
    first = world.pod(task)["metadata"]["name"]
    world.world.cluster.evict_pod(NAMESPACE, first, "policy/v1")
    world.clock.advance(60)

    assert task.made == NODES + 1
    assert world.broken == []
    assert task.broken_since is not None or not task.pods


def test_the_ranks_of_a_job_that_is_made_again_under_its_name_meet() -> None:
    world = World()
    task = world.train()
    world.world.cluster.delete_job(NAMESPACE, task.name)
    assert task.taken
    world.launch()
    world.clock.advance(60)

    assert world.broken == []
    assert task.is_formed
    assert task.gang is not None
    assert task.gang.is_at_work
    assert (task.made, task.taken, task.ends) == (2 * NODES, [], {})


def test_a_job_that_was_stopped_while_a_queue_held_it_back_goes_when_the_queue_lets_it() -> None:
    world = World()
    task = world.train()
    world.world.cluster.suspend_job(NAMESPACE, task.name)
    world.clock.advance(60)
    world.checks.check_end(world.world.cluster.state, NAMESPACE, 36)
    assert set(world.broken) == {NOTHING_LEFT}
    world.broken.clear()

    world.target.stop(task.name, "its pods were taken away")
    world.checks.check_end(world.world.cluster.state, NAMESPACE, 36)

    assert world.broken == []


@pytest.mark.parametrize("target", [Target.KUBERNETES, Target.ACK])
def test_what_is_left_goes_by_itself(target: Target) -> None:
    world = World(target=target)
    task = world.train()
    state = world.world.cluster.state
    world.checks.check_end(state, NAMESPACE, 36)
    assert set(world.broken) == {NOTHING_LEFT}

    world.clock.advance(1_000)
    world.broken.clear()
    world.checks.check_end(state, NAMESPACE, 36)
    assert world.broken == []
    (service,) = state.all("services", NAMESPACE)
    service["metadata"]["ownerReferences"] = []
    world.checks.check_end(state, NAMESPACE, 36)
    assert world.broken == [NOTHING_LEFT]
    world.broken.clear()
    state.remove("services", service)
    world.checks.check_end(state, NAMESPACE, 20)
    assert world.broken == [REFUSED]
    assert task.made == NODES


def test_an_old_server_is_asked_for_nothing() -> None:
    world = World(minor=20)
    with pytest.raises(AssertionError, match=LaunchRefused.__name__):
        world.launch()

    world.checks.check_end(world.world.cluster.state, NAMESPACE, 20)
    assert world.broken == []


def test_a_queue_lets_a_job_go_on_when_all_its_pods_have_gpus() -> None:
    world = World(nodes=2, queue="team-a")
    ClusterQueue(world.clock, world.world.cluster, NAMESPACE)
    first = world.launch("job-1")
    second = world.launch("job-2")
    world.clock.advance(60)

    # Four GPUs, of which each job needs three.
    assert list(world.gangs.tasks) == [first]
    world.clock.advance(1_000)
    assert list(world.gangs.tasks) == [first, second]
    assert world.broken == []


def test_what_virtual_nodes_do_not_tell_is_not_held_against_anybody() -> None:
    at = Clock().now()
    task = GangTask("job-1-1-1", "job-1", NODES, "job-1/1")
    assert not is_untold(task, 36)
    for how, untold in (("deleted", True), ("EvictionByEvictionAPI", False), ("its node lost", True)):
        task.taken = [(at, how)]
        assert is_untold(task, 36) is untold
        assert is_untold(task, 25)
