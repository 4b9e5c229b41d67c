"""Jobs that give up a machine of our own."""

from dataclasses import replace
from datetime import timedelta

from fakes.builders import NOW, make_definition, make_job
from relaunch.core.jobs.job import JobState, ReleaseMachine, Waiting, WaitReason
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.lookup import due_at
from relaunch.core.lifecycle.events import CheckpointsUnreadable, TimePassed
from relaunch.core.lifecycle.table import decide

LIMITS = StackLimits()
READY = Waiting(WaitReason.MACHINE, NOW, "i-1 is ready")
WAITING = replace(make_job(), machine_id="m-1", waiting=READY, wake_at=NOW, pending=())


def test_a_job_that_cannot_read_its_checkpoints_gives_up_its_machine_which_costs():
    after = decide(WAITING, CheckpointsUnreadable("AccessDenied"), NOW, LIMITS).job

    assert (after.machine_id, after.waiting.reason) == ("", WaitReason.CHECKPOINT)
    assert [each.machine_id for each in after.pending if isinstance(each, ReleaseMachine)] == ["m-1"]


def test_a_finished_job_is_due_until_its_machine_is_released():
    job = replace(WAITING, definition=make_definition(deadline=timedelta(minutes=1)))
    later = NOW + timedelta(hours=1)

    after = decide(job, TimePassed(), later, LIMITS).job

    assert after.state is JobState.TIMED_OUT
    assert [type(each) for each in after.pending] == [ReleaseMachine]
    # Not at once: who has saved it does its effects.
    assert due_at(after) == after.wake_at
    assert after.wake_at == later + timedelta(minutes=5)
