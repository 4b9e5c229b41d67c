"""Stops that no host confirms: every job ends, and no machine of our own lives on for it."""

from dataclasses import replace
from datetime import timedelta
from unittest.mock import Mock

import pytest

from fakes.builders import make_definition
from fakes.machine_story import MachineStory, make_own_offering
from fakes.story import MINUTE, Story, push
from relaunch.adapters.offerings.bundled import load_catalogue
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.launches.launch import LaunchUncertain
from relaunch.core.lifecycle.metrics import Metric
from relaunch.core.lifecycle.restart_policy import LONGEST_BACKOFF_SECONDS
from relaunch.core.machines.events import FleetUncertain
from relaunch.core.machines.machine import MachineState
from relaunch.core.machines.requesting import LOOKED_FOR, SENT_AGAIN_FOR
from relaunch.core.offerings.offering import OfferingKey
from relaunch.ports import TransientError
from relaunch.usecases.cancel_job import cancel_job

HOUR = timedelta(hours=1)


def silence(story: Story, lasts: timedelta) -> None:
    """Let time pass in which no host answers and no event comes; what is due is looked at."""
    until = story.now + lasts
    while story.now < until:
        story.reconcile(after=MINUTE)
        if isinstance(story, MachineStory):
            story.look()
            story.settle_all()


def make_sharing_story() -> MachineStory:
    """Return a story whose machines have eight GPUs, of which each job needs one."""
    story = MachineStory()
    key = OfferingKey("g5.48xlarge", "us-east-1a", PurchaseOption.ON_DEMAND)
    row = load_catalogue()[key.instance_type]
    story.offerings.available = (replace(make_own_offering(key, 16.288), instance_type=row),)
    return story


def test_a_cancelled_job_ends_a_day_later_although_the_host_never_confirms_its_stop():
    story = Story()
    job_id = story.launch()
    task = story.arn(job_id)
    cancel_job(job_id, "not needed", story.deps)

    silence(story, timedelta(minutes=65))

    assert story.job(job_id).state is JobState.STOPPING
    assert f"task {task} may live on, and cost, on i-" in story.job(job_id).reason
    assert story.metrics.values(Metric.STOPS_UNCONFIRMED) == [1]

    silence(story, 23 * HOUR)

    job = story.job(job_id)
    assert job.state is JobState.CANCELLED
    assert f"task {task} may live on, and cost, on i-" in job.reason
    assert story.metrics.values(Metric.STOPS_UNCONFIRMED) == [1, 1]
    assert len(story.tasks.stops) <= 19


def test_a_job_that_was_interrupted_goes_on_once_the_agent_is_back_after_an_outage_of_hours():
    story = Story()
    job_id = story.launch()
    story.warn(story.attempt(job_id).instance_id or "")

    silence(story, 3 * HOUR)
    assert (story.job(job_id).state, len(story.tasks.requests)) == (JobState.STOPPING, 1)
    story.end(job_id, 143)

    assert story.job(job_id).totals.interruptions == 1
    assert not story.job(job_id).state.is_final


def test_max_runtime_ends_a_job_whose_host_never_answers_again():
    story = Story(make_definition(max_runtime=HOUR))
    job_id = story.launch()

    silence(story, 26 * HOUR)

    assert story.job(job_id).state is JobState.TIMED_OUT
    assert len(story.tasks.stops) <= 19


def test_a_machine_of_our_own_that_confirms_no_stop_is_terminated_and_its_job_ends():
    story = MachineStory()
    job_id = story.train()
    machine = story.machine(job_id)
    cancel_job(job_id, "not needed", story.deps)

    silence(story, timedelta(minutes=14))
    assert story.running_instances == set()
    silence(story, timedelta(minutes=12))

    assert story.job(job_id).state is JobState.CANCELLED
    assert story.metrics.values(Metric.MACHINES_ABANDONED) == [1]
    assert story.metrics.values(Metric.STOPS_UNCONFIRMED) == []
    story.assert_over(machine.machine_id)


def test_a_job_whose_machine_ec2_refuses_to_terminate_ends_and_says_where_its_task_may_live_on():
    story = MachineStory()
    job_id = story.train()
    machine = story.machine(job_id)
    story.fleet.foreign[machine.instance_id or ""] = story.fleet.instances[machine.instance_id or ""]
    cancel_job(job_id, "not needed", story.deps)

    silence(story, 25 * HOUR)

    assert story.job(job_id).state is JobState.CANCELLED
    assert str(machine.instance_id) in story.job(job_id).reason
    assert set(story.metrics.values(Metric.TERMINATIONS_REFUSED)) == {1}


def test_a_job_that_was_interrupted_goes_on_elsewhere_once_its_silent_host_is_gone():
    story = MachineStory()
    job_id = story.train()
    first = story.machine(job_id)
    story.warn(first.instance_id or "")

    silence(story, timedelta(minutes=30))

    job = story.job(job_id)
    assert story.load(first.machine_id).state is MachineState.GONE
    assert (job.state, job.totals.interruptions) == (JobState.WAITING, 1)
    assert job.machine_id not in ("", first.machine_id)


def test_a_job_goes_on_elsewhere_although_nothing_told_it_that_its_machine_is_gone():
    story = MachineStory()
    job_id = story.train()
    first = story.machine(job_id)
    story.fleet.end(first.instance_id or "", "Server.SpotInstanceTermination: Spot instance termination")

    silence(story, timedelta(minutes=25))

    assert story.load(first.machine_id).state is MachineState.GONE
    assert story.attempt(job_id).stop is not None
    assert story.job(job_id).state is JobState.WAITING
    assert story.job(job_id).machine_id not in ("", first.machine_id)


def test_a_launch_without_an_answer_is_given_up_once_its_machine_is_gone():
    story = MachineStory()
    story.tasks.places_uncertain = False
    story.tasks.outcomes.extend([LaunchUncertain("no answer to RunTask")] * 99)
    job_id = story.start()
    first = story.machine(job_id)
    story.register(first)
    for _ in range(3):
        story.deliver()
    story.fleet.end(first.instance_id or "", "Server.SpotInstanceTermination: Spot instance termination")

    for _ in range(22):
        story.look(after=MINUTE)
        story.make_ec2_calls()
        story.deliver()
        story.reconcile()

    assert story.load(first.machine_id).state is MachineState.GONE
    assert story.job(job_id).machine_id not in ("", first.machine_id)


def test_the_neighbours_on_a_machine_that_confirms_no_stop_save_and_move_before_it_is_terminated():
    story = make_sharing_story()
    silent, neighbour = story.start(), story.submit_and_deliver(push("b" * 40))
    machine = story.machine(silent)
    story.register(machine, gpus=8)
    story.settle_all()
    node = story.tasks.instances[f"node-of-{machine.instance_id}"]
    story.run(silent, node)
    assert story.attempt(neighbour).placement.machine_id == machine.machine_id
    story.run(neighbour, node)
    cancel_job(silent, "not needed", story.deps)

    silence(story, timedelta(minutes=13))
    assert story.running_instances >= {machine.instance_id}
    assert story.job(neighbour).state is JobState.STOPPING
    assert "a stop that the host does not confirm" in story.job(neighbour).reason
    story.end(neighbour, 143)
    silence(story, timedelta(minutes=2))

    assert story.load(machine.machine_id).state in (MachineState.ENDING, MachineState.GONE)
    assert story.job(neighbour).totals.interruptions == 1
    assert story.job(neighbour).machine_id not in ("", machine.machine_id)


def test_neighbours_that_do_not_leave_keep_a_silent_machine_for_ten_minutes():
    story = make_sharing_story()
    silent, neighbour = story.start(), story.submit_and_deliver(push("b" * 40))
    machine = story.machine(silent)
    story.register(machine, gpus=8)
    story.settle_all()
    node = story.tasks.instances[f"node-of-{machine.instance_id}"]
    story.run(silent, node)
    story.run(neighbour, node)
    cancel_job(silent, "not needed", story.deps)

    silence(story, timedelta(minutes=40))

    assert machine.instance_id not in story.running_instances
    assert story.job(silent).state is JobState.CANCELLED


@pytest.mark.parametrize(("exit_code", "end"), [(143, JobState.WAITING), (0, JobState.SUCCEEDED)])
def test_a_stop_that_was_told_is_followed_though_the_cluster_cannot_be_asked_about_it(exit_code: int, end: JobState):
    story = make_sharing_story()
    job_id, neighbour = story.start(), story.submit_and_deliver(push("b" * 40))
    machine = story.machine(job_id)
    story.register(machine, gpus=8)
    story.settle_all()
    for each in (job_id, neighbour):
        story.run(each, story.tasks.instances[f"node-of-{machine.instance_id}"])
    story.clock.advance(900)
    story.hosts.failure = TransientError("RequestLimitExceeded")
    story.end(
        job_id, exit_code, stop_code="EssentialContainerExited", stopped_reason="Essential container in task exited"
    )
    assert story.job(job_id).state is JobState.STOPPING
    story.tasks.describe = Mock(side_effect=TransientError("ServerException"))

    silence(story, 2 * MINUTE)
    assert story.job(job_id).state is end
    silence(story, timedelta(minutes=13))

    assert story.job(neighbour).state is JobState.RUNNING
    assert story.metrics.values(Metric.MACHINES_ABANDONED) == []


def test_a_request_that_ec2_never_answers_is_given_up_and_its_job_asks_for_another_machine():
    story = MachineStory()
    story.fleet.request = Mock(return_value=FleetUncertain("no answer to CreateFleet: time-out"))
    job_id = story.start()
    first = story.machine(job_id)

    given_up_at = None
    for _ in range(60):
        story.make_ec2_calls()
        story.look()
        if story.load(first.machine_id).state is MachineState.GONE:
            given_up_at = story.now
            break

    assert given_up_at is not None
    assert LOOKED_FOR <= given_up_at - first.created_at <= SENT_AGAIN_FOR + LOOKED_FOR + 2 * MINUTE
    for _ in range(6):
        story.deliver()
        story.reconcile(after=MINUTE)
    assert story.job(job_id).machine_id not in ("", first.machine_id)


def test_a_program_that_fails_again_and_again_is_launched_again_within_a_quarter_of_an_hour():
    story = Story(make_definition(max_failures=20))
    job_id = story.launch()
    for _ in range(12):
        story.clock.advance(11 * MINUTE)
        failed_at = story.now
        story.end(job_id, 1)
        assert story.job(job_id).waiting.reason is WaitReason.BACKOFF
        while story.job(job_id).state is JobState.WAITING:
            story.settle()
            story.reconcile(after=timedelta(seconds=30))
        assert story.now - failed_at <= timedelta(seconds=LONGEST_BACKOFF_SECONDS) + MINUTE
        story.run(job_id)
