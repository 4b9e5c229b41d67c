"""The bound of machines that never run a task of a job."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_failed_placement
from relaunch.core.jobs.attempt import Stop, StopKind
from relaunch.core.jobs.effects import ReleaseMachine, RememberCapacity
from relaunch.core.jobs.state import JobState, Refusal, RefusedCall, WaitReason
from relaunch.core.launches.launch import TaskPlaced
from relaunch.core.lifecycle.events import MachineLost, NothingKept, TimePassed
from relaunch.core.lifecycle.explanation import explain
from relaunch.core.lifecycle.machine_waits import next_machine, with_releases
from relaunch.core.lifecycle.refusal_waits import MACHINE_KEPT, wait_until_granted
from relaunch.core.lifecycle.restart_policy import MOST_IN_A_DAY, describe_bound, next_machine_at
from relaunch.core.lifecycle.stopping import follow_stop
from relaunch.core.lifecycle.table import decide
from relaunch.core.machines.machine import Consequence
from relaunch.core.offerings.capacity_memory import placement_scope
from unit.core.lifecycle.steps import after, decided
from unit.core.lifecycle.table_matrix import EVENTS, LIMITS, SITUATIONS, SOON, answered

LOST = MachineLost("m-1", None, "it never registered")


def lose_for(hours: float, *, has_trained: bool) -> tuple[list[float], object]:
    """Lose every machine five minutes after it may be requested; return when, in hours, and the job in the end."""
    job = replace(
        SITUATIONS["wm"], totals=replace(SITUATIONS["wm"].totals, first_started_at=NOW if has_trained else None)
    )
    job = replace(job, definition=replace(job.definition, deadline=None))
    now, lost = NOW, []
    while not job.state.is_final and now < NOW + timedelta(hours=hours):
        now += timedelta(minutes=5)
        lost.append((now - NOW).total_seconds() / 3600)
        job = next_machine(replace(job, machine_id=""), "it never registered", now, event="machine lost").job
        now = max(job.waiting.until or now, now) if job.waiting else now
    return lost, job


def test_a_job_that_never_trained_gets_six_machines_in_a_day_and_fails_after_it():
    lost, job = lose_for(200, has_trained=False)

    assert [round(each, 2) for each in lost[:6]] == [0.08, 0.17, 0.25, 0.58, 1.33, 4.33]
    assert len(lost) == 7
    assert job.state is JobState.FAILED
    assert job.reason.startswith("refused for 24 hours: it never registered; 7 machines in a row")


def test_a_job_that_has_trained_gets_one_a_day_for_two_weeks_after_that():
    lost, job = lose_for(24 * 20, has_trained=True)

    assert job.state is JobState.FAILED
    assert len(lost) == 6 + 14
    assert all(later - earlier >= 24 for earlier, later in zip(lost, lost[MOST_IN_A_DAY:], strict=False))


def test_six_in_a_day_hold_a_job_back_whatever_ran_in_between():
    job = replace(
        SITUATIONS["wm"],
        machines=replace(SITUATIONS["wm"].machines, useless_at=tuple(NOW + timedelta(hours=each) for each in range(5))),
    )

    job = next_machine(job, "it never registered", NOW + timedelta(hours=6), event="machine lost").job

    assert job.machines.failed == 1
    assert (job.waiting.reason, job.waiting.until) == (WaitReason.REFUSED, NOW + timedelta(hours=24))
    assert describe_bound(job) == (
        "6 machines within 24 hours never ran its task; another one is requested after 2026-03-15 09:26 UTC"
    )
    assert next_machine_at(job, NOW + timedelta(hours=25)) == NOW + timedelta(hours=25)


@pytest.mark.parametrize("situation", ["wm", "sp"])
def test_it_is_released_as_one_without_a_task(situation: str):
    lost = after(SITUATIONS[situation], LOST)

    (released,) = [each for each in lost.pending if isinstance(each, ReleaseMachine) and each.machine_id == "m-1"]
    assert released.is_unused


def test_the_next_machine_counts_as_one_of_no_use():
    assert len(after(SITUATIONS["sp"], LOST).machines.useless_at) == 1


def test_one_that_ec2_refused_is_none_of_them():
    refused = MachineLost("m-1", Consequence.NEXT, "no capacity")

    assert after(SITUATIONS["wm"], refused).machines.useless_at == ()
    assert after(SITUATIONS["sp"], refused).machines.useless_at == ()


@pytest.mark.parametrize(("minutes", "paused"), [(1, 5), (10, 10), (240, 10)])
def test_a_job_looks_again_for_free_while_others_find_out_whether_machines_become_ready(minutes: int, paused: int):
    given = EVENTS["nothing-for-now"]
    retry_at = NOW + timedelta(minutes=1 + minutes)
    event = NothingKept(given.selection, "not ready", WaitReason.REFUSED, retry_at)

    decision = decided(SITUATIONS["w0"], event)

    assert decision.job.waiting.reason is WaitReason.REFUSED
    paused_for = decision.job.waiting.until - decision.job.waiting.since
    assert timedelta(minutes=paused) <= paused_for < timedelta(minutes=paused + 20), "each job has its turn"
    assert RefusedCall.USEFUL_MACHINE in decision.job.refusals
    assert decision.selection is given.selection


@pytest.mark.parametrize("call", [RefusedCall.LAUNCH, RefusedCall.START])
def test_what_is_refused_to_a_job_is_what_it_waits_for_while_others_try_it(call: RefusedCall):
    given, asked_at = EVENTS["nothing-for-now"], NOW - timedelta(hours=1)
    job = replace(SITUATIONS["w0"], refusals={call: Refusal(asked_at, asked_at)})

    waiting = after(job, NothingKept(given.selection, "AccessDenied", WaitReason.REFUSED, None))

    assert list(waiting.refusals) == [call]
    assert waiting.refusals[call].since == asked_at, "it is not held back for longer"


@pytest.mark.parametrize(
    ("hours", "state"), [(0, JobState.FAILED), (1, JobState.WAITING), (6, JobState.WAITING), (7, JobState.FAILED)]
)
def test_a_job_is_held_back_a_few_hours_longer_for_a_machine_that_may_be_bought_then(hours: int, state: JobState):
    asked_at = SOON - timedelta(hours=24)
    job = replace(SITUATIONS["w0"], refusals={RefusedCall.USEFUL_MACHINE: Refusal(asked_at, asked_at)})
    retry_at = SOON + timedelta(hours=hours)

    tried = after(job, NothingKept(EVENTS["nothing-for-now"].selection, "spoilt", WaitReason.REFUSED, retry_at))

    assert tried.state is state


def test_explain_says_what_to_look_at_and_until_when_that_goes_on():
    job = SITUATIONS["wm"]
    for _ in range(3):
        job = after(replace(job, machine_id="m-1"), LOST)

    explained = explain(job, NOW)

    assert "why its machines are of no use: it never registered; 3 machines in a row" in explained.waiting_for
    assert any("a way to the cluster" in each for each in explained.advice)
    assert "then it fails" in explained.next_step


def test_a_job_that_is_held_back_by_the_bound_says_so():
    job = replace(SITUATIONS["w0"], machines=replace(SITUATIONS["w0"].machines, useless_at=(NOW,) * MOST_IN_A_DAY))

    held = after(job, MachineLost("", Consequence.PAUSE, describe_bound(job)))

    assert list(held.refusals) == [RefusedCall.USEFUL_MACHINE]
    assert "6 machines within 24 hours never ran its task" in held.reason


def test_the_bound_is_about_the_next_machine_and_not_about_one_that_is_up():
    job = replace(SITUATIONS["w0"], machines=replace(SITUATIONS["w0"].machines, useless_at=(NOW,) * MOST_IN_A_DAY))

    kept = wait_until_granted(job, RefusedCall.LAUNCH, "denied", NOW, machine_id="m-1").job
    given_up = wait_until_granted(kept, RefusedCall.LAUNCH, "denied", NOW + MACHINE_KEPT, machine_id="m-1").job

    assert (kept.machine_id, kept.waiting.until) == ("m-1", NOW + timedelta(minutes=1))
    assert (given_up.machine_id, given_up.waiting.until) == ("", NOW + timedelta(hours=24))
    assert given_up.machines.useless_at[-1] == NOW + MACHINE_KEPT


def test_a_machine_that_was_bought_for_a_task_and_cannot_take_it_is_told_to_all_jobs_with_the_revision():
    pending = SITUATIONS["fz"]
    placement = replace(pending.current_attempt.placement, machine_id="m-0", instance_id="i-1")
    job = replace(pending, attempt=replace(pending.current_attempt, placement=placement))
    refused = answered(make_failed_placement("MemberOf placement constraint unsatisfied."))

    shared = decided(job, refused).job
    unused = decided(job, replace(refused, is_unused=True)).job

    assert not any(isinstance(each, RememberCapacity) for each in shared.pending), "it may be full"
    (remembered,) = [each for each in unused.pending if isinstance(each, RememberCapacity)]
    assert remembered.offering == placement_scope(job.revision.arn)


@pytest.mark.parametrize(
    "answer", [make_failed_placement("RESOURCE:MEMORY"), TaskPlaced("t-1")], ids=["nothing placed", "start refused"]
)
def test_a_machine_on_which_an_earlier_attempt_ran_is_not_released_as_one_without_a_task(answer):
    ran = after(SITUATIONS["ro"], EVENTS["seen-exit-0"])
    pending = SITUATIONS["fz"]
    on_machine = replace(pending.current_attempt.placement, machine_id=ran.machines.ran_on)
    again = replace(
        pending,
        attempt=replace(pending.current_attempt, placement=on_machine),
        machines=replace(pending.machines, ran_on=ran.machines.ran_on),
    )

    lost = after(again, answered(answer))
    if isinstance(answer, TaskPlaced):
        refused = follow_stop(lost, Stop(StopKind.START_REFUSED, NOW), NOW)
        lost = with_releases(lost, TimePassed(), refused, NOW).job

    assert ran.machines.ran_on == SITUATIONS["ro"].current_attempt.placement.machine_id != ""
    assert [each.is_unused for each in lost.pending if isinstance(each, ReleaseMachine)] == [False]


def test_a_task_that_an_earlier_version_placed_has_used_its_machine():
    running = SITUATIONS["ro"]

    ended = after(running, EVENTS["seen-exit-0"])

    assert running.machines.ran_on == ""
    assert [each.is_unused for each in ended.pending if isinstance(each, ReleaseMachine)] == [False]


@pytest.mark.parametrize("order", ["paid first", "warned first"])
def test_what_a_machine_cost_and_what_else_an_effect_brought_about_are_one_decision(order: str):
    paid, warned = EVENTS["machine-paid"], EVENTS["warned"]
    first, second = (paid, warned) if order == "paid first" else (warned, paid)
    one = decide(SITUATIONS["pl"], first, SOON, LIMITS)
    both = one.followed_by(decide(one.job, second, SOON, LIMITS))

    alone = decide(SITUATIONS["pl"], warned, SOON, LIMITS)
    assert both.timeline == alone.timeline != ()
    paid_for = replace(alone.job, charges=both.job.charges, outbox=both.job.outbox)
    assert both.job.charges.machines_usd == 0.25
    assert both.job == paid_for
    assert [each.state for each in both.job.outbox.unsent] == [alone.job.state]


def test_an_event_that_means_nothing_leaves_the_decision_before_it():
    one = decide(SITUATIONS["w0"], EVENTS["machine-paid"], SOON, LIMITS)

    assert one.followed_by(decide(one.job, EVENTS["warned"], SOON, LIMITS)) is one
