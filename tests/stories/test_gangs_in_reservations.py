"""Jobs of several nodes in a Capacity Block: all machines in it or none, and all leave it before its end."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fakes.machine_story import G5, make_own_offering
from fakes.reservations import BLOCK_ID, make_block, make_reservation, make_reserved
from fakes.story import MINUTE
from relaunch.core.definitions.accelerator import PurchaseOption, PurchasePolicy
from relaunch.core.jobs.attempt import StopKind
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.launches.instance_events import ReservationEnding
from relaunch.core.machines.groups import reservation_of_group
from relaunch.core.machines.machine import MachineState
from relaunch.core.offerings.reservations import Reservation
from relaunch.usecases.observe_capacity import observe_reservation
from stories.test_gangs import NODES, GangStory

RESERVED = PurchaseOption.RESERVED
SPOT = PurchaseOption.SPOT
BLOCK = make_block(total=NODES, available=NODES)


class BlockStory(GangStory):
    """A definition of three nodes that takes what is reserved before spot, and a block of three."""

    def __init__(
        self, *reservations: Reservation, policy: PurchasePolicy = PurchasePolicy.RESERVED_THEN_SPOT, **limits: Any
    ) -> None:
        super().__init__(NODES, {"purchase": policy}, **limits)
        self.offer(*(reservations or (BLOCK,)))

    def offer(self, *reservations: Reservation) -> None:
        """Let these be what is reserved, beside spot; a launch into them needs as many free instances."""
        self.fleet.free = {each.reservation_id: each.available for each in reservations}
        self.offerings.available = (*map(make_reserved, reservations), make_own_offering(G5, 0.40))

    def run_all(self, job_id: str) -> None:
        """Let all machines of a job register, and all ranks run."""
        for each in self.machines(job_id):
            self.register(each)
        self.settle_all()
        for arn in self.ranks(job_id):
            self.tell(self.tasks.run(arn, started_at=self.now))
        assert self.job(job_id).state is JobState.RUNNING

    def end_block(self) -> list[str]:
        """Let EC2 announce the end of the block."""
        return observe_reservation(
            ReservationEnding(BLOCK_ID, self.now, self.now + timedelta(minutes=40)),
            self.deps,
        )


def bought(story: BlockStory) -> list[tuple[PurchaseOption, int]]:
    """Return the purchase option and the number of machines of each request."""
    return [(each.purchase, each.size) for each in story.fleet.requests]


def test_all_machines_are_one_request_into_the_block_and_cost_nothing_more():
    story = BlockStory()
    job_id = story.start()

    (request,) = story.fleet.requests
    assert (request.size, reservation_of_group(request), len(request.overrides)) == (NODES, BLOCK, 1)
    machines = story.machines(job_id)
    assert [each.state for each in machines] == [MachineState.STARTING] * NODES
    assert len({each.instance_id for each in machines}) == NODES
    assert {each.request.reservation_id for each in machines} == {BLOCK_ID}
    totals = story.deps.machines.load_totals()
    assert (totals.machines, totals.micro_usd_per_hour) == (NODES, 0)
    story.run_all(job_id)
    assert story.attempt(job_id).placement.price_usd_per_hour == 0.0


def test_a_block_with_too_few_free_instances_is_passed_over():
    story = BlockStory(replace(BLOCK, available=NODES - 1))
    story.start()

    assert bought(story) == [(SPOT, NODES)]


def test_where_nothing_else_may_be_taken_the_job_waits_for_the_instances():
    story = BlockStory(replace(BLOCK, available=1), policy=PurchasePolicy.RESERVED)
    job_id = story.start()

    waiting = story.job(job_id).waiting
    assert waiting is not None
    assert waiting.reason is WaitReason.CAPACITY
    assert f"1 of the 3 instances of {BLOCK} is free, and the job needs 3 at once" in waiting.detail

    story.offer(BLOCK)
    story.clock.advance(5 * MINUTE)
    story.reconcile()
    story.settle_all()
    assert bought(story) == [(RESERVED, NODES)]


def test_a_job_fails_at_once_whose_nodes_no_block_ever_has():
    story = BlockStory(make_block(total=NODES - 1, available=NODES - 1), policy=PurchasePolicy.RESERVED)
    job_id = story.start()

    job = story.job(job_id)
    assert job.state is JobState.FAILED
    assert "has 2 instances, and the job needs 3 at once" in job.reason


def test_a_block_that_was_taken_since_selection_is_avoided_by_the_job_alone():
    story = BlockStory()
    story.fleet.free = {BLOCK_ID: NODES - 1}
    job_id = story.start()
    story.settle_all()

    assert bought(story) == [(RESERVED, NODES), (SPOT, NODES)]
    assert story.deps.capacity.load_capacity_memory(story.now) == {}
    assert story.count == NODES
    assert {each.state for each in story.machines(job_id)} == {MachineState.STARTING}


def test_of_a_part_of_the_machines_none_is_used():
    story = BlockStory()
    story.fleet.missing = 1
    job_id = story.start()
    story.fleet.missing = 0
    story.settle_all()

    assert bought(story) == [(RESERVED, NODES), (SPOT, NODES)]
    kept = {each.instance_id for each in story.machines(job_id)}
    assert story.running_instances == kept


def test_a_lost_answer_is_that_of_the_same_request_sent_again():
    story = BlockStory()
    story.fleet.lost = 1
    job_id = story.start()
    story.settle_all()

    assert {each.state for each in story.machines(job_id)} == {MachineState.STARTING}
    assert len(story.running_instances) == NODES


def test_the_announced_end_of_the_block_warns_all_machines_and_is_one_interruption():
    story = BlockStory()
    job_id = story.start()
    story.run_all(job_id)
    old = story.machines(job_id)

    assert set(story.end_block()) == {each.instance_id for each in old}
    assert story.stopped == set(story.ranks(job_id))
    assert all(story.load(each.machine_id).warned_at is not None for each in old)
    # It does not last long enough for the job any more.
    story.offer(replace(BLOCK, ends_at=story.now + timedelta(minutes=40), available=0))
    for arn in story.ranks(job_id):
        story.end_rank(arn, 0)
    story.settle_all()

    job = story.job(job_id)
    stop = story.attempt(job_id).stop
    assert stop is not None
    assert (stop.kind, job.totals.interruptions, job.totals.failures) == (StopKind.INTERRUPTION, 1, 0)
    assert bought(story) == [(RESERVED, NODES), (SPOT, NODES)]
    assert set(job.next_machines).isdisjoint(each.machine_id for each in old)


class TestSurvivors:
    """One machine of a gang in a block is lost: another one is requested where the block has one to spare."""

    def lose_one(self, *reservations: Reservation) -> tuple[BlockStory, str]:
        story = BlockStory(make_block(total=NODES + 1, available=NODES + 1))
        job_id = story.start()
        story.clock.advance(timedelta(seconds=90))
        story.run_all(job_id)
        story.offer(*reservations)
        story.warn(story.machines(job_id)[1].instance_id or "")
        story.settle_all()
        return story, job_id

    def test_the_others_are_kept_where_the_block_has_one_to_spare(self):
        story, job_id = self.lose_one(make_block(total=NODES + 1, available=1))

        assert bought(story) == [(RESERVED, NODES), (RESERVED, 1)]
        old = {each.machine_id for each in story.machines(job_id)} & set(story.job(job_id).next_machines)
        assert len(story.job(job_id).next_machines) == NODES
        assert old
        assert f"2 of {NODES} machines are kept" in story.timeline(job_id)

    def test_they_are_given_back_where_it_has_none(self):
        story, job_id = self.lose_one(make_block(total=NODES + 1, available=0))

        assert bought(story) == [(RESERVED, NODES)]
        assert "is free" in story.timeline(job_id)
        for arn in story.ranks(job_id):
            story.end_rank(arn, 0)
        story.settle_all()
        assert bought(story) == [(RESERVED, NODES), (SPOT, NODES)]


@pytest.mark.parametrize(
    ("free", "chosen"),
    [
        ({"cr-small": NODES - 1, "cr-large": NODES}, "cr-large"),
        ({"cr-small": NODES, "cr-large": NODES - 1}, "cr-small"),
    ],
)
def test_of_two_reservations_that_with_enough_free_instances_is_used(free: Mapping[str, int], chosen: str):
    reservations = [make_reservation(reservation_id=name, total=9, available=count) for name, count in free.items()]
    story = BlockStory(*reservations)
    story.start()

    (request,) = story.fleet.requests
    assert (request.reservation_id, request.size) == (chosen, NODES)
