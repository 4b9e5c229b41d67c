"""Machines of a job of several nodes that live when EC2 takes one: they are kept, and what is lost is replaced."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import pytest

from fakes.story import MINUTE
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.launches.launch import TaskObservation
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.machine import Machine, MachineState
from relaunch.usecases.make_ec2_calls import make_ec2_calls
from stories.test_gangs import G5, NODES, GangStory

BOOT = timedelta(seconds=90)
SAVED = "s3://acme-checkpoints/resnet/{job}/attempt-1/step-0000500/"


class SurvivorStory(GangStory):
    """A job all of whose ranks run, on machines that booted in a minute and a half."""

    def __init__(self, nodes: int = NODES, defined: Mapping[str, Any] = MappingProxyType({}), **limits: Any) -> None:
        super().__init__(nodes, defined, **limits)
        self.job_id = self.start()
        self.clock.advance(BOOT)
        self.first = self.machines(self.job_id)
        for each in self.first:
            self.register(each)
        self.settle_all()
        self.old = self.ranks(self.job_id)
        for arn in self.old:
            self.tell(self.tasks.run(arn, started_at=self.now))
        assert self.job(self.job_id).state is JobState.RUNNING

    def warn_rank(self, rank: int) -> None:
        """Let EC2 warn of the machine of a rank."""
        self.warn(self.first[rank].instance_id or "")

    def end_all(self, codes: Iterable[int] = ()) -> list[TaskObservation]:
        """Let all ranks save and end; return what ECS observed."""
        self.checkpoints.complete[self.job_id] = SAVED.format(job=self.job_id)
        given = tuple(codes) or (1, *[0] * (len(self.old) - 1))
        times = {"stopped_at": self.now, "execution_stopped_at": self.now}
        ended = [self.tasks.end(arn, code, **times) for arn, code in zip(self.old, given, strict=True)]
        for each in ended:
            self.tell(each)
        return ended

    @property
    def next_ids(self) -> tuple[str, ...]:
        """Return the IDs of the machines of the next attempt."""
        return self.job(self.job_id).next_machines

    @property
    def new(self) -> list[Machine]:
        """Return the machines of the next attempt that are not of the first one."""
        known = {each.machine_id for each in self.first}
        return [self.load(each) for each in self.next_ids if each not in known]

    def states(self) -> list[MachineState]:
        """Return the states of the first machines, by rank."""
        return [self.load(each.machine_id).state for each in self.first]

    def assert_all_given_back(self) -> None:
        """Check that none of the first machines is claimed, and all N are requested once more."""
        assert [self.load(each.machine_id).claims for each in self.first] == [()] * len(self.first)
        assert self.fleet.requests[-1].size == len(self.first)
        assert set(self.next_ids).isdisjoint(each.machine_id for each in self.first)
        assert len(self.next_ids) == len(self.first)


def test_one_machine_is_requested_at_the_warning_and_two_are_kept():
    story = SurvivorStory()
    story.warn_rank(1)
    story.settle_all()

    assert story.job(story.job_id).state is JobState.STOPPING
    assert [(each.size, each.overrides[0].offering) for each in story.fleet.requests] == [(NODES, G5), (1, G5)]
    (new,) = story.new
    zeroth, first, second = (each.machine_id for each in story.first)
    assert story.next_ids == (zeroth, new.machine_id, second)
    assert "2 of 3 machines are kept: each would wait for 97 s" in story.timeline(story.job_id)
    assert story.load(first).claims
    assert story.count == NODES + 1


def test_the_next_attempt_is_on_two_old_machines_and_a_new_one_and_resumes():
    story = SurvivorStory()
    story.warn_rank(0)
    story.settle_all()
    (new,) = story.new
    story.clock.advance(timedelta(seconds=20))
    story.end_all()
    story.settle_all()
    waiting = story.job(story.job_id).waiting
    assert waiting is not None
    assert (waiting.reason, waiting.detail.partition(";")[0]) == (WaitReason.MACHINE, "2 of 3 machines are ready")
    assert len(story.tasks.requests) == NODES

    story.register(new)
    story.settle_all()
    attempt = story.attempt(story.job_id)
    machines = tuple(each.machine_id for each in attempt.placement.ranks)
    assert (attempt.number, machines) == (2, (new.machine_id, *(each.machine_id for each in story.first[1:])))
    assert attempt.placement.resume_uri == SAVED.format(job=story.job_id)
    # The ranks meet at the new machine, which has rank 0 now.
    assert attempt.placement.master_address == story.hosts.find_address(new.instance_id or "")
    for arn in story.ranks(story.job_id):
        story.tell(story.tasks.run(arn, started_at=story.now))
    assert story.job(story.job_id).state is JobState.RUNNING
    assert story.states()[1:] == [MachineState.READY] * 2
    assert story.load(story.first[0].machine_id).claims == ()


def test_nothing_is_placed_on_a_machine_whose_old_task_has_not_stopped():
    story = SurvivorStory()
    story.warn_rank(2)
    story.settle_all()
    (new,) = story.new
    story.register(new)
    for arn in story.old[:2]:
        story.end_rank(arn, 0)
    story.settle_all()
    story.reconcile(after=MINUTE)
    story.settle_all()

    assert story.job(story.job_id).state is JobState.STOPPING
    assert len(story.tasks.requests) == NODES


def test_of_four_two_are_requested_as_one_request():
    story = SurvivorStory(4)
    story.warn_rank(0)
    story.warn_rank(3)
    story.settle_all()

    assert [each.size for each in story.fleet.requests] == [4, 2]
    first, second = story.new
    assert story.next_ids == (first.machine_id, *(each.machine_id for each in story.first[1:3]), second.machine_id)
    story.fleet.missing = 0
    story.end_all()
    for each in story.new:
        story.register(each)
    story.settle_all()
    ranks = story.attempt(story.job_id).placement.ranks
    assert len({each.instance_id for each in ranks}) == 4
    assert len(story.tasks.requests) == 8


def test_a_machine_that_ends_without_a_warning_is_replaced_too():
    story = SurvivorStory()
    lost = story.first[2].instance_id or ""
    story.fleet.end(lost, "Server.SpotInstanceTermination: Spot instance termination")
    story.change_host(lost, "terminated")
    story.settle_all()

    assert [each.size for each in story.fleet.requests] == [NODES, 1]
    (new,) = story.new
    assert story.next_ids == (*(each.machine_id for each in story.first[:2]), new.machine_id)


def test_events_of_the_old_tasks_change_nothing_of_the_new_ones():
    story = SurvivorStory()
    story.warn_rank(1)
    story.settle_all()
    (new,) = story.new
    ended = story.end_all()
    for each in ended:
        story.tell(each)
    story.register(new)
    story.settle_all()
    launched = story.job(story.job_id)
    for each in (*ended, *reversed(ended)):
        story.tell(each)
    assert story.job(story.job_id).state is launched.state is JobState.LAUNCHING

    for arn in story.ranks(story.job_id):
        story.tell(story.tasks.run(arn, started_at=story.now))
    for each in ended:
        story.tell(each)
    assert story.job(story.job_id).state is JobState.RUNNING
    assert story.stopped == set(story.old)


def test_a_replacement_may_use_what_is_reserved_for_interrupted_jobs():
    story = SurvivorStory(max_machines=4)
    story.warn_rank(1)
    story.settle_all()

    assert len(story.new) == 1
    assert story.count == MachineLimits(max_machines=4).totals(is_handover=True).machines


def test_messages_that_come_twice_request_once():
    story = SurvivorStory()
    story.warn_rank(1)
    for _ in range(3):
        story.launches.request_launch(story.job_id)
    story.settle_all()
    story.warn_rank(1)
    story.settle_all()

    assert [each.size for each in story.fleet.requests] == [NODES, 1]
    assert len(story.new) == 1


@pytest.mark.parametrize("save", range(6))
def test_a_function_that_dies_over_the_request_loses_nothing(save):
    story = SurvivorStory()
    story.warn_rank(1)
    die_at(story, save)
    for _ in range(6):
        story.launches.request_launch(story.job_id)
        story.settle_all()
        story.look(after=timedelta(seconds=20))

    (new,) = story.new
    assert story.count == NODES + 1
    assert len(story.running_instances) == NODES + 1
    story.end_all()
    story.register(new)
    story.settle_all()
    assert [each.instance_id for each in story.attempt(story.job_id).placement.ranks] == [
        story.first[0].instance_id,
        new.instance_id,
        story.first[2].instance_id,
    ]


class KilledError(Exception):
    """The function was killed."""


def die_at(story: SurvivorStory, save: int) -> None:
    """Let the function die that saves a job or a machine for this time after the warning, once it is saved."""
    jobs = story.deps.jobs
    machines = story.deps.machines
    left = iter(range(save))

    def dying(real: Any) -> Any:
        def saved(*arguments: Any) -> Any:
            result = real(*arguments)
            if next(left, None) is None:
                raise KilledError
            return result

        return saved

    save_job = jobs.save_job
    save_machine = machines.save_machine
    jobs.save_job = dying(save_job)  # type: ignore[method-assign]
    machines.save_machine = dying(save_machine)  # type: ignore[method-assign]
    try:
        story.deliver()
        requested, story.queue.requested = story.queue.requested, []
        for machine_id, _ in requested:
            make_ec2_calls(machine_id, story.deps)
    except KilledError:
        pass
    jobs.save_job = save_job  # type: ignore[method-assign]
    machines.save_machine = save_machine  # type: ignore[method-assign]


def test_the_machines_that_are_kept_are_charged_once_and_to_the_end():
    story = SurvivorStory()
    story.warn_rank(1)
    story.settle_all()
    (new,) = story.new
    story.end_all()
    story.settle_all()
    story.clock.advance(BOOT)
    story.register(new)
    story.settle_all()
    for arn in story.ranks(story.job_id):
        story.tell(story.tasks.run(arn, started_at=story.now))
    story.clock.advance(timedelta(hours=1))
    for arn in story.ranks(story.job_id):
        story.end_rank(arn, 0)
    story.reconcile(after=MINUTE)
    story.settle_all()
    assert story.job(story.job_id).state is JobState.SUCCEEDED

    for each in story.fleet.instances:
        story.fleet.end(each, "Client.UserInitiatedShutdown: User initiated shutdown")
    for _ in range(12):
        story.look(after=MINUTE)
        story.settle_all()
    assert story.count == 0
    charged = {each.machine_id for each in story.job(story.job_id).charges.latest}
    assert charged == {each.machine_id for each in (*story.first, new)}
