"""Machines of our own are turned off while some live: those end with their jobs, and none is requested."""

from dataclasses import replace
from unittest.mock import Mock

from fakes.builders import make_offering
from fakes.machine_story import G5, SETTINGS, MachineStory
from fakes.story import MINUTE
from relaunch.core.jobs.state import JobState
from relaunch.core.machines.events import FleetUncertain
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import MachineState

PROVIDER = "g6-xlarge-spot"


def turn_off(story: MachineStory) -> None:
    """Take the parameters of machines from the stack, which has a capacity provider now."""
    off = replace(SETTINGS, subnets={}, launch_templates={})
    limits = replace(story.deps.limits, machines=MachineLimits())
    story.deps = replace(story.deps, machine_settings=off, limits=limits)
    story.offerings.available = (make_offering("g6.xlarge"), make_offering("g5.xlarge", price_usd_per_hour=0.9))


def settle(story: MachineStory, rounds: int = 6) -> None:
    """Let time pass, so that everything that is due is looked at."""
    for _ in range(rounds):
        story.look(after=2 * MINUTE)
        story.settle_all()


def test_a_request_that_was_not_sent_is_given_up_and_its_job_gets_a_capacity_provider(machines):
    job_id = machines.submit_and_deliver()
    machine_id = machines.job(job_id).machine_id
    turn_off(machines)

    machines.settle_all()

    assert machines.fleet.requests == []
    assert machines.load(machine_id).state is MachineState.GONE
    assert "requests no machines of its own any more" in machines.load(machine_id).reason
    assert machines.count == 0
    job = machines.job(job_id)
    assert (job.current_attempt.placement.capacity_provider, job.machines.failed) == (PROVIDER, 0)


def test_a_request_of_unknown_outcome_is_looked_for_and_not_sent_again(machines):
    job_id = machines.submit_and_deliver()
    machine_id = machines.job(job_id).machine_id
    machines.fleet.request = Mock(return_value=FleetUncertain("no answer to CreateFleet: time-out"))
    machines.make_ec2_calls()
    turn_off(machines)

    while machines.load(machine_id).state is MachineState.REQUESTED:
        assert machines.make_ec2_calls()

    assert machines.fleet.request.call_count == 1
    assert machines.load(machine_id).state is MachineState.GONE
    machines.settle_all()
    assert machines.job(job_id).current_attempt.placement.capacity_provider == PROVIDER


def test_an_instance_that_came_of_a_request_of_unknown_outcome_is_used_and_ended(machines):
    job_id = machines.submit_and_deliver()
    machine_id = machines.job(job_id).machine_id
    request = machines.fleet.request
    machines.fleet.request = Mock(side_effect=lambda asked: (request(asked), FleetUncertain("no answer"))[1])
    machines.make_ec2_calls()
    turn_off(machines)

    machines.make_ec2_calls()
    machines.register(machines.load(machine_id))
    machines.settle_all()
    machines.run(job_id)
    machines.end(job_id)
    settle(machines)

    machines.assert_over(machine_id)
    assert machines.job(job_id).state is JobState.SUCCEEDED


def test_a_job_that_runs_is_left_alone_and_its_machine_ends_with_it(machines):
    job_id = machines.train()
    machine_id = machines.machine(job_id).machine_id
    turn_off(machines)

    settle(machines)
    assert machines.job(job_id).state is JobState.RUNNING
    machines.end(job_id)
    settle(machines)

    machines.assert_over(machine_id)


def test_a_job_whose_machine_starts_still_runs_on_it(machines):
    job_id = machines.start()
    turn_off(machines)

    machines.register(machines.machine(job_id))
    machines.settle_all()

    assert machines.job(job_id).current_attempt.placement.offering == G5


def test_a_warm_machine_is_ended_at_its_next_look():
    story = MachineStory(warm_time=240 * MINUTE)
    job_id = story.train()
    machine_id = story.machine(job_id).machine_id
    story.end(job_id)
    story.settle_all()
    assert story.load(machine_id).state is MachineState.READY
    turn_off(story)

    settle(story, rounds=8)

    story.assert_over(machine_id)


def test_after_a_warning_no_machine_is_requested_and_the_next_attempt_runs_elsewhere(machines):
    job_id = machines.train()
    machine = machines.machine(job_id)
    turn_off(machines)

    machines.warn(machine.instance_id)
    machines.settle_all()
    machines.lose_host(job_id)
    machines.fleet.terminate([machine.instance_id])
    settle(machines)

    assert machines.job(job_id).current_attempt.placement.capacity_provider == PROVIDER
    assert len(machines.fleet.requests) == 1
    machines.assert_over(machine.machine_id)
