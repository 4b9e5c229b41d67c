from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_attempt, make_job, make_running_attempt, make_running_job
from relaunch.core.jobs.changes import MAX_REASON, ChangedPart
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState, Waiting, WaitReason
from relaunch.core.lifecycle.decision import Decision, ignore, move, set_next_check
from relaunch.core.lifecycle.events import CancelAsked
from relaunch.core.lifecycle.job_changes import as_created, changed_parts, with_change
from relaunch.core.lifecycle.table import decide

LATER = NOW + timedelta(minutes=1)


def completed(before: Job, decision: Decision) -> Job:
    job: Job = with_change(before, None, decision, LATER).job
    return job


def test_a_new_state_is_a_change_with_the_next_number() -> None:
    job = make_running_job()

    after = completed(job, move(job, JobState.STOPPING, LATER, event="cancelled", detail="by ada"))
    (change,) = after.outbox.unsent

    assert (change.sequence, change.state_before, change.state) == (1, JobState.RUNNING, JobState.STOPPING)
    assert (change.reason, change.at, change.changed) == ("by ada", LATER, (ChangedPart.STATE,))
    assert (change.attempt, change.machine.instance_type) == (1, "g5.xlarge")  # type: ignore[union-attr]


def test_what_nobody_watches_is_saved_quietly() -> None:
    job = make_running_job()

    assert completed(job, set_next_check(job, LATER)).outbox == job.outbox
    assert completed(job, move(job, JobState.RUNNING, LATER, event="looked at")).outbox == job.outbox
    assert completed(job, ignore(job, "nothing")).outbox == job.outbox


def waiting_for(reason: WaitReason, detail: str = "") -> Job:
    return make_job(waiting=Waiting(reason, NOW, detail))


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        (waiting_for(WaitReason.LAUNCH), waiting_for(WaitReason.CAPACITY), (ChangedPart.WAITING_FOR,)),
        (waiting_for(WaitReason.SLOT), waiting_for(WaitReason.SLOT, "in other words"), ()),
        (
            make_running_job(),
            make_running_job(attempt=make_running_attempt(warned_at=NOW)),
            (ChangedPart.WARNING,),
        ),
        (
            make_running_job(attempt=make_running_attempt(warned_at=NOW)),
            make_running_job(attempt=make_running_attempt(warned_at=LATER)),
            (),
        ),
        (
            make_running_job(attempt=make_running_attempt(warned_at=NOW)),
            make_running_job(attempt=make_running_attempt(number=2, warned_at=NOW)),
            (ChangedPart.ATTEMPT, ChangedPart.WARNING),
        ),
    ],
)
def test_a_change_within_a_state_is_another_wait_attempt_or_warning(
    before: Job, after: Job, changed: tuple[ChangedPart, ...]
) -> None:
    assert changed_parts(before, after) == changed


def test_the_creation_of_a_job_is_its_first_event() -> None:
    created = as_created(make_job(), "push of 5e07")
    (change,) = created.outbox.unsent

    assert (change.sequence, change.state_before, change.reason) == (1, None, "push of 5e07")
    assert change.changed == (ChangedPart.STATE, ChangedPart.WAITING_FOR)


def test_a_reason_is_cut_and_what_a_loss_would_cost_then_is_kept() -> None:
    job = make_running_job()
    after = completed(job, move(job, JobState.STOPPING, LATER, event="stop", detail="r" * 5_000))

    assert after.outbox.unsent[0].at_risk_seconds == (LATER - NOW).total_seconds()
    assert len(after.outbox.unsent[0].reason) == MAX_REASON


def test_the_step_from_which_an_attempt_resumed_is_its_progress() -> None:
    attempt = make_attempt()
    placement = replace(attempt.placement, resume_uri="s3://acme/resnet/j/attempt-1/step-0000300/")
    created = as_created(make_running_job(attempt=replace(attempt, placement=placement)), "")

    assert created.outbox.unsent[0].step == 300


def test_every_action_of_the_table_is_completed_with_its_change() -> None:
    job = replace(make_job(), outbox=as_created(make_job(), "").outbox)

    after = decide(job, CancelAsked("no more"), LATER, StackLimits()).job

    assert [(each.sequence, each.state) for each in after.outbox.unsent] == [
        (1, JobState.WAITING),
        (2, JobState.CANCELLED),
    ]
