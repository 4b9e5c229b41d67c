"""Jobs of several nodes: all of their tasks run, or none; one that ends ends the attempt."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import pytest

from fakes.builders import make_definition
from fakes.machine_story import G5, MachineStory
from fakes.story import MINUTE
from relaunch.core.jobs.attempt import IntentKind, StopKind
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.launch import LaunchDeferred, PlacementFailed
from relaunch.core.machines.events import InstanceState, RefusalKind
from relaunch.core.machines.machine import Machine, MachineState
from relaunch.usecases.cancel_job import cancel_job

NODES = 3


class GangStory(MachineStory):
    """A story of one definition with three nodes."""

    def __init__(self, nodes: int = NODES, defined: Mapping[str, Any] = MappingProxyType({}), **limits: Any) -> None:
        super().__init__(make_definition(nodes=nodes, **defined), **limits)
        (active,) = self.revisions.active
        self.revisions.active[:] = [replace(active, network_mode="host")]

    def machines(self, job_id: str) -> list[Machine]:
        """Return the machines that a job has or claims, in the order of its ranks."""
        job = self.job(job_id)
        ids = job.next_machines or tuple(each.machine_id for each in self.attempt(job_id).placement.ranks)
        return [self.load(each) for each in ids]

    def ranks(self, job_id: str) -> tuple[str, ...]:
        """Return the ARNs of the tasks."""
        return self.attempt(job_id).placement.task_ids

    def place_all(self) -> str:
        """Let a push start a job whose tasks are placed; return its id."""
        job_id = self.start()
        for each in self.machines(job_id):
            self.register(each)
        self.settle_all()
        return job_id

    def train_all(self) -> str:
        """Let a push start a job all of whose ranks run; return its id."""
        job_id = self.place_all()
        for arn in self.ranks(job_id):
            self.tell(self.tasks.run(arn, started_at=self.now))
        assert self.job(job_id).state is JobState.RUNNING
        return job_id

    def end_rank(self, arn: str, exit_code: int | None, **fields: object) -> None:
        """Let one task be STOPPED, and tell it."""
        times = {"stopped_at": self.now, "execution_stopped_at": self.now}
        self.tell(self.tasks.end(arn, exit_code, **{**times, **fields}))

    @property
    def stopped(self) -> set[str]:
        """Return the tasks that StopTask was called for."""
        return {arn for arn, _ in self.tasks.stops}


def test_all_machines_are_one_request_and_counted_in_one_transaction():
    story = GangStory()
    job_id = story.start()

    (request,) = story.fleet.requests
    assert (request.size, len(request.overrides)) == (NODES, 1)
    machines = story.machines(job_id)
    assert [each.state for each in machines] == [MachineState.STARTING] * NODES
    assert len({each.instance_id for each in machines}) == NODES
    totals = story.deps.machines.load_totals()
    assert (totals.machines, totals.micro_usd_per_hour) == (NODES, NODES * 400_000)


def test_no_task_is_placed_before_all_machines_are_ready():
    story = GangStory()
    job_id = story.start()
    *first, last = story.machines(job_id)
    for each in first:
        story.register(each)
    story.settle_all()

    assert story.tasks.requests == []
    waiting = story.job(job_id).waiting
    assert waiting is not None
    assert waiting.detail.startswith("2 of 3 machines are ready; ")

    story.register(last)
    story.settle_all()
    assert len(story.tasks.requests) == NODES


def test_each_rank_is_told_where_all_meet():
    story = GangStory()
    job_id = story.place_all()

    first, *others = story.tasks.requests
    address = story.hosts.find_address(story.machines(job_id)[0].instance_id or "")
    assert {each.environment["PET_MASTER_ADDR"] for each in (first, *others)} == {address}
    assert [each.environment["PET_NODE_RANK"] for each in story.tasks.requests] == ["0", "1", "2"]
    assert {each.environment["PET_NNODES"] for each in story.tasks.requests} == {"3"}
    assert len({each.environment["RELAUNCH_MASTER_PORT"] for each in story.tasks.requests}) == 1
    assert len({each.instance_id for each in story.tasks.requests}) == NODES
    assert story.job(job_id).current_attempt.placement.price_usd_per_hour == pytest.approx(0.40)


def test_a_job_runs_once_all_its_ranks_do_and_succeeds_once_all_have():
    story = GangStory()
    job_id = story.place_all()
    *early, late = story.ranks(job_id)
    for arn in early:
        story.tell(story.tasks.run(arn, started_at=story.now))
    assert story.job(job_id).state is JobState.LAUNCHING
    story.tell(story.tasks.run(late, started_at=story.now))
    assert story.job(job_id).state is JobState.RUNNING

    for arn in early:
        story.end_rank(arn, 0)
    assert story.job(job_id).state is JobState.RUNNING
    assert story.stopped == set()
    story.end_rank(late, 0)
    story.reconcile(after=MINUTE)
    assert story.job(job_id).state is JobState.SUCCEEDED


@pytest.mark.parametrize("rank", range(NODES))
def test_a_warning_of_any_machine_stops_every_rank_and_the_job_goes_on_elsewhere(rank):
    story = GangStory()
    job_id = story.train_all()
    ranks = story.ranks(job_id)
    story.warn(story.machines(job_id)[rank].instance_id or "")

    assert story.stopped == set(ranks)
    assert story.job(job_id).state is JobState.STOPPING
    # torchrun exits with 1 although its workers saved, and its peers with 0.
    for number, arn in enumerate(ranks):
        story.end_rank(arn, 1 if number == rank else 0)
    attempt = story.attempt(job_id)
    assert attempt.stop is not None
    assert attempt.stop.kind is StopKind.INTERRUPTION
    assert story.job(job_id).totals.failures == 0

    story.settle_all()
    assert len(story.fleet.requests) == 2


def test_two_warnings_are_one_interruption():
    story = GangStory()
    job_id = story.train_all()
    for each in story.machines(job_id)[1:]:
        story.warn(each.instance_id or "")
    for arn in story.ranks(job_id):
        story.end_rank(arn, 0)

    assert story.job(job_id).totals.interruptions == 1


def test_the_first_rank_that_fails_decides_and_the_others_are_stopped():
    story = GangStory()
    job_id = story.train_all()
    first, second, third = story.ranks(job_id)
    story.end_rank(second, 7)

    assert {first, third} <= story.stopped
    story.clock.advance(timedelta(seconds=1))
    story.end_rank(first, 1)
    story.end_rank(third, 134)
    story.reconcile(after=MINUTE)
    stop = story.attempt(job_id).stop
    assert stop is not None
    assert (stop.kind, stop.exit_code) == (StopKind.USER_ERROR, 7)


def test_a_rank_out_of_memory_is_no_failure_of_the_others():
    story = GangStory()
    job_id = story.train_all()
    first, second, third = story.ranks(job_id)
    reason = "OutOfMemoryError: Container killed due to memory usage"
    story.end_rank(third, 137, container_reasons={"main": reason})
    for arn in (first, second):
        story.end_rank(arn, 1)
    story.reconcile(after=MINUTE)

    stop = story.attempt(job_id).stop
    assert stop is not None
    assert stop.kind is StopKind.OUT_OF_MEMORY


def test_peers_of_a_lost_machine_that_fail_before_ec2_says_so_are_no_failure():
    story = GangStory()
    job_id = story.train_all()
    ranks = story.ranks(job_id)
    lost = story.machines(job_id)[2].instance_id or ""
    ended_at = story.now
    for arn in ranks[:2]:
        story.end_rank(arn, 1)
    story.clock.advance(timedelta(seconds=40))
    story.hosts.seen[lost] = replace(story.hosts.look(lost, is_spot=True), has_ended=True, ended_at=ended_at)
    story.change_host(lost, "shutting-down")
    reason = f"Host EC2 (instance {lost}) terminated."
    story.end_rank(ranks[2], None, stop_code="TerminationNotice", stopped_reason=reason)
    story.reconcile(after=2 * MINUTE)

    stop = story.attempt(job_id).stop
    assert stop is not None
    assert stop.kind in {StopKind.HOST_LOST, StopKind.INTERRUPTION}
    assert story.job(job_id).totals.failures == 0


def test_a_machine_that_ends_stops_the_ranks_that_would_wait_for_it():
    story = GangStory()
    job_id = story.train_all()
    ranks = story.ranks(job_id)
    story.change_host(story.machines(job_id)[1].instance_id or "", "terminated")

    assert {ranks[0], ranks[2]} <= story.stopped
    assert story.attempt(job_id).intent is not None
    assert story.attempt(job_id).intent.kind is IntentKind.INTERRUPTION


def test_a_rank_that_does_not_end_with_the_others_is_stopped_and_named():
    story = GangStory()
    job_id = story.train_all()
    first, second, third = story.ranks(job_id)
    story.end_rank(first, 0)
    story.end_rank(third, 0)
    story.reconcile(after=timedelta(minutes=4))
    assert story.stopped == set()
    for _ in range(3):
        story.reconcile(after=MINUTE)

    assert second in story.stopped
    story.end_rank(second, 143)
    story.reconcile(after=MINUTE)
    stop = story.attempt(job_id).stop
    assert stop is not None
    assert stop.kind is StopKind.USER_ERROR


def test_what_ec2_has_only_a_part_of_is_ended_and_another_pool_is_tried():
    story = GangStory()
    story.fleet.refused[G5] = (RefusalKind.NO_CAPACITY, "InsufficientInstanceCapacity")
    job_id = story.start()
    story.settle_all()

    assert [each.overrides[0].offering.instance_type for each in story.fleet.requests] == ["g5.xlarge", "g6.xlarge"]
    # That EC2 does not have three at once says nothing of one.
    assert story.deps.capacity.load_capacity_memory(story.now) == {}
    pools = {
        (each.offering.instance_type, each.nodes): each.record
        for each in story.deps.capacity.load_capacity(story.now)[2]
    }
    assert {size: record.has_capacity for size, record in pools.items()} == {
        ("g5.xlarge", NODES): False,
        ("g6.xlarge", NODES): True,
        ("g6.xlarge", 1): True,
    }
    assert story.count == NODES
    assert {each.state for each in story.machines(job_id)} == {MachineState.STARTING}


def test_a_cancelled_job_leaves_none_of_the_machines_behind():
    story = GangStory()
    job_id = story.start()
    cancel_job(job_id, "enough", story.deps)
    story.settle_all()

    assert story.running_instances == set()
    for each in range(3):
        story.look(after=(each + 1) * MINUTE)
        story.settle_all()
    assert {each.state for each in story.fleet.instances.values()} <= {
        InstanceState.SHUTTING_DOWN,
        InstanceState.TERMINATED,
    }


def test_a_task_that_cannot_be_placed_stops_those_that_were():
    story = GangStory()
    job_id = story.start()
    placed = story.tasks
    for each in story.machines(job_id):
        story.register(each)
    real = placed._launch_one
    answers = iter([None, PlacementFailed(("RESOURCE:PORTS",))])
    placed._launch_one = lambda request: next(answers, None) or real(request)
    story.settle_all()

    assert story.job(job_id).state is JobState.STOPPING
    assert story.stopped == set(story.ranks(job_id))


def test_a_throttled_rank_is_asked_for_again_and_the_others_are_not_placed_twice():
    story = GangStory()
    job_id = story.start()
    for each in story.machines(job_id):
        story.register(each)
    real = story.tasks._launch_one
    answers = iter([None, None, LaunchDeferred("ThrottlingException")])
    story.tasks._launch_one = lambda request: next(answers, None) or real(request)
    story.settle_all()

    assert len(story.tasks.tasks) == NODES
    assert len(story.ranks(job_id)) == NODES


def test_a_function_that_dies_after_one_machine_has_its_answer_loses_none_of_the_others():
    story = GangStory()
    job_id = story.submit_and_deliver()
    first, *others = story.job(job_id).next_machines
    request = replace(story.load(first).request)
    story.fleet.request(request)
    story.look(after=2 * MINUTE)
    story.settle_all()

    machines = [story.load(each) for each in (first, *others)]
    assert {each.state for each in machines} == {MachineState.STARTING}
    assert len({each.instance_id for each in machines}) == NODES


def test_the_three_machines_are_charged_to_the_job():
    story = GangStory()
    job_id = story.train_all()
    story.clock.advance(timedelta(hours=1))
    for arn in story.ranks(job_id):
        story.end_rank(arn, 0)
    story.reconcile(after=MINUTE)
    assert len(story.job(job_id).charges.open) == NODES
