"""Machines in a reservation are shared by the jobs that may use it, also when no instance of it is free."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from fakes.builders import make_container, make_definition, make_instance_type, make_revision
from fakes.machine_story import G5, MachineStory, make_own_offering
from fakes.reservations import make_block, make_reserved
from fakes.sources import FakeOfferings
from fakes.story import push
from relaunch.core.definitions.accelerator import PurchaseOption, PurchasePolicy
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.long_waits import UNREADABLE_LIMIT
from relaunch.core.machines.machine import MachineState
from relaunch.core.offerings.offering import Offering
from relaunch.ports import ANY_OPTION, ReservationsUnreadableError
from relaunch.usecases.choose_placement import select_offerings

FOUR_GPUS = make_instance_type("g5.12xlarge", gpu_count=4, logical_gpu_count=4, vcpus=48, memory_mib=196_608)
FULL = make_block(instance_type="g5.12xlarge", total=1, available=0)
FREE = replace(FULL, available=1)
OTHER_SHA = "b" * 40


def reserved_story(policy: PurchasePolicy) -> MachineStory:
    """Return a story with a block of one instance of four GPUs, beside spot, and jobs of one GPU each."""
    story = MachineStory(make_definition(purchase=policy))
    story.revisions.active[:] = [make_revision(containers=(make_container(gpu_count=1, vcpus=1.0, memory_mib=1024),))]
    offer(story, FREE)
    return story


def offer(story: MachineStory, *blocks) -> None:
    reserved = (make_reserved(each, instance_type=FOUR_GPUS) for each in blocks)
    story.offerings.available = (*reserved, make_own_offering(G5, 0.40))


@pytest.mark.parametrize("policy", [PurchasePolicy.RESERVED, PurchasePolicy.RESERVED_THEN_SPOT])
def test_a_job_finds_room_on_a_machine_of_a_reservation_that_is_full(policy: PurchasePolicy):
    story = reserved_story(policy)
    first = story.start()
    offer(story, FULL)

    second = story.start(OTHER_SHA)

    assert story.machine(second).machine_id == story.machine(first).machine_id
    assert len(story.fleet.requests) == 1


def test_one_that_finds_none_takes_the_next_offering():
    story = reserved_story(PurchasePolicy.RESERVED_THEN_SPOT)
    jobs = [story.start(digit * 40) for digit in "abcd"]
    offer(story, FULL)

    last = story.start("e" * 40)

    assert len({story.machine(each).machine_id for each in jobs}) == 1
    assert story.machine(last).request.purchase is PurchaseOption.SPOT


def test_one_that_needs_more_than_is_left_pauses_and_says_why():
    story = reserved_story(PurchasePolicy.RESERVED)
    large = make_container(gpu_count=1, vcpus=1.0, memory_mib=100_000)
    story.revisions.active[:] = [make_revision(containers=(large,))]
    story.start()
    offer(story, FULL)

    waiting = story.job(story.submit_and_deliver(push(OTHER_SHA))).waiting

    assert waiting is not None
    assert waiting.detail == (
        "no instance of Capacity Block cr-0b10c0b10c0b10c00 is free, and none has room for this job"
    )
    assert len(story.fleet.requests) == 1


def test_one_that_finds_no_room_at_all_waits_for_an_instance():
    story = reserved_story(PurchasePolicy.RESERVED)
    for digit in "abcd":
        story.start(digit * 40)
    offer(story, FULL)

    waiting = story.job(story.submit_and_deliver(push("e" * 40))).waiting

    assert waiting is not None
    assert "none of the 1 instances of Capacity Block cr-0b10c0b10c0b10c00 is free" in waiting.detail


def test_a_job_that_may_not_use_what_is_reserved_does_not_share_it():
    story = reserved_story(PurchasePolicy.RESERVED)
    first = story.start()
    story.deps.definitions.save_definition(make_definition(purchase=PurchasePolicy.SPOT))

    second = story.start(OTHER_SHA)

    assert story.machine(second).request.purchase is PurchaseOption.SPOT
    assert story.machine(second).machine_id != story.machine(first).machine_id


def test_a_machine_of_a_reservation_that_ends_too_soon_is_not_shared_though_another_one_for_the_same_lasts():
    story = reserved_story(PurchasePolicy.RESERVED)
    first = story.start()
    lasting = make_block(reservation_id="cr-2", instance_type="g5.12xlarge")
    offer(story, lasting)

    second = story.start(OTHER_SHA)

    assert story.machine(second).request.reservation_id == "cr-2"
    assert story.machine(second).machine_id != story.machine(first).machine_id
    assert story.machine(first).state is MachineState.STARTING
    assert story.job(second).state is JobState.WAITING


class UnreadableReservations(FakeOfferings):
    """Offerings of which those that are reserved cannot be read."""

    def offerings(self, now: datetime, options: Collection[PurchaseOption] = ANY_OPTION) -> tuple[Offering, ...]:
        if PurchaseOption.RESERVED in options:
            raise ReservationsUnreadableError("no answer")
        return self.available


def kept_after(waited: timedelta, usd_per_hour: float) -> list[PurchaseOption]:
    """Return what selection keeps for a job that has waited for reservations that cannot be read, beside spot."""
    story = reserved_story(PurchasePolicy.RESERVED_THEN_SPOT)
    job = story.job(story.submit())
    story.clock.advance(waited)
    spot = replace(make_own_offering(G5, usd_per_hour), on_demand_usd_per_hour=None)
    selection, _ = select_offerings(job, replace(story.deps, offerings=UnreadableReservations(spot)))
    assert "reservations-unreadable" in [name for name, _ in story.log.lines]
    return [each.purchase for each in selection.kept]


def test_a_job_takes_something_else_once_it_has_waited_for_reservations_that_cannot_be_read():
    assert kept_after(UNREADABLE_LIMIT, 0.40) == [PurchaseOption.SPOT]


@pytest.mark.parametrize(("waited", "usd_per_hour"), [(timedelta(0), 0.40), (UNREADABLE_LIMIT, 400.0)])
def test_it_waits_on_at_first_and_where_nothing_else_would_do(waited: timedelta, usd_per_hour: float):
    with pytest.raises(ReservationsUnreadableError):
        kept_after(waited, usd_per_hour)
