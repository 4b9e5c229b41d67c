"""A launch that is refused for what may heal: nothing is lost, nothing is bought twice, and it is tried again."""

from datetime import timedelta
from unittest.mock import Mock

import pytest

from fakes.builders import make_definition
from fakes.machine_story import MachineStory
from fakes.story import HOME, MINUTE, Story
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.launches.launch import LaunchRefused
from relaunch.core.lifecycle.metrics import Metric
from relaunch.core.machines.machine import MachineState
from relaunch.ports import NotGrantedError
from relaunch.usecases.launch_attempt import launch_attempt

DENIED = LaunchRefused("AccessDeniedException: not authorized to perform: ecs:RunTask", may_heal=True)
DEFINITION = make_definition(deadline=None)


class Permission:
    """RunTask's permission, which can be taken away and granted."""

    def __init__(self, story: Story) -> None:
        self.is_granted = False
        self.calls = 0
        self._launch = story.tasks.launch
        story.tasks.launch = self.launch

    def launch(self, request):
        self.calls += 1
        return self._launch(request) if self.is_granted else DENIED


def pass_time(story: MachineStory, minutes: int) -> None:
    for _ in range(minutes):
        story.reconcile(after=MINUTE)
        story.settle_all()


@pytest.fixture
def machines() -> MachineStory:
    return MachineStory(DEFINITION)


def test_minutes_of_refusal_after_a_deployment_cost_no_machine_and_no_job(machines):
    job_id = machines.start()
    first = machines.machine(job_id)
    permission = Permission(machines)
    machines.register(first)
    machines.settle_all()
    pass_time(machines, 6)
    assert machines.job(job_id).waiting.reason is WaitReason.REFUSED
    assert permission.calls > 2

    permission.is_granted = True
    pass_time(machines, 4)

    assert machines.job(job_id).state is JobState.LAUNCHING
    assert machines.job(job_id).current_attempt.placement.machine_id == first.machine_id
    assert len(machines.fleet.requests) == 1


def test_a_longer_refusal_releases_the_machine_and_buys_the_next_as_a_probe(machines):
    job_id = machines.train()
    permission = Permission(machines)
    machines.warn(machines.machine(job_id).instance_id)
    machines.settle_all()
    machines.end(job_id)
    machines.settle_all()
    machines.register(machines.machine(job_id))
    machines.settle_all()
    second = machines.job(job_id).machine_id
    assert (machines.load(second).state, len(machines.fleet.requests)) == (MachineState.READY, 2)

    pass_time(machines, 13)
    assert machines.load(second).state is MachineState.ENDING
    assert (machines.job(job_id).machine_id, machines.job(job_id).has_slot) == ("", False)
    assert len(machines.fleet.requests) == 2

    pass_time(machines, 3)
    assert len(machines.fleet.requests) == 3
    permission.is_granted = True
    machines.register(machines.machine(job_id))
    machines.settle_all()
    assert machines.job(job_id).state is JobState.LAUNCHING
    assert machines.tasks.requests[-1].attempt.attempt_number == 2


def test_a_message_that_comes_early_buys_nothing(machines):
    job_id = machines.start()
    permission = Permission(machines)
    machines.register(machines.machine(job_id))
    machines.settle_all()
    pass_time(machines, 12)
    calls = permission.calls

    for _ in range(3):
        launch_attempt(job_id, machines.deps)
    machines.settle_all()

    assert (len(machines.fleet.requests), permission.calls) == (1, calls)


def test_a_derived_revision_that_may_not_be_registered_is_waited_for(monkeypatch):
    story = Story(DEFINITION)
    story.run_images(f"{HOME}/trainer:latest")
    register = Mock(side_effect=NotGrantedError("registering trainer--1: AccessDeniedException: iam:PassRole"))
    granted = story.registry.register
    monkeypatch.setattr(story.registry, "register", register)
    job_id = story.submit_and_deliver()

    assert story.job(job_id).waiting.reason is WaitReason.REFUSED
    assert not story.job(job_id).has_slot
    monkeypatch.setattr(story.registry, "register", granted)
    story.reconcile(after=6 * MINUTE)
    story.settle()
    assert story.job(job_id).state is JobState.LAUNCHING


def test_credentials_that_cannot_be_had_are_waited_for_too():
    story = Story(DEFINITION)
    launch = story.tasks.launch
    story.tasks.launch = Mock(side_effect=NotGrantedError("kubeconfig: it is not valid YAML"))
    job_id = story.submit_and_deliver()

    assert story.job(job_id).waiting.reason is WaitReason.REFUSED
    story.tasks.launch = launch
    story.reconcile(after=6 * MINUTE)
    story.settle()
    assert story.job(job_id).state is JobState.LAUNCHING


def test_each_refusal_is_counted(machines):
    job_id = machines.start()
    Permission(machines)
    machines.register(machines.machine(job_id))
    machines.settle_all()

    assert machines.metrics.values(Metric.JOBS_REFUSED) == [1]
    pass_time(machines, 2)
    assert len(machines.metrics.values(Metric.JOBS_REFUSED)) > 1


def test_a_refusal_of_a_try_without_doubts_leaves_none(machines):
    job_id = machines.start()
    permission = Permission(machines)
    machines.register(machines.machine(job_id))
    machines.settle_all()
    pass_time(machines, 2)
    permission.is_granted = True
    pass_time(machines, 8)

    sent = machines.launched_placements
    assert len(sent) == 1
    assert sent[0][1] == permission.calls
    assert machines.job(job_id).attempt.number == 1
    assert timedelta(0) < machines.now - machines.job(job_id).accepted_at < timedelta(minutes=30)
