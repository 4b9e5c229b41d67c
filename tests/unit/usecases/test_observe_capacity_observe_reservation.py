"""The end of a Capacity Block is announced: its machines are left in time, and only those."""

from datetime import timedelta

import pytest

from fakes.builders import make_definition
from fakes.machine_story import FIRST_TIER, MachineStory, make_own_offering
from fakes.reservations import BLOCK_ID, make_block, make_reservation, make_reserved
from fakes.story import OTHER_SHA, Story
from relaunch.core.definitions.accelerator import PurchaseOption, PurchasePolicy
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.launches.instance_events import ReservationEnding
from relaunch.core.machines.events import RefusalKind
from relaunch.core.machines.limits import TaskStop
from relaunch.core.machines.machine import MachineState
from relaunch.ports import NotYetError, PermanentError, TransientError
from relaunch.usecases.observe_capacity import observe_reservation

MINUTE = timedelta(minutes=1)
# Of the ten minutes until EC2 takes the machines two are spare, 90 s the stop time-out, and 10 s the way to SIGTERM.
LEFT = 380
ANY = PurchasePolicy.RESERVED_THEN_SPOT_THEN_ON_DEMAND


def make_story(policy: PurchasePolicy = ANY, *, task_stop: TaskStop = TaskStop.WHEN_NEXT_READY) -> MachineStory:
    """Return a story whose block ends 70 minutes after its first launch, beside spot."""
    story = MachineStory(make_definition(purchase=policy), task_stop=task_stop)
    block = make_block(ends_at=story.now + 70 * MINUTE)
    spot = (make_own_offering(key, usd) for key, usd in zip(FIRST_TIER, (0.40, 0.42), strict=True))
    story.offerings.available = (make_reserved(block), *spot)
    return story


def end_of(story: MachineStory, **fields: object) -> ReservationEnding:
    (reservation,) = {each.reservation for each in story.offerings.available if each.reservation}
    assert reservation is not None
    ends_at = reservation.ends_at or story.now + 40 * MINUTE
    facts = {"reservation_id": BLOCK_ID, "at": ends_at - 40 * MINUTE, "ends_at": ends_at, **fields}
    return ReservationEnding(**facts)


def announce(story: MachineStory, *, left: int = LEFT) -> None:
    """Announce the end of the block on time; the tasks in it may train on for `left` seconds."""
    event = end_of(story)
    story.clock.advance(max((event.at - story.now).total_seconds(), 0))
    observe_reservation(event, story.deps)
    assert {delay for _, delay in story.launches.requested if delay} <= {left}
    # The message for the last moment, which a fake queue would deliver with all others.
    story.launches.requested = [(each, delay) for each, delay in story.launches.requested if delay == 0]


@pytest.fixture
def story() -> MachineStory:
    return make_story()


def test_a_job_runs_in_the_block_for_nothing_and_its_machine_says_so(story):
    job_id = story.train()

    machine = story.machine(job_id)
    assert machine.request.reservation.reservation_id == BLOCK_ID
    assert (machine.usd_per_hour, str(machine.offering)) == (0.0, "g5.xlarge reserved us-east-1a")
    placement = story.attempt(job_id).placement
    assert (placement.price_text, placement.price_usd_per_hour) == ("paid for with its reservation", 0.0)
    story.clock.advance(3600)
    story.end(job_id)
    assert (story.job(job_id).totals.cost_usd, story.job(job_id).totals.cost_basis.value) == (0.0, "price")


def test_it_trains_on_until_the_next_machine_is_ready_and_goes_on_there(story):
    job_id = story.train()
    block = story.machine(job_id)

    announce(story)
    story.settle_all()

    assert story.job(job_id).state is JobState.RUNNING
    following = story.machine(job_id)
    assert (following.request.purchase, following.state) == (PurchaseOption.SPOT, MachineState.STARTING)
    story.register(following)
    story.settle_all()
    assert story.job(job_id).state is JobState.STOPPING
    assert (
        f"end of the Capacity Block, to be left by {end_of(story).ends_at - 32 * MINUTE:%H:%M} UTC, for"
        in story.timeline(job_id)
    )
    story.end(job_id, 143, stop_code="UserInitiated")
    story.settle_all()
    assert story.tasks.requests[-1].instance_id == following.instance_id
    assert story.job(job_id).totals.interruptions == 1
    assert story.load(block.machine_id).state in (MachineState.ENDING, MachineState.GONE)


def test_without_a_next_machine_it_is_stopped_in_time_to_save(story):
    job_id = story.train()
    announce(story)

    assert story.reconcile(timedelta(seconds=LEFT - 1)) == 0
    assert story.job(job_id).state is JobState.RUNNING
    story.reconcile(timedelta(seconds=1))

    assert story.job(job_id).state is JobState.STOPPING
    # Reconcile may be a minute late.
    assert end_of(story).ends_at - 30 * MINUTE - story.now == timedelta(seconds=220)


def test_the_message_for_its_last_moment_stops_it(story):
    job_id = story.train()
    story.clock.advance((end_of(story).at - story.now).total_seconds())
    observe_reservation(end_of(story), story.deps)
    assert (job_id, LEFT) in story.launches.requested

    story.deliver()

    assert story.job(job_id).state is JobState.STOPPING


def test_an_event_that_comes_late_stops_it_at_once(story):
    job_id = story.train()
    event = end_of(story)
    story.clock.advance((event.ends_at - 30 * MINUTE - story.now).total_seconds())

    observe_reservation(event, story.deps)

    assert story.job(job_id).state is JobState.STOPPING


def test_a_stack_that_stops_at_the_warning_does():
    story = make_story(task_stop=TaskStop.AT_WARNING)
    job_id = story.train()

    observe_reservation(end_of(story), story.deps)

    assert story.job(job_id).state is JobState.STOPPING


def test_announced_twice_it_asks_for_one_next_machine(story):
    job_id = story.train()
    announce(story)
    story.settle_all()
    following = story.machine(job_id)
    story.clock.advance(60)
    announce(story, left=LEFT - 60)
    story.settle_all()

    assert story.machine(job_id).machine_id == following.machine_id
    assert story.count == 2


def test_announced_again_after_its_machine_is_gone_nothing_happens(story):
    job_id = story.train()
    announce(story)
    story.reconcile(timedelta(seconds=LEFT))
    stops = len(story.tasks.stops)
    story.change_host(story.attempt(job_id).instance_id, "terminated")

    assert observe_reservation(end_of(story), story.deps) == []
    assert len(story.tasks.stops) == stops


def test_a_machine_that_starts_when_the_end_is_announced_is_ended_at_once(story):
    job_id = story.start()
    machine = story.machine(job_id)

    observe_reservation(end_of(story), story.deps)

    assert story.load(machine.machine_id).state is MachineState.ENDING


def test_a_machine_that_is_not_launched_yet_is_not_warned(story):
    job_id = story.submit_and_deliver()

    assert observe_reservation(end_of(story), story.deps) == []
    assert story.machine(job_id).state is MachineState.REQUESTED


@pytest.mark.parametrize("reservation_id", ["cr-0another", ""])
def test_the_end_of_another_reservation_is_nobodys_business(story, reservation_id: str):
    job_id = story.train()

    assert observe_reservation(end_of(story, reservation_id=reservation_id), story.deps) == []
    assert story.job(job_id).state is JobState.RUNNING


def test_machines_outside_the_block_go_on(story):
    inside = story.train()
    story.offerings.available = story.offerings.available[1:]
    outside = story.train(OTHER_SHA)
    story.offerings.available = (make_reserved(story.machine(inside).request.reservation),)

    announce(story)

    assert story.attempt(inside).handover is not None
    assert story.attempt(outside).handover is None


@pytest.mark.parametrize("error", [TransientError("no answer"), PermanentError("no")])
def test_a_machine_that_cannot_be_warned_keeps_none_of_the_others_from_it(story, error):
    first, second = story.train(), story.train(OTHER_SHA)
    one = story.attempt(first).instance_id
    load = story.jobs.load_on_instance

    def load_some(instance_id: str) -> object:
        if instance_id == one:
            raise error
        return load(instance_id)

    story.jobs.load_on_instance = load_some
    with pytest.raises(type(error)):
        observe_reservation(end_of(story), story.deps)

    assert story.attempt(second).handover is not None


def test_those_that_were_not_warned_before_come_first(story):
    # A function that died over the event had told the first one.
    first, second = (story.attempt(job_id).instance_id for job_id in (story.train(), story.train(OTHER_SHA)))
    with pytest.raises(NotYetError):
        story.warn(first)

    observe_reservation(end_of(story), story.deps)

    (ended,) = [facts for name, facts in story.log.lines if name == "reservation-ends"]
    assert ended["instance_ids"] == [second, first]


def test_a_reservation_that_is_cancelled_between_selection_and_launch_is_left_for_the_next_offering(story):
    job_id = story.submit_and_deliver()
    (reserved,) = story.machine(job_id).request.overrides
    story.fleet.refused[reserved.offering] = (RefusalKind.PRICE, "InvalidCapacityReservationId.NotFound")
    cancelled = make_reserved(make_block(state="cancelled"))
    story.offerings.available = (cancelled, *story.offerings.available[1:])

    story.settle_all()

    assert story.machine(job_id).request.purchase is PurchaseOption.SPOT
    assert story.job(job_id).state is not JobState.FAILED


def test_a_job_that_takes_nothing_else_waits_for_a_free_instance():
    story = make_story(PurchasePolicy.RESERVED)
    full = make_block(available=0)
    story.offerings.available = (make_reserved(full), *story.offerings.available[1:])
    job_id = story.submit_and_deliver()

    waiting = story.job(job_id).waiting
    assert waiting is not None
    assert waiting.reason is WaitReason.CAPACITY
    assert "none of the 4 instances of Capacity Block" in waiting.detail


def test_a_job_that_takes_nothing_else_fails_when_its_reservation_is_over():
    story = make_story(PurchasePolicy.RESERVED)
    story.offerings.available = (make_reserved(make_reservation(state="expired")),)

    job_id = story.submit_and_deliver()

    assert story.job(job_id).state is JobState.FAILED
    assert "capacity reservation cr-0de0de0de0de0de00 is expired" in story.job(job_id).reason


def test_machines_of_capacity_providers_have_no_reservation_here():
    story = Story()
    story.launch()

    assert observe_reservation(ReservationEnding(BLOCK_ID, story.now, story.now + 40 * MINUTE), story.deps) == []
