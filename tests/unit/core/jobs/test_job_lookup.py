"""Under what a job can be found."""

from dataclasses import fields
from datetime import timedelta
from typing import Any

import pytest

from fakes.builders import (
    NOW,
    make_attempt,
    make_definition,
    make_job,
    make_placement,
    make_running_attempt,
    make_running_job,
)
from relaunch.core.definitions.definition import (
    GithubTrigger,
    ImageTrigger,
    ImageWait,
    S3Trigger,
    TriggerSource,
    image_repositories,
    trigger_origins,
)
from relaunch.core.jobs.attempt import PlacementState
from relaunch.core.jobs.cost import summarize_job
from relaunch.core.jobs.effects import AdmitWaiting
from relaunch.core.jobs.job import CAPACITY, MACHINES_SLOT, due_at, may_have_instance, selected_placement, waited_slot
from relaunch.core.jobs.state import JobState, Waiting, WaitReason

OVER: dict[str, Any] = {"state": JobState.FAILED, "wake_at": None, "ended_at": NOW + timedelta(hours=1)}
PENDING = (AdmitWaiting(),)


def slot_wait(slot: str) -> Waiting:
    return Waiting(WaitReason.SLOT, since=NOW, detail="the cap is reached", slot=slot)


def test_an_open_job_is_due_when_it_wants_to_be_woken() -> None:
    assert due_at(make_job(wake_at=NOW)) == NOW


def test_a_job_that_is_over_is_never_due() -> None:
    assert due_at(make_job(**{**OVER, "wake_at": NOW})) is None


def test_a_job_that_is_over_with_effects_pending_is_due_from_its_end_on() -> None:
    assert due_at(make_job(**OVER, pending=PENDING)) == NOW + timedelta(hours=1)
    assert due_at(make_job(**{**OVER, "wake_at": NOW}, pending=PENDING)) == NOW
    assert due_at(make_job(**{**OVER, "ended_at": None}, pending=PENDING)) == NOW


@pytest.mark.parametrize("state", [state for state in JobState if not state.is_final])
def test_an_open_job_without_a_time_to_wake_is_refused(state: JobState) -> None:
    with pytest.raises(ValueError, match=f"is {state} and has no wake_at"):
        due_at(make_job(state=state, wake_at=None))


@pytest.mark.parametrize(
    ("waiting", "slot"),
    [
        (slot_wait("*"), "*"),
        (slot_wait("resnet"), "resnet"),
        (slot_wait(""), "resnet"),
        (Waiting(WaitReason.CAPACITY, since=NOW, detail="nothing to be had"), CAPACITY),
        (Waiting(WaitReason.PRICE, since=NOW, detail="too dear"), None),
        (None, None),
    ],
)
def test_a_job_waits_for_the_slot_it_names(waiting: Waiting | None, slot: str | None) -> None:
    assert waited_slot(make_job(waiting=waiting)) == slot


def test_jobs_that_wait_for_room_for_a_machine_are_found_under_one_name() -> None:
    waiting = Waiting(WaitReason.MACHINE_LIMIT, NOW, "the stack has reached its limit")

    assert waited_slot(make_job(waiting=waiting)) == MACHINES_SLOT
    assert not may_have_instance(make_job(waiting=waiting, has_slot=True))


def test_a_job_that_is_over_waits_for_no_slot() -> None:
    assert waited_slot(make_job(**OVER, waiting=slot_wait("*"))) is None


@pytest.mark.parametrize(
    ("reason", "has_slot", "may"),
    [
        (None, True, True),
        (None, False, False),
        (WaitReason.LAUNCH, True, True),
        (WaitReason.CAPACITY, True, False),
        (WaitReason.CAPACITY, False, False),
    ],
)
def test_a_job_that_waits_for_capacity_has_no_instance_though_it_keeps_its_slot(
    reason: WaitReason | None, has_slot: bool, may: bool
) -> None:
    waiting = Waiting(reason, since=NOW, detail="why") if reason else None
    assert may_have_instance(make_job(waiting=waiting, has_slot=has_slot)) is may


@pytest.mark.parametrize(
    ("attempt", "is_placed", "expected"),
    [
        (None, False, (1, 1)),
        (make_attempt(2, placement=make_placement(3)), True, (2, 3)),
        (make_attempt(2, placement=make_placement(3)), False, (2, 4)),
        (make_attempt(2, placement=make_placement(3, state=PlacementState.CLOSED)), False, (2, 4)),
        (make_running_attempt(2), False, (3, 1)),
    ],
)
def test_a_selection_is_of_the_pending_placement_or_the_next(attempt: Any, is_placed: bool, expected: Any) -> None:
    assert selected_placement(make_job(attempt=attempt), is_placed=is_placed) == expected


def test_a_summary_tells_of_the_current_attempt_when_there_is_one() -> None:
    running = summarize_job(make_running_job(attempt=make_running_attempt(3)))
    assert (running.attempt_number, str(running.offering)) == (3, "g5.xlarge spot")
    waiting = summarize_job(make_job())
    assert (waiting.attempt_number, waiting.offering) == (0, None)
    assert waiting.trigger == "push of 5e07 to main of acme/vision"
    assert waiting.definition == "resnet"


def test_a_summary_says_of_the_job_what_the_job_says_of_itself() -> None:
    counted = {"interruptions": 1, "failures": 2, "run_seconds": 3.5, "cost_usd": 0.25, "useless_machines_usd": 0.5}
    job = make_job(**OVER, **counted, reason="so it is", waiting=slot_wait("*"), machine_id="m-1")
    summary = summarize_job(job)

    told = {each.name: getattr(record, each.name) for record in (job, job.totals) for each in fields(record)}
    same = told.keys() & {each.name for each in fields(summary)} - {"definition", "trigger"}
    assert {name: getattr(summary, name) for name in same} == {name: told[name] for name in same}
    assert summary.useless_machines_usd == job.machines.useless_usd


def test_a_definition_is_found_under_the_origin_of_each_of_its_triggers() -> None:
    triggers = (
        GithubTrigger("Acme/Vision", "push"),
        S3Trigger("data"),
        ImageTrigger("trainer"),
        S3Trigger("data", "a/"),
    )
    assert trigger_origins(make_definition(triggers=triggers)) == {
        (TriggerSource.GITHUB, "acme/vision"),
        (TriggerSource.S3, "data"),
        (TriggerSource.IMAGE, "trainer"),
    }


def test_repositories_are_known_whose_images_triggers_bring() -> None:
    triggers = (
        GithubTrigger("acme/vision", "push", wait_for_image=ImageWait("team/trainer")),
        GithubTrigger("acme/data", "push"),
        S3Trigger("data"),
        ImageTrigger("proxy", "v*"),
    )

    assert image_repositories(make_definition(triggers=triggers)) == {"team/trainer", "proxy"}
    assert image_repositories(make_definition()) == set()
