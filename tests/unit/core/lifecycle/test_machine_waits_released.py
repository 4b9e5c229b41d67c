"""Jobs that give up a machine of our own."""

from dataclasses import replace
from datetime import timedelta

from fakes.builders import NOW, make_definition, make_job
from relaunch.core.jobs.effects import ReleaseMachine
from relaunch.core.jobs.job import due_at
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState, Waiting, WaitReason
from relaunch.core.lifecycle.events import CheckpointsUnreadable, TimePassed
from relaunch.core.lifecycle.refusal_waits import MACHINE_KEPT
from relaunch.core.lifecycle.table import decide
from unit.core.lifecycle.steps import SOON
from unit.core.lifecycle.table_matrix import SITUATIONS, seen_stopped

LIMITS = StackLimits()
READY = Waiting(WaitReason.MACHINE, NOW, "i-1 is ready")
WAITING = replace(make_job(), machine_id="m-1", waiting=READY, wake_at=NOW, pending=())


def test_a_job_that_cannot_read_its_checkpoints_gives_up_its_machine_which_costs_after_some_minutes():
    kept = decide(WAITING, CheckpointsUnreadable("AccessDenied"), NOW, LIMITS).job
    after = decide(kept, CheckpointsUnreadable("AccessDenied"), NOW + MACHINE_KEPT, LIMITS).job

    assert kept.machine_id == "m-1"
    assert (after.machine_id, after.waiting.reason) == ("", WaitReason.CHECKPOINT)
    assert [each.machine_id for each in after.pending if isinstance(each, ReleaseMachine)] == ["m-1"]


def test_a_job_whose_image_failed_while_it_was_handed_over_gives_up_its_next_machine_for_the_back_off():
    handed_over = replace(SITUATIONS["so"], machine_id="m-2")
    before = NOW - timedelta(seconds=1)
    no_image = seen_stopped(None, before, stopped_reason="CannotPullContainerError: something new", started_at=None)

    failed = decide(handed_over, no_image, SOON, LIMITS).job
    saved = decide(handed_over, seen_stopped(0), SOON, LIMITS).job

    assert (failed.machine_id, failed.waiting.reason) == ("", WaitReason.BACKOFF)
    assert "m-2" in [each.machine_id for each in failed.pending if isinstance(each, ReleaseMachine)]
    assert (saved.machine_id, saved.waiting.reason) == ("m-2", WaitReason.LAUNCH)


def test_a_finished_job_is_due_until_its_machine_is_released():
    job = replace(WAITING, definition=make_definition(deadline=timedelta(minutes=1)))
    later = NOW + timedelta(hours=1)

    after = decide(job, TimePassed(), later, LIMITS).job

    assert after.state is JobState.TIMED_OUT
    assert [type(each) for each in after.pending] == [ReleaseMachine]
    # Not at once: who has saved it does its effects.
    assert after.wake_at == later + timedelta(minutes=5)
    assert due_at(after) == after.outbox.resend_at == later + timedelta(minutes=1)
