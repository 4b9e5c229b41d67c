"""A machine that arrives late opens its offering at once, and costs next to nothing where nothing is avoided."""

from dataclasses import replace
from datetime import timedelta
from unittest.mock import Mock

import pytest

from fakes.builders import make_capacity_failure, make_job, make_offering_key
from fakes.story import Story, machine
from relaunch.core.jobs.state import Waiting, WaitReason
from relaunch.core.launches.launch import NodeObservation
from relaunch.core.machines.machine import MachineState
from relaunch.ports import TransientError
from relaunch.usecases.observe_machine import observe_machine

MINUTE = timedelta(minutes=1)


def arrive(story: Story) -> NodeObservation:
    """Let a machine of the capacity provider register now; return what its event says."""
    seen = NodeObservation(machine(), "ACTIVE", registered_at=story.now)
    described = replace(seen, capacity_provider="g5-xlarge-spot")
    story.tasks.find_node = Mock(return_value=described)
    return seen


def withdraw(story: Story, capacity_provider: str = "g5-xlarge-spot", gpu_count: int = 0) -> None:
    """Let a launch by the capacity provider be withdrawn now."""
    until = story.now + timedelta(hours=1)
    failure = make_capacity_failure(at=story.now, until=until, capacity_provider=capacity_provider, gpu_count=gpu_count)
    story.deps.capacity.remember(failure)


def test_a_machine_that_arrives_late_opens_its_offering_and_wakes_jobs_that_wait_for_capacity(story):
    waiting = Waiting(WaitReason.CAPACITY, story.now, "avoided", story.now + 5 * MINUTE)
    for number in range(12):
        # Every other one was placed before and keeps its slot.
        job = make_job(f"resnet-{number:08x}", waiting=waiting, has_slot=number % 2 == 0)
        story.jobs.create_job(job, ())
    withdraw(story)
    story.clock.advance(MINUTE)

    observe_machine(arrive(story), story.deps)

    assert story.deps.capacity.load_capacity_memory(story.now) == {}
    assert story.deps.capacity.load_pool(make_offering_key()).record.has_capacity is True
    assert story.log.decisions == ["reopened"]
    assert len({job_id for job_id, delay in story.launches.requested if delay == 0}) == 10


def test_a_job_that_waited_for_it_is_launched_there(story):
    avoided_until = story.now + timedelta(hours=1)
    for offering in story.offerings.available:
        failure = make_capacity_failure(offering=offering.key, at=story.now, until=avoided_until)
        story.deps.capacity.remember(replace(failure, capacity_provider=offering.capacity_provider))
    job_id = story.submit_and_deliver()
    assert story.job(job_id).waiting.reason is WaitReason.CAPACITY
    story.clock.advance(MINUTE)

    observe_machine(arrive(story), story.deps)
    story.deliver()

    assert story.attempt(job_id).placement.capacity_provider == "g5-xlarge-spot"


def test_nothing_is_asked_and_written_where_nothing_is_avoided(story):
    seen = arrive(story)
    story.deps.capacity.reopen = Mock()

    observe_machine(seen, story.deps)

    assert story.tasks.find_node.call_count == 0
    assert story.deps.capacity.reopen.call_count == 0


def test_machines_that_were_there_before_cost_no_call_of_ecs(story):
    seen = arrive(story)
    story.clock.advance(MINUTE)
    withdraw(story)

    observe_machine(seen, story.deps)

    assert story.tasks.find_node.call_count == 0
    assert len(story.deps.capacity.load_capacity_memory(story.now)) == 1


def test_a_machine_of_another_provider_or_one_that_is_gone_opens_nothing(story):
    withdraw(story, "another-provider")
    story.clock.advance(MINUTE)
    seen = arrive(story)
    observe_machine(seen, story.deps)
    story.tasks.find_node = Mock(return_value=None)
    observe_machine(seen, story.deps)

    assert len(story.deps.capacity.load_capacity_memory(story.now)) == 1
    assert story.launches.requested == []


def test_a_machine_that_registered_without_its_gpus_opens_nothing(story):
    withdraw(story, gpu_count=1)
    story.clock.advance(MINUTE)

    observe_machine(arrive(story), story.deps)

    assert len(story.deps.capacity.load_capacity_memory(story.now)) == 1
    assert story.launches.requested == []


def test_an_event_that_could_not_be_handled_is_delivered_again(story):
    withdraw(story)
    story.clock.advance(MINUTE)
    seen = arrive(story)
    story.tasks.find_node.side_effect = [
        TransientError("Rate exceeded"),
        replace(seen, capacity_provider="g5-xlarge-spot"),
    ]
    with pytest.raises(TransientError):
        observe_machine(seen, story.deps)

    observe_machine(seen, story.deps)

    assert story.deps.capacity.load_capacity_memory(story.now) == {}


class TestMachineOfOurOwn:
    """A node of a machine of our own is told to that machine."""

    def test_one_that_registers_lets_its_job_launch(self, machines):
        job_id = machines.start()

        machines.register(machines.machine(job_id))

        assert machines.machine(job_id).state is MachineState.READY
        assert machines.launches.requested == [(job_id, 0)]

    def test_one_without_its_gpus_waits_for_them(self, machines):
        job_id = machines.start()
        machine = machines.machine(job_id)

        machines.register(machine, gpus=0.0)
        assert machines.machine(job_id).state is MachineState.STARTING
        assert machines.machine(job_id).reason == "registered with 0 of its 1 GPUs"
        machines.register(machine)

        assert machines.machine(job_id).state is MachineState.READY

    def test_one_whose_gpus_never_come_is_ended_and_the_job_gets_another(self, machines):
        job_id = machines.start()
        machine = machines.machine(job_id)
        machines.register(machine, gpus=0.0)

        for _ in range(5):
            machines.look(after=MINUTE)
        machines.settle_all()

        assert machines.load(machine.machine_id).state is MachineState.ENDING
        assert "registered with 0 of its 1 GPUs" in machines.load(machine.machine_id).reason
        assert machines.job(job_id).machine_id not in ("", machine.machine_id)

    def test_events_that_follow_hourly_change_nothing(self, machines):
        job_id = machines.start()
        machine = machines.machine(job_id)
        machines.register(machine)
        ready = machines.machine(job_id)

        machines.register(machine)

        assert machines.machine(job_id) == ready

    def test_one_whose_agent_is_not_connected_is_not_ready(self, machines):
        job_id = machines.start()
        machines.register(machines.machine(job_id), is_told=False)
        (node,) = machines.tasks.instances.values()

        observe_machine(NodeObservation(node, is_active=False, registered_at=machines.now), machines.deps)

        assert machines.machine(job_id).state is MachineState.STARTING

    def test_one_of_a_machine_whose_launch_is_not_saved_yet_is_found_later(self, machines):
        job_id = machines.submit_and_deliver()
        ask = machines.fleet.request

        def register_before_the_answer(request):
            answer = ask(request)
            machine = replace(machines.machine(job_id), instance_id=answer.instance_id, offering=answer.offering)
            machines.register(machine)
            return answer

        machines.fleet.request = register_before_the_answer
        machines.make_ec2_calls()
        assert machines.machine(job_id).state is MachineState.STARTING

        machines.look(after=2 * MINUTE)
        assert machines.machine(job_id).state is MachineState.READY
