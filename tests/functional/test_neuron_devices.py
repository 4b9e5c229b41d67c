"""Jobs on Neuron machines of the ECS simulator, which like ECS counts ports and no Neuron devices.

Use cases and adapters are the real ones; the simulator places, and a checker that knows nothing of ports looks which
devices the containers on each machine were given.
"""

import random
from collections import Counter
from dataclasses import dataclass, field, replace

import pytest

from fakes.builders import make_definition, make_offering
from fakes.dependencies import make_dependencies
from fakes.jobs import InMemoryJobs
from fakes.simulated_region import SimulatedRegion, container
from fakes.sources import FakeLaunchQueue, FakeOfferings
from relaunch.adapters.aws.ecs.derived_revisions import EcsRegistry
from relaunch.adapters.aws.ecs.events import parse_ecs_event
from relaunch.adapters.aws.ecs.revisions import EcsRevisions
from relaunch.adapters.aws.ecs.target import EcsTarget
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.accelerator import (
    AcceleratorRequirement,
    NeuronPurpose,
    NeuronRequirement,
    PurchaseOption,
)
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.derived_revision import TaskDefinition
from relaunch.core.launches.launch import TaskObservation
from relaunch.core.triggers.events import DirectRequest
from relaunch.usecases.cancel_job import cancel_job
from relaunch.usecases.clean_revisions import clean_revisions
from relaunch.usecases.launch_attempt import launch_attempt
from relaunch.usecases.observe_task import observe_task
from relaunch.usecases.reconcile_jobs import reconcile_jobs
from relaunch.usecases.submit_job import submit_direct
from relaunch_local.ecs import Script
from relaunch_local.ecs.engine.model import Instance

MACHINE = load_catalogue()["inf2.24xlarge"]
INFERENCE = NeuronPurpose.INFERENCE
WISHES = {
    "one-device": NeuronRequirement(devices=1, purpose=INFERENCE),
    "two-cores": NeuronRequirement(cores=2, purpose=INFERENCE),
    "whole": NeuronRequirement(devices=6, purpose=INFERENCE),
    "four-cores": NeuronRequirement(cores=4, purpose=INFERENCE),
}


class WithoutPorts(EcsRegistry):
    """What would be registered if nobody had thought of ports."""

    def register(self, definition: TaskDefinition) -> str:
        containers = [
            {name: value for name, value in each.items() if name != "portMappings"}
            for each in definition.content["containerDefinitions"]
        ]
        return super().register(replace(definition, content={**definition.content, "containerDefinitions": containers}))


@dataclass
class NeuronCluster:
    """A cluster with one provider of inf2.24xlarge, the application, and definitions of every wish."""

    max_size: int = 3
    network_mode: str = "bridge"
    registry: type[EcsRegistry] = EcsRegistry
    seed: int = 0
    jobs: InMemoryJobs = field(default_factory=InMemoryJobs)
    launches: FakeLaunchQueue = field(default_factory=FakeLaunchQueue)
    seen: int = 0
    submitted: int = 0

    def __post_init__(self) -> None:
        self.ecs = SimulatedRegion(throttling=False, seed=self.seed)
        self.ecs.script = lambda _spec: Script(runtime_seconds=None)
        self.ecs.provider("inf2", MACHINE.name, max_size=self.max_size)
        self.ecs.register("trainer", container(cpu=4_096, memory=16_384), networkMode=self.network_mode)
        self.deps = make_dependencies(
            jobs=self.jobs,
            launches=self.launches,
            clock=self.ecs.clock,
            tasks=EcsTarget(self.ecs.ecs, "c"),
            revisions=EcsRevisions(self.ecs.ecs, has_host_access=True),
            registry=self.registry(self.ecs.ecs),
            offerings=FakeOfferings(make_offering(MACHINE, PurchaseOption.SPOT, capacity_provider="inf2")),
        )
        for name, wish in WISHES.items():
            accelerator = AcceleratorRequirement(neuron=wish)
            definition = make_definition(name=name, accelerator=accelerator, max_running_jobs=30, max_failures=0)
            self.deps.definitions.save_definition(definition)

    def submit(self, wish: str) -> str:
        """Ask for a job; return its id."""
        self.submitted += 1
        return submit_direct(DirectRequest(f"test:{self.submitted}", wish), self.deps).job_id

    def run(self, *wishes: str, seconds: float = 400) -> list[str]:
        """Ask for jobs and let time pass; return their ids."""
        job_ids = [self.submit(wish) for wish in wishes]
        self.deliver()
        self.pass_time(seconds)
        return job_ids

    def deliver(self) -> None:
        """Deliver what is queued and what ECS has to say, until there is nothing left."""
        for _ in range(200):
            requested, self.launches.requested = self.launches.requested, []
            events, self.seen = self.ecs.events[self.seen :], len(self.ecs.events)
            if not requested and not events:
                return
            for job_id, _ in requested:
                launch_attempt(job_id, self.deps)
            for event in events:
                observation = parse_ecs_event(dict(event)) if event["source"] == "aws.ecs" else None
                if isinstance(observation, TaskObservation):
                    observe_task(observation, self.deps)
            self.check()
        raise AssertionError("the cluster does not come to rest")

    def pass_time(self, seconds: float) -> None:
        """Let time pass in small steps, every one looked at."""
        for _ in range(int(seconds // 20)):
            self.ecs.clock.advance(20)
            self.deliver()
        reconcile_jobs(self.deps)
        self.deliver()

    def instances(self) -> list[Instance]:
        return [instance for instance in self.ecs.simulator.instances.by_id.values() if instance.is_alive]

    def running(self) -> list[Job]:
        return [job for job in map(self.jobs.job, self.job_ids()) if job.state is JobState.RUNNING]

    def job_ids(self) -> list[str]:
        return [summary.job_id for summary in self.jobs.list_jobs(1_000)[0]]

    def check(self) -> None:
        """No machine has given the same device to two tasks, and none has given one that it has not got."""
        for instance in self.ecs.simulator.instances.by_id.values():
            used = Counter(devices_on(instance))
            assert [device for device, count in used.items() if count > 1] == []
            assert set(used) <= {f"/dev/neuron{number}" for number in range(instance.shape.neuron_devices)}


def devices_on(instance: Instance) -> list[str]:
    """Return the devices that the containers on a machine were given."""
    return [
        device["hostPath"]
        for task in instance.tasks.values()
        for each in task.definition["containerDefinitions"]
        for device in each.get("linuxParameters", {}).get("devices", [])
    ]


@pytest.mark.parametrize("mode", ["bridge", "host"])
def test_six_jobs_of_one_device_share_one_machine_and_no_device(mode: str) -> None:
    cluster = NeuronCluster(network_mode=mode, max_size=1)
    cluster.run(*["one-device", "two-cores"] * 3)

    assert len(cluster.running()) == 6
    (instance,) = cluster.instances()
    assert sorted(devices_on(instance)) == [f"/dev/neuron{number}" for number in range(6)]


@pytest.mark.parametrize(
    ("max_size", "jobs", "seconds"),
    [
        pytest.param(10, 6, 400, id="six that wait for their first machine start two as ECS always does, and not six"),
        pytest.param(2, 7, 600, id="a seventh waits for another machine"),
    ],
)
def test_jobs_of_one_device_run_on_two_machines(max_size: int, jobs: int, seconds: float) -> None:
    cluster = NeuronCluster(max_size=max_size)
    cluster.run(*["one-device"] * jobs, seconds=seconds)

    assert len(cluster.running()) == jobs
    assert len(cluster.instances()) == 2


@pytest.mark.parametrize("wish", ["whole", "four-cores"])
def test_a_job_that_needs_the_whole_machine_is_alone_on_it(wish: str) -> None:
    cluster = NeuronCluster(max_size=2)
    for each in ("one-device", wish, "one-device"):
        cluster.run(each)

    assert len(cluster.running()) == 3
    alone, shared = sorted(cluster.instances(), key=lambda instance: len(instance.tasks))
    assert (len(alone.tasks), len(shared.tasks)) == (1, 2)
    assert len(devices_on(alone)) == 6


def test_a_device_is_free_again_when_its_job_is_over() -> None:
    cluster = NeuronCluster(max_size=1)
    first = cluster.run(*["one-device"] * 6)
    cancel_job(first[2], "enough", cluster.deps)
    cluster.pass_time(60)
    cluster.run("one-device", seconds=60)

    assert len(cluster.running()) == 6
    (instance,) = cluster.instances()
    assert len(set(devices_on(instance))) == 6


def test_a_job_that_lost_its_machine_claims_a_device_of_another() -> None:
    cluster = NeuronCluster(max_size=1)
    (job_id,) = cluster.run("one-device")
    (instance,) = cluster.instances()
    cluster.ecs.simulator.terminate(instance.instance_id)
    for _ in range(10):
        cluster.pass_time(400)

    job = cluster.jobs.job(job_id)
    assert job.state is JobState.RUNNING
    assert job.current_attempt.number == 2
    assert job.current_attempt.instance_id != instance.instance_id


def act(cluster: NeuronCluster, chance: random.Random) -> None:
    """One random thing that happens to the cluster."""
    open_jobs = [job_id for job_id in cluster.job_ids() if not cluster.jobs.job(job_id).state.is_final]
    instances = cluster.instances()
    what = chance.random()
    if what < 0.45 and len(open_jobs) < 18:
        cluster.submit(chance.choice([*WISHES, "one-device", "one-device"]))
    elif what < 0.65 and open_jobs:
        cancel_job(chance.choice(open_jobs), "enough", cluster.deps)
    elif what < 0.72 and instances:
        cluster.ecs.simulator.terminate(chance.choice(instances).instance_id)
    elif what < 0.78:
        clean_revisions(cluster.deps)
    cluster.deliver()
    cluster.pass_time(chance.choice([0, 20, 60, 400]))


@pytest.mark.parametrize("seed", range(4))
def test_no_device_is_ever_given_out_twice_whatever_happens(seed: int) -> None:
    cluster = NeuronCluster(seed=seed, network_mode="bridge" if seed % 2 else "host")
    chance = random.Random(seed)  # noqa: S311
    shared = 0
    for _ in range(60):
        act(cluster, chance)
        cluster.check()
        shared += any(len(instance.tasks) > 1 for instance in cluster.instances())

    assert shared > 10
    failed = [job for job in map(cluster.jobs.job, cluster.job_ids()) if job.state is JobState.FAILED]
    assert [job.reason for job in failed] == []


def test_the_checker_finds_what_ports_prevent(monkeypatch: pytest.MonkeyPatch) -> None:
    def found_twice(self: NeuronCluster) -> None:
        for instance in self.ecs.simulator.instances.by_id.values():
            used = Counter(devices_on(instance))
            twice.extend(device for device, count in used.items() if count > 1)

    twice: list[str] = []
    monkeypatch.setattr(NeuronCluster, "check", found_twice)
    cluster = NeuronCluster(registry=WithoutPorts, max_size=1)
    cluster.run("whole", "one-device", "one-device")

    assert "/dev/neuron0" in twice
