from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_definition, make_job, make_selection
from relaunch.core.jobs.job import STACK_SLOT
from relaunch.core.jobs.state import JobState, Waiting, WaitReason
from relaunch.core.lifecycle.events import (
    CheckpointsUnreadable,
    ImageArrived,
    MachineLimitReached,
    NothingKept,
    SlotDenied,
    TimePassed,
)
from relaunch.core.lifecycle.long_waits import idle_time
from relaunch.core.lifecycle.waiting import IMAGE_POLL_INTERVAL
from relaunch.core.revisions.images import FoundImage
from unit.core.lifecycle.steps import ADMIT, LAUNCH, SOON, after, chosen, decided
from unit.core.lifecycle.table_matrix import SITUATIONS


def test_who_waited_for_a_slot_and_got_it_lets_the_next_one_look():
    assert after(SITUATIONS["ws"], chosen()).pending == (ADMIT,)


@pytest.mark.parametrize(
    ("waited_for", "denied_by", "effects"),
    [
        pytest.param(STACK_SLOT, "resnet", (ADMIT,), id="the-stack-has-one-but-not-its-definition"),
        pytest.param("resnet", STACK_SLOT, (), id="its-definition-has-one-but-not-the-stack"),
        pytest.param("resnet", "resnet", (), id="still-none"),
    ],
)
def test_a_slot_that_a_job_cannot_use_is_passed_on(waited_for, denied_by, effects):
    waiting = Waiting(WaitReason.SLOT, NOW, "", slot=waited_for)

    assert after(replace(SITUATIONS["ws"], waiting=waiting), SlotDenied(denied_by, 5)).pending == effects


@pytest.mark.parametrize(
    ("slot", "detail"),
    [
        ("resnet", "definition resnet has no free slot of its 5 (max_running_jobs)"),
        (STACK_SLOT, "the stack has no free slot of its 5 (max_running_jobs)"),
    ],
)
def test_a_denied_slot_is_said_to_be_waited_for(slot, detail):
    job = after(SITUATIONS["w0"], SlotDenied(slot, 5))

    assert job.waiting == Waiting(WaitReason.SLOT, SOON, detail, slot=slot)
    assert job.reason == detail
    assert not job.has_slot
    assert job.wake_at == SOON + timedelta(minutes=15)


def test_who_goes_on_waiting_for_the_same_does_so_since_then_without_another_line():
    first = decided(SITUATIONS["w0"], SlotDenied("resnet", 5), NOW)
    again = decided(first.job, SlotDenied("resnet", 6))

    assert len(first.timeline) == 1
    assert again.timeline == ()
    assert again.job.waiting is not None
    assert again.job.waiting.since == NOW
    assert "of its 6" in again.job.waiting.detail


def test_nothing_that_ever_satisfies_it_fails_the_job_with_the_reason():
    event = NothingKept(make_selection(kept=()), "price-cap removed the last offering", None, None)

    decision = decided(SITUATIONS["w0"], event)

    assert decision.job.reason == "price-cap removed the last offering"
    assert (decision.selection, decision.selected_at) == (event.selection, SOON)


@pytest.mark.parametrize(
    ("retry_in", "reason", "wakes_in"),
    [
        pytest.param(timedelta(minutes=4), WaitReason.CAPACITY, timedelta(minutes=4), id="memory-expires"),
        pytest.param(timedelta(hours=4), WaitReason.CAPACITY, timedelta(minutes=5), id="what-arrives-late"),
        pytest.param(timedelta(seconds=1), WaitReason.CAPACITY, timedelta(seconds=15), id="not-in-a-hurry"),
        pytest.param(None, WaitReason.PRICE, timedelta(minutes=5), id="prices-change-when-they-will"),
    ],
)
def test_nothing_for_now_is_waited_for(retry_in, reason, wakes_in):
    retry_at = SOON + retry_in if retry_in else None
    event = NothingKept(make_selection(kept=()), "none", reason, retry_at)

    decision = decided(SITUATIONS["w0"], event)

    assert decision.job.waiting == Waiting(reason, SOON, "none", SOON + wakes_in)
    assert decision.job.wake_at == SOON + wakes_in
    assert (decision.selection, decision.selected_at) == (event.selection, SOON)


@pytest.mark.parametrize(
    ("retry_in", "wakes_in"),
    [
        pytest.param(timedelta(minutes=29), timedelta(minutes=29), id="when-the-policy-chooses-again"),
        pytest.param(timedelta(hours=4), timedelta(minutes=30), id="what-other-jobs-see-of-the-market"),
        pytest.param(None, timedelta(minutes=5), id="after-a-look-if-it-does-not-say"),
        pytest.param(timedelta(0), timedelta(seconds=15), id="not-in-a-hurry"),
    ],
)
def test_a_market_policy_waits_until_it_chooses_again(retry_in, wakes_in):
    retry_at = None if retry_in is None else SOON + retry_in
    event = NothingKept(make_selection(kept=()), "no spot", WaitReason.MARKET, retry_at)

    decision = decided(SITUATIONS["w0"], event)

    assert decision.job.waiting == Waiting(WaitReason.MARKET, SOON, "no spot", SOON + wakes_in)
    assert decision.job.wake_at == SOON + wakes_in


def test_a_wait_for_capacity_ends_with_the_deadline_at_the_latest():
    job = make_job(definition=make_definition(deadline=timedelta(minutes=3)))
    event = NothingKept(make_selection(kept=()), "none", WaitReason.CAPACITY, SOON + timedelta(hours=1))

    assert after(job, event).wake_at == NOW + timedelta(minutes=3)
    assert after(make_job(), event).wake_at == SOON + timedelta(minutes=5)


@pytest.mark.parametrize("situation", ["w0", "wr"])
def test_checkpoints_that_cannot_be_read_are_waited_for_with_growing_pauses_and_one_line(situation):
    job, now, pauses, entries = SITUATIONS[situation], SOON, [], []
    for _ in range(6):
        decision = decided(job, CheckpointsUnreadable("AccessDenied"), now)
        entries += decision.timeline
        job = decision.job
        assert job.waiting == Waiting(WaitReason.CHECKPOINT, SOON, "AccessDenied", job.wake_at)
        pauses.append((job.wake_at - now) / timedelta(minutes=1))
        now = job.wake_at

    assert pauses == [5, 5, 10, 20, 30, 30]
    assert [(entry.event, entry.detail) for entry in entries] == [("waiting for checkpoint", "AccessDenied")]
    assert job.reason == "AccessDenied"


def test_a_wait_for_something_else_makes_the_first_pause_no_longer():
    waited = replace(SITUATIONS["wc"], waiting=Waiting(WaitReason.CAPACITY, NOW, "nothing is available right now"))
    hour = NOW + timedelta(hours=1)

    assert after(waited, CheckpointsUnreadable("AccessDenied"), now=hour).wake_at == hour + timedelta(minutes=5)


def test_the_latest_refusal_is_the_one_that_is_told():
    job = after(SITUATIONS["wr"], CheckpointsUnreadable("s3:GetObject"), CheckpointsUnreadable("kms:Decrypt"))

    assert (job.waiting.detail, job.reason) == ("kms:Decrypt", "kms:Decrypt")


def test_a_wait_for_checkpoints_ends_with_the_deadline():
    job = make_job(definition=make_definition(deadline=timedelta(minutes=3)))
    waiting = after(job, CheckpointsUnreadable("AccessDenied"))

    assert waiting.wake_at == NOW + timedelta(minutes=3)
    assert after(waiting, TimePassed(), now=waiting.wake_at).state is JobState.TIMED_OUT


def test_who_was_let_in_and_cannot_read_its_checkpoints_passes_its_slot_on():
    assert after(SITUATIONS["ws"], CheckpointsUnreadable("AccessDenied")).pending == (ADMIT,)


def test_who_waits_for_its_checkpoints_leaves_its_slot_to_the_next_and_takes_one_again_before_its_launch():
    assert SITUATIONS["wr"].has_slot
    decision = decided(SITUATIONS["wr"], CheckpointsUnreadable("AccessDenied"))
    waiting = replace(decision.job, pending=())

    assert (decision.release_slot, decision.job.has_slot, decision.job.pending) == (True, False, (ADMIT,))
    again = decided(waiting, CheckpointsUnreadable("AccessDenied"))
    assert (again.release_slot, again.job.has_slot, again.job.pending) == (False, False, ())
    launched = decided(waiting, chosen())
    assert launched.job.has_slot
    assert launched.take_slot_limits is not None


def test_the_budget_of_interruptions_does_not_pass_while_checkpoints_cannot_be_read():
    days = timedelta(days=9)
    job = replace(
        SITUATIONS["wr"],
        definition=make_definition(deadline=None),
        totals=replace(SITUATIONS["wr"].totals, interruptions=1),
    )
    waiting = after(job, CheckpointsUnreadable("AccessDenied"), now=NOW + timedelta(hours=1))
    woken = after(waiting, TimePassed(), now=NOW + days)

    assert woken.state is JobState.WAITING
    launched = after(woken, chosen(), now=NOW + days)
    assert launched.state is JobState.LAUNCHING
    assert launched.waits.held_back_seconds == (days - timedelta(hours=1)).total_seconds()
    assert idle_time(launched, NOW + days) == timedelta(hours=1)


def test_waits_for_checkpoints_and_for_the_slot_add_up_and_other_waits_between_them_count_as_idle():
    hours = [NOW + timedelta(hours=hour) for hour in range(6)]
    job, unreadable = SITUATIONS["wr"], CheckpointsUnreadable("AccessDenied")
    full = NothingKept(make_selection(kept=()), "none", WaitReason.CAPACITY, None)
    for at, event in zip(hours, (unreadable, SlotDenied("resnet", 5), full, unreadable, chosen()), strict=False):
        job = after(job, event, now=at)

    assert job.held_back_time(hours[5]) == timedelta(hours=3)
    assert idle_time(job, hours[5]) == timedelta(hours=2)


def test_waits_for_what_is_no_capacity_add_up_from_the_acceptance_on():
    hours = [NOW + timedelta(hours=hour) for hour in range(6)]
    job, full = SITUATIONS["wi"], NothingKept(make_selection(kept=()), "none", WaitReason.CAPACITY, None)
    image = ImageArrived("trainer", "5e07", FoundImage("sha256:9"))
    for at, event in zip(
        hours[1:], (image, SlotDenied("resnet", 5), full, MachineLimitReached("machines")), strict=False
    ):
        job = after(job, event, now=at)

    assert job.held_back_in_all(hours[5]) == timedelta(hours=3), "an hour each for the image, the slot and the limit"
    launched = after(job, chosen(), now=hours[5])
    assert (launched.held_back_in_all(NOW + timedelta(days=1)), launched.waits.held_back_seconds) == (
        timedelta(hours=3),
        0,
    )
    ran = replace(
        SITUATIONS["wr"], waits=replace(SITUATIONS["wr"].waits, held_back_before_seconds=3600.0, held_back_seconds=60.0)
    )
    assert ran.held_back_in_all(hours[5]) == timedelta(hours=1, minutes=1)


def test_the_budget_of_interruptions_does_not_pass_while_the_stack_is_at_its_limit_of_machines():
    days = timedelta(days=9)
    job = replace(
        SITUATIONS["wr"],
        definition=make_definition(deadline=None),
        totals=replace(SITUATIONS["wr"].totals, interruptions=1),
    )
    waiting = after(job, MachineLimitReached("machines"), now=NOW)

    assert after(waiting, TimePassed(), now=NOW + days).state is JobState.WAITING
    assert idle_time(waiting, NOW + days) == idle_time(waiting, NOW)


def test_a_wait_for_checkpoints_before_the_first_start_is_no_part_of_the_budget():
    job = after(SITUATIONS["w0"], CheckpointsUnreadable("AccessDenied"))

    launched = after(job, chosen(), now=NOW + timedelta(hours=9))
    assert launched.waits.held_back_seconds == 0
    assert launched.waits.held_back_before_seconds == (timedelta(hours=9) - (SOON - NOW)).total_seconds()


def test_clocks_that_differ_take_nothing_back():
    job = after(SITUATIONS["wr"], CheckpointsUnreadable("AccessDenied"))

    assert after(job, chosen(), now=NOW).waits.held_back_seconds == 0


def test_who_was_let_in_and_finds_no_capacity_passes_its_slot_on():
    event = NothingKept(make_selection(kept=()), "none", WaitReason.CAPACITY, None)

    assert after(SITUATIONS["ws"], event).pending == (ADMIT,)
    assert after(SITUATIONS["w0"], event).pending == ()


def test_an_image_that_arrives_lets_its_job_go_on():
    found = FoundImage("sha256:5e07", ("linux/arm64",))
    job = after(SITUATIONS["wi"], ImageArrived("trainer", "5e07", found))

    assert job.waiting is not None
    assert job.waiting.reason is WaitReason.LAUNCH
    assert job.pending == (LAUNCH,)
    assert job.reason == "image trainer:5e07 is there; main runs trainer:5e07 (sha256:5e07) for linux/arm64"
    assert job.images == {"main": "111122223333.dkr.ecr.us-east-1.amazonaws.com/trainer@sha256:5e07"}
    assert [each.platforms for each in job.revision.containers] == [("linux/arm64",)]


@pytest.mark.parametrize(
    ("until", "wakes_at"),
    [
        pytest.param(SOON + timedelta(minutes=25), SOON + IMAGE_POLL_INTERVAL, id="looks-again"),
        pytest.param(SOON + timedelta(seconds=30), SOON + timedelta(seconds=30), id="not-beyond-its-limit"),
        pytest.param(None, SOON + IMAGE_POLL_INTERVAL, id="without-a-limit"),
    ],
)
def test_a_wait_for_an_image_is_looked_at_again_in_case_its_event_got_lost(until, wakes_at):
    job = make_job(waiting=Waiting(WaitReason.IMAGE, NOW, "waiting for image trainer:5e07", until))

    decision = decided(job, TimePassed())

    assert decision.job.wake_at == wakes_at
    assert decision.timeline == ()


def test_an_image_that_does_not_come_in_time_fails_the_job():
    job = make_job(waiting=Waiting(WaitReason.IMAGE, NOW, "waiting for image trainer:5e07", SOON))

    decision = decided(job, TimePassed())

    assert (decision.job.state, decision.job.ended_at) == (JobState.FAILED, SOON)
    assert decision.job.reason == "waiting for image trainer:5e07: it did not come until 09:27:53 UTC"
    assert decision.timeline[0].event == "no image"


@pytest.mark.parametrize(("situation", "minutes"), [("w0", 5), ("wc", 5), ("wb", 5), ("ws", 15)], ids=str)
def test_waiting_jobs_are_launched_when_they_are_woken(situation, minutes):
    decision = decided(SITUATIONS[situation], TimePassed())

    assert decision.job.pending == (LAUNCH,)
    assert decision.job.wake_at == SOON + timedelta(minutes=minutes)
    assert decision.job.waiting == SITUATIONS[situation].waiting
    assert decision.timeline == ()
