"""Which Neuron devices a job's tasks use, and what happens when they are taken."""

from dataclasses import replace

import pytest

from fakes.builders import make_container, make_definition, make_failed_placement, make_offering, make_revision
from fakes.machine_story import MachineStory, make_own_offering
from fakes.story import Story, push
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.accelerator import (
    AcceleratorRequirement,
    NeuronPurpose,
    NeuronRequirement,
    PurchaseOption,
)
from relaunch.core.jobs.attempt import PlacementState
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.derived_revision import TaskDefinition
from relaunch.core.launches.launch import AllNeuronDevices
from relaunch.core.offerings.offering import OfferingKey
from relaunch.core.selection.neuron_devices import FIRST_PORT, RemainingResources

INF2 = load_catalogue()["inf2.24xlarge"]


def neuron_story(*, is_managed: bool = False, mode: str = "bridge", **neuron: int) -> Story:
    """A story of a definition that wants Neuron, and one offering."""
    accelerator = AcceleratorRequirement(neuron=NeuronRequirement(**neuron, purpose=NeuronPurpose.INFERENCE))
    story = Story(make_definition(accelerator=accelerator))
    container = make_container(gpu_count=0, image="busybox:1")
    story.revisions.active[:] = [make_revision(containers=(container,), network_mode=mode)]
    offering = make_offering(INF2, PurchaseOption.SPOT, is_managed=is_managed)
    story.offerings.available = (offering,)
    return story


def devices_of(definition: TaskDefinition) -> list[str]:
    (container,) = definition.content["containerDefinitions"]
    return [each["hostPath"] for each in container.get("linuxParameters", {}).get("devices", [])]


def ports_of(definition: TaskDefinition) -> list[int]:
    (container,) = definition.content["containerDefinitions"]
    return [each["hostPort"] for each in container.get("portMappings", [])]


def test_jobs_that_want_one_device_before_there_is_a_machine_want_different_ones():
    story = neuron_story(devices=1)
    for number in range(6):
        story.submit_and_deliver(push(sha=f"{number:040x}"))

    runs = [story.launched_definition(number) for number in range(len(story.tasks.requests))]
    # Five of a definition run at once.
    assert [devices_of(each) for each in runs] == [[f"/dev/neuron{number}"] for number in range(5)]
    assert [ports_of(each) for each in runs] == [[FIRST_PORT + number] for number in range(5)]
    assert story.deps.maintenance.take_turn(INF2.name) == 6


def test_a_device_that_is_free_on_a_running_machine_is_taken():
    story = neuron_story(cores=2)
    taken = frozenset(FIRST_PORT + number for number in (0, 1, 2, 4, 5))
    story.tasks.room["inf2.24xlarge", "inf2-24xlarge-spot"] = {"i-1": RemainingResources(90.0, 300_000, taken)}
    job_id = story.submit_and_deliver()

    assert devices_of(story.launched_definition()) == ["/dev/neuron3"]
    assert story.attempt(job_id).placement.neuron_devices == (3,)
    assert "Neuron device 3" in story.timeline(job_id)


def test_on_a_machine_of_our_own_the_device_is_one_that_is_free_there():
    accelerator = AcceleratorRequirement(neuron=NeuronRequirement(devices=1, purpose=NeuronPurpose.INFERENCE))
    machines = MachineStory(make_definition(accelerator=accelerator))
    machines.revisions.active[:] = [make_revision(containers=(make_container(gpu_count=0, image="busybox:1"),))]
    key = OfferingKey(INF2.name, "us-east-1a", PurchaseOption.ON_DEMAND)
    machines.offerings.available = (replace(make_own_offering(key, 6.49), instance_type=INF2),)
    machine = machines.machine(machines.start())
    # Of the machine that others use every device is free, of the one that is claimed the last three.
    taken = frozenset(FIRST_PORT + number for number in range(3))
    machines.tasks.room[INF2.name, ""] = {
        "i-0": RemainingResources(90.0, 300_000, frozenset()),
        machine.instance_id: RemainingResources(90.0, 300_000, taken),
    }
    machines.register(machine, neuron_devices=6)
    machines.settle_all()

    assert devices_of(machines.launched_definition()) == ["/dev/neuron3"]


def test_more_than_one_device_is_the_whole_machine():
    story = neuron_story(cores=4)
    job_id = story.submit_and_deliver()

    assert len(devices_of(story.launched_definition())) == 6
    assert ports_of(story.launched_definition()) == list(range(FIRST_PORT, FIRST_PORT + 6))
    assert "all 6 Neuron devices" in story.timeline(job_id)


def test_a_device_that_another_task_took_first_is_followed_by_the_next_at_once():
    story = neuron_story(devices=1)
    story.tasks.outcomes.append(make_failed_placement("RESOURCE:PORTS"))
    job_id = story.submit()
    story.settle()

    assert [devices_of(story.launched_definition(number)) for number in (0, 1)] == [["/dev/neuron0"], ["/dev/neuron1"]]
    assert story.attempt(job_id).placement.state is PlacementState.PLACED
    assert story.deps.capacity.load_capacity_memory(story.now) == {}


def test_when_device_after_device_is_taken_the_offering_counts_as_full():
    story = neuron_story(devices=1)
    story.tasks.outcomes.extend([make_failed_placement("RESOURCE:PORTS")] * 9)
    job_id = story.submit()
    story.settle()

    assert len(story.tasks.requests) == 4
    assert story.job(job_id).waiting.reason == "capacity"


def test_other_failures_of_placement_count_as_ever():
    story = neuron_story(devices=1)
    story.tasks.outcomes.append(make_failed_placement("RESOURCE:PORTS", "RESOURCE:CPU"))
    story.submit()
    story.settle()

    assert len(story.tasks.requests) == 1
    assert story.deps.capacity.load_capacity_memory(story.now)


def test_the_whole_machine_is_not_tried_again_at_once():
    story = neuron_story(devices=6)
    story.tasks.outcomes.append(make_failed_placement("RESOURCE:PORTS"))
    story.submit()
    story.settle()

    assert len(story.tasks.requests) == 1


def test_managed_instances_give_out_devices_themselves():
    story = neuron_story(devices=1, is_managed=True, mode="awsvpc")
    job_id = story.submit_and_deliver()

    (request,) = story.tasks.requests
    assert request.accelerators == AllNeuronDevices()
    assert request.revision_arn == make_revision().arn
    assert story.attempt(job_id).placement.takes_all_neuron
    assert story.registry.register_count == 0


def test_devices_by_path_are_taken_out_for_managed_instances():
    story = neuron_story(devices=1, is_managed=True, mode="host")
    device = {"hostPath": "/dev/neuron0", "containerPath": "/dev/neuron0"}
    content = {"containerDefinitions": [{"name": "main", "image": "x", "linuxParameters": {"devices": [device]}}]}
    story.registry.sources[make_revision().arn] = TaskDefinition("trainer", content)
    story.submit_and_deliver()

    assert story.tasks.requests[0].accelerators == AllNeuronDevices()
    assert devices_of(story.launched_definition()) == []
    assert ports_of(story.launched_definition()) == []


@pytest.mark.parametrize(
    ("mode", "is_managed", "words"),
    [
        pytest.param("awsvpc", False, "ECS does not count Neuron devices", id="awsvpc has no ports of the machine"),
        pytest.param("none", False, "ECS does not count Neuron devices", id="none has no ports of the machine"),
        pytest.param("bridge", True, "Managed Instances take network mode awsvpc or host", id="bridge, managed"),
    ],
)
def test_a_network_mode_that_does_not_suit_the_machine_is_refused_in_words(mode, is_managed, words):
    story = neuron_story(devices=1, is_managed=is_managed, mode=mode)
    job_id = story.submit()
    story.settle()

    assert story.job(job_id).state is JobState.FAILED
    assert words in story.job(job_id).reason
    assert story.tasks.requests == []


def test_a_job_for_gpus_claims_nothing(story):
    story.submit_and_deliver()

    (container,) = story.launched_definition().content["containerDefinitions"]
    assert "linuxParameters" not in container
    assert "portMappings" not in container
