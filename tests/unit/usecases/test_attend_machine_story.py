"""A job on a machine of our own, from its submission until the machine is gone, on fakes."""

import pytest

from fakes.builders import make_offering
from fakes.fleet import FakeMachineQueue, FakeMachineSource
from fakes.sources import FakeOfferings
from fakes.story import Story
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.job import JobState, WaitReason
from relaunch.core.launches.launch import Node, NodeObservation
from relaunch.core.machines.machine import Machine, MachineState
from relaunch.core.machines.resources import Resources
from relaunch.core.machines.settings import LaunchTemplate, MachineSettings
from relaunch.core.offerings.amis import AmiKind
from relaunch.usecases.attend_machine import attend_machine
from relaunch.usecases.observe_machine import observe_machine

SITE = MachineSettings(
    "relaunch",
    {"us-east-1a": "subnet-a", "us-east-1b": "subnet-b"},
    launch_templates={AmiKind.GPU: LaunchTemplate("lt-0a", "7")},
)


def own(name: str, zone: str, price: float, purchase: PurchaseOption = PurchaseOption.SPOT):
    return make_offering(
        name, purchase, zone=zone, price_usd_per_hour=price, capacity_provider=None, is_own_machine=True
    )


class MachineStory(Story):
    """A story with machines of our own."""

    def __init__(self) -> None:
        fleet, queue = FakeMachineSource("relaunch"), FakeMachineQueue()
        offerings = FakeOfferings(own("g5.xlarge", "us-east-1a", 0.40), own("g6.xlarge", "us-east-1b", 0.42))
        super().__init__(fleet=fleet, machine_queue=queue, offerings=offerings, machine_settings=SITE)
        self.fleet, self.queue = fleet, queue

    def attend(self) -> None:
        while self.queue.requested:
            machine_id, _ = self.queue.requested.pop(0)
            attend_machine(machine_id, self.deps)

    def machine(self, job_id: str) -> Machine:
        job = self.job(job_id)
        machine_id = job.machine_id or job.current_attempt.placement.machine_id
        found = self.deps.machines.load_machine(machine_id)
        assert found is not None
        return found

    def register(self, machine: Machine, gpus: float = 1.0) -> None:
        assert machine.instance_id
        node = Node(f"node-of-{machine.instance_id}", machine.instance_id, "g5.xlarge", "us-east-1a")
        registered = Resources(4096, 15_000, gpus)
        observe_machine(NodeObservation(node, is_active=True, registered=registered), self.deps)


@pytest.fixture
def machine_story() -> MachineStory:
    return MachineStory()


def test_a_job_gets_a_machine_runs_on_it_and_the_machine_ends_with_it(machine_story):
    story = machine_story
    job_id = story.submit()
    story.deliver()

    waiting = story.job(job_id)
    assert (waiting.state, waiting.waiting.reason, waiting.has_slot) == (JobState.WAITING, WaitReason.MACHINE, True)
    assert waiting.waiting.detail == "EC2 is asked for g5.xlarge, g6.xlarge on spot in 2 zones"
    story.attend()
    machine = story.machine(job_id)
    assert machine.state is MachineState.STARTING
    assert story.deps.machines.load_totals().machines == 1

    story.register(machine)
    story.settle()

    job = story.job(job_id)
    assert job.state is JobState.LAUNCHING
    assert story.tasks.requests[-1].instance_id == machine.instance_id

    arn = story.arn(job_id)
    from relaunch.usecases.observe_task import observe_task

    observe_task(
        story.tasks.change(arn, last_status="RUNNING", started_at=story.now, container_instance_arn="node", node="x"),
        story.deps,
    )
    assert story.job(job_id).state is JobState.RUNNING
    observe_task(
        story.tasks.change(
            arn,
            last_status="STOPPED",
            desired_status="STOPPED",
            stop_code="EssentialContainerExited",
            container_exit_codes={"main": 0},
            stopped_at=story.now,
        ),
        story.deps,
    )
    assert story.job(job_id).state is JobState.SUCCEEDED
    assert story.machine(job_id).state is MachineState.ENDING
    story.attend()

    from relaunch.usecases.reconcile_machines import reconcile_machines, sweep_instances

    story.clock.advance(120)
    assert reconcile_machines(story.deps) == 1
    assert story.machine(job_id).state is MachineState.GONE
    assert story.deps.machines.load_totals().machines == 0
    assert sweep_instances(story.deps) == 0


def test_handover(machine_story):
    story = machine_story
    job_id = story.submit()
    story.deliver()
    story.attend()
    first = story.machine(job_id)
    story.register(first)
    story.settle()
    arn = story.arn(job_id)
    story.run(job_id) if hasattr(story, "run") else None
    from relaunch.core.launches.launch import InstanceEvent, InstanceEventKind
    from relaunch.usecases.observe_capacity import observe_capacity
    from relaunch.usecases.observe_task import observe_task

    observe_task(story.tasks.change(arn, last_status="RUNNING", started_at=story.now), story.deps)
    from dataclasses import replace as r

    story.tasks.tasks[arn] = r(story.tasks.tasks[arn], node="node-x")
    story.jobs.link = None
    observe_capacity(InstanceEvent(InstanceEventKind.INTERRUPTION_WARNING, first.instance_id), story.deps)
    print(story.timeline(job_id))
    print(story.job(job_id).state, story.job(job_id).pending, story.tasks.stops, story.launches.requested)
    print(story.job(job_id).attempt)
    assert story.job(job_id).state is JobState.STOPPING
    story.settle()
    story.attend()
    second = story.machine(job_id)
    assert second.machine_id != first.machine_id
    assert second.state is MachineState.STARTING
    story.register(second)
    story.settle()
    assert story.job(job_id).state is JobState.STOPPING
    observe_task(
        story.tasks.change(
            arn,
            last_status="STOPPED",
            desired_status="STOPPED",
            stop_code="UserInitiated",
            container_exit_codes={"main": 143},
            stopped_at=story.now,
        ),
        story.deps,
    )
    story.settle()
    print(story.timeline(job_id))
    assert story.job(job_id).state is JobState.LAUNCHING
    assert story.tasks.requests[-1].instance_id == second.instance_id
    assert story.deps.machines.load_machine(first.machine_id).state is MachineState.ENDING
