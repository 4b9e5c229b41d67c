"""What a refusal that may heal does to a job: how long it waits, what it keeps, and when it gives up."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_definition
from relaunch.core.jobs.effects import ReleaseMachine, RememberCapacity
from relaunch.core.jobs.job import Job, Totals
from relaunch.core.jobs.state import JobState, RefusedCall, WaitReason
from relaunch.core.launches.launch import LaunchRefused, TaskPlaced
from relaunch.core.lifecycle.events import CheckpointsUnreadable, LaunchNotGranted, MachineLost, TimePassed
from relaunch.core.lifecycle.refusal_waits import MACHINE_KEPT, Refusal, next_try, with_refusal
from relaunch.core.machines.machine import Consequence
from relaunch.core.offerings.capacity_memory import placement_scope
from unit.core.lifecycle.steps import ADMIT, after, chosen, decided
from unit.core.lifecycle.table_matrix import SITUATIONS, SOON, answered

DENIED = "AccessDeniedException: not authorized to perform: ecs:RunTask"
REFUSED = LaunchRefused(DENIED, may_heal=True)
NO_DEADLINE = make_definition(deadline=None)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def launching(*, machine_id: str = "", has_trained: bool = True) -> Job:
    """A job whose placement is pending, of a definition without a deadline."""
    pending = SITUATIONS["fz"]
    placement = replace(pending.current_attempt.placement, machine_id=machine_id, instance_id=machine_id and "i-1")
    attempt = replace(pending.current_attempt, placement=placement)
    return replace(
        pending,
        definition=NO_DEADLINE,
        attempt=attempt,
        totals=replace(pending.totals, first_started_at=NOW if has_trained else None),
    )


def tried_again(job: Job, at, machine_id: str = "") -> Job:
    """The job as its launch is tried again and refused again."""
    woken = after(replace(job, pending=()), TimePassed(), chosen(), now=at)
    if woken.state is not JobState.LAUNCHING:
        return woken
    placement = replace(woken.current_attempt.placement, machine_id=machine_id)
    woken = replace(woken, pending=(), machine_id="", attempt=replace(woken.current_attempt, placement=placement))
    return after(woken, answered(REFUSED, placement.number), now=at)


def refused_until_it_ends(job: Job, machine_id: str = "") -> tuple[Job, list[timedelta]]:
    """Refuse every try; return the job, and when it was tried, since the first refusal."""
    job, tries = after(job, answered(REFUSED), now=NOW), [timedelta(0)]
    while not job.state.is_final:
        at = job.wake_at
        tries.append(at - NOW)
        assert len(tries) < 2_000
        job = tried_again(job, at, machine_id)
    return job, tries


class TestTheRule:
    @pytest.mark.parametrize(
        ("waited", "probe"),
        [
            (MACHINE_KEPT, 15 * MINUTE),
            (15 * MINUTE, HOUR),
            (HOUR - MINUTE, HOUR),
            (HOUR, 4 * HOUR),
            (4 * HOUR, DAY),
            (DAY, 2 * DAY),
            (5 * DAY + HOUR, 6 * DAY),
        ],
    )
    def test_a_machine_is_bought_as_a_probe_after_a_quarter_of_an_hour_1_4_and_24_hours_then_daily(self, waited, probe):
        wait = next_try(Refusal(NOW, NOW + waited), has_trained=True, is_bought=True)

        assert (wait.until, wait.keeps_machine) == (NOW + probe, False)

    def test_a_machine_that_is_up_is_kept_for_ten_minutes_while_the_free_call_is_repeated(self):
        waits = [
            next_try(Refusal(NOW, NOW + waited * MINUTE), has_trained=False, is_bought=True)
            for waited in (0, 1, 2, 4, 8)
        ]

        assert [(each.until - NOW) / MINUTE for each in waits] == [1, 2, 4, 8, 10]
        assert all(each.keeps_machine for each in waits)

    def test_a_free_call_is_repeated_after_five_minutes_and_later_every_half_an_hour(self):
        waited = [0, 5, 10, 20, 40, 1000]
        waits = [next_try(Refusal(NOW, NOW + each * MINUTE), has_trained=True, is_bought=False) for each in waited]

        assert [(each.until - NOW) / MINUTE for each in waits] == [5, 10, 20, 40, 70, 1030]
        assert not any(each.keeps_machine for each in waits)

    @pytest.mark.parametrize("is_bought", [True, False])
    @pytest.mark.parametrize(("has_trained", "limit"), [(False, DAY), (True, 14 * DAY)])
    def test_who_never_trained_gives_up_after_a_day_and_who_has_after_two_weeks(self, has_trained, limit, is_bought):
        just_before = Refusal(NOW, NOW + limit - timedelta(seconds=1))

        assert next_try(just_before, has_trained=has_trained, is_bought=is_bought).until <= NOW + limit
        assert next_try(replace(just_before, at=NOW + limit), has_trained=has_trained, is_bought=is_bought) is None

    def test_time_behind_others_does_not_count(self):
        job = with_refusal(launching(has_trained=False), RefusedCall.LAUNCH, NOW)
        waits = replace(job.waits, queued_before_seconds=20 * 3_600.0)

        again = with_refusal(replace(job, waits=waits), RefusedCall.LAUNCH, NOW + 30 * HOUR)
        once_more = with_refusal(again, RefusedCall.LAUNCH, NOW + 31 * HOUR)

        for each in (again, once_more):
            assert each.refusals[RefusedCall.LAUNCH].since == NOW + 20 * HOUR


class TestARefusedLaunch:
    @pytest.mark.no_cover
    def test_a_job_that_has_trained_fails_after_two_weeks_and_no_sooner(self):
        job, tries = refused_until_it_ends(launching())

        assert (job.state, tries[-1]) == (JobState.FAILED, 14 * DAY)
        assert job.reason == (
            f"refused for 14 days: the cluster refuses the launch: {DENIED}; `relaunch retry {job.job_id}` resumes "
            f"from the newest checkpoint below s3://acme-checkpoints/resnet/{job.job_id}/"
        )

    def test_a_job_that_never_trained_fails_after_a_day_with_the_reason(self):
        job, tries = refused_until_it_ends(launching(has_trained=False))

        assert (job.state, tries[-1]) == (JobState.FAILED, DAY)
        assert DENIED in job.reason

    def test_machines_are_bought_by_the_schedule_only(self):
        job, tries = refused_until_it_ends(launching(machine_id="m-0"), "m-1")

        bought = [each for each in tries if each > MACHINE_KEPT]
        assert bought == [15 * MINUTE, HOUR, 4 * HOUR, *[number * DAY for number in range(1, 15)]]
        assert job.state is JobState.FAILED

    def test_the_machine_and_the_slot_are_kept_at_first_and_released_after_ten_minutes(self):
        kept = decided(launching(machine_id="m-0"), answered(REFUSED), now=NOW)

        assert (kept.job.state, kept.job.waiting.reason) == (JobState.WAITING, WaitReason.REFUSED)
        assert (kept.job.machine_id, kept.job.has_slot, kept.release_slot) == ("m-0", True, False)
        assert kept.job.pending == ()
        again = launching(machine_id="m-0")
        again = replace(again, refusals={RefusedCall.LAUNCH: Refusal(NOW, NOW)})
        released = decided(again, answered(REFUSED), now=NOW + MACHINE_KEPT)
        assert (released.job.machine_id, released.job.has_slot, released.release_slot) == ("", False, True)
        reason = f"the cluster refuses the launch: {DENIED}"
        at = NOW + MACHINE_KEPT
        told = RememberCapacity(placement_scope(again.revision.arn), reason, at, at, machine_id="m-0")
        assert released.job.pending == (ReleaseMachine("m-0", reason, is_unusable=False, is_unused=True), told, ADMIT)

    def test_a_launch_that_needs_no_machine_leaves_its_slot_to_others_at_once(self):
        decision = decided(launching(), answered(REFUSED))

        assert (decision.release_slot, decision.job.has_slot, decision.job.pending) == (True, False, (ADMIT,))

    def test_a_task_that_is_placed_ends_it(self):
        refused = after(launching(), answered(REFUSED), now=NOW)
        placed = after(refused, chosen(), answered(TaskPlaced("t-1"), 2), now=NOW + 5 * MINUTE)

        assert refused.refusals == {RefusedCall.LAUNCH: Refusal(NOW, NOW)}
        assert (placed.state, placed.refusals) == (JobState.LAUNCHING, {})

    def test_two_refusals_with_days_between_them_are_two(self):
        first = replace(launching(), refusals={RefusedCall.LAUNCH: Refusal(NOW, NOW)})
        later = NOW + 15 * DAY

        job = after(first, answered(REFUSED), now=later)

        assert (job.state, job.refusals) == (JobState.WAITING, {RefusedCall.LAUNCH: Refusal(later, later)})

    def test_each_refused_call_counts_for_itself(self):
        job = replace(launching(), refusals={RefusedCall.CHECKPOINT: Refusal(NOW - 13 * DAY, NOW - DAY)})

        assert after(job, answered(REFUSED), now=NOW + DAY).state is JobState.WAITING

    def test_what_the_request_itself_is_at_fault_for_ends_the_job_with_the_words(self):
        job = after(launching(), answered(LaunchRefused("ClientException: no such container")))

        assert (job.state, job.reason) == (
            JobState.FAILED,
            "the cluster refuses the launch: ClientException: no such container",
        )

    def test_who_is_cancelled_is_cancelled(self):
        assert after(SITUATIONS["fx"], answered(REFUSED)).state is JobState.CANCELLED

    def test_a_deadline_ends_the_wait(self):
        job = after(replace(launching(), definition=make_definition(deadline=HOUR)), answered(REFUSED), now=NOW)
        for _ in range(10):
            if job.state.is_final:
                break
            job = tried_again(job, job.wake_at)

        assert (job.state, job.ended_at) == (JobState.TIMED_OUT, NOW + HOUR)

    def test_the_budget_of_interruptions_does_not_pass_meanwhile(self):
        job = after(replace(launching(), totals=Totals(interruptions=1)), answered(REFUSED), now=NOW)

        assert after(job, TimePassed(), now=NOW + 9 * DAY).state is JobState.WAITING

    def test_one_that_an_earlier_release_kept_is_not_replaced_for_a_quarter_of_an_hour(self):
        kept = replace(SITUATIONS["wk"], machine_id="m-0", definition=NO_DEADLINE)

        job = after(kept, MachineLost("m-0", Consequence.NEXT, "EC2 will interrupt it"))

        assert (kept.refusals, job.waiting.until) == ({}, SOON + 15 * MINUTE)

    def test_a_kept_machine_that_is_lost_is_not_replaced_before_the_first_probe(self):
        kept = after(launching(machine_id="m-0"), answered(REFUSED), now=NOW)
        older = {RefusedCall.CHECKPOINT: Refusal(NOW - HOUR, NOW - HOUR)}
        kept = replace(kept, refusals={**kept.refusals, **older})

        job = after(kept, MachineLost("m-0", Consequence.NEXT, "EC2 will interrupt it"), now=NOW + MINUTE)

        assert (job.machine_id, job.has_slot, job.machines.useless_at) == ("", False, (NOW + MINUTE,))
        assert job.waiting == replace(kept.waiting, until=NOW + 15 * MINUTE)
        assert [type(each) for each in job.pending] == [ReleaseMachine, type(ADMIT)]


class TestOtherCalls:
    def test_a_derived_revision_that_may_not_be_registered_is_waited_for(self):
        waiting = after(SITUATIONS["wr"], LaunchNotGranted("registering trainer--1: AccessDenied"))
        with_machine = replace(SITUATIONS["wm"], definition=NO_DEADLINE)
        kept = after(with_machine, LaunchNotGranted("registering trainer--1: AccessDenied"))

        assert (waiting.state, waiting.waiting.reason) == (JobState.WAITING, WaitReason.REFUSED)
        assert (kept.machine_id, kept.has_slot) == ("m-1", True)

    @pytest.mark.no_cover
    def test_checkpoints_that_cannot_be_read_fail_the_job_after_the_same_times(self):
        for situation, limit in (("w0", DAY), ("wr", 14 * DAY)):
            job, now = replace(SITUATIONS[situation], definition=NO_DEADLINE), NOW
            while not job.state.is_final:
                job = after(replace(job, pending=()), CheckpointsUnreadable("kms:Decrypt"), now=now)
                now = job.wake_at or now
            assert (job.state, job.ended_at - NOW, "kms:Decrypt" in job.reason) == (JobState.FAILED, limit, True)

    def test_a_machine_that_is_up_when_checkpoints_become_unreadable_is_kept_for_a_while(self):
        job = replace(SITUATIONS["wm"], definition=NO_DEADLINE)

        kept = after(job, CheckpointsUnreadable("AccessDenied"), now=NOW)
        released = after(replace(kept, pending=()), CheckpointsUnreadable("AccessDenied"), now=NOW + MACHINE_KEPT)

        assert (kept.machine_id, kept.waiting.reason) == ("m-1", WaitReason.CHECKPOINT)
        assert (released.machine_id, released.has_slot) == ("", False)

    def test_an_item_of_the_previous_release_goes_on(self):
        old = replace(
            SITUATIONS["wk"],
            definition=NO_DEADLINE,
            totals=replace(SITUATIONS["wk"].totals, first_started_at=NOW - 20 * DAY),
        )

        job = after(old, CheckpointsUnreadable("AccessDenied"))

        assert (job.state, job.refusals) == (JobState.WAITING, {RefusedCall.CHECKPOINT: Refusal(SOON, SOON)})

    @pytest.mark.no_cover
    @pytest.mark.parametrize(("has_trained", "limit"), [(False, DAY), (True, 14 * DAY)])
    def test_a_request_of_a_machine_that_ec2_refuses_leaves_the_slot_and_gives_up_after_the_same_times(
        self, has_trained, limit
    ):
        first_started_at = NOW if has_trained else None
        job = replace(
            SITUATIONS["wm"],
            definition=NO_DEADLINE,
            totals=replace(SITUATIONS["wm"].totals, first_started_at=first_started_at),
        )
        refused, now, pauses = MachineLost("m-1", Consequence.PAUSE, "a permission is missing"), NOW, []
        while True:
            job = after(job, refused, now=now)
            if job.state.is_final:
                break
            assert (job.waiting.reason, job.has_slot, job.machine_id) == (WaitReason.REFUSED, False, "")
            pauses.append(job.wake_at - now)
            now = job.wake_at
            job = replace(job, machine_id="m-1", waiting=SITUATIONS["wm"].waiting, pending=())

        assert (job.state, job.machines.failed) == (JobState.FAILED, 0)
        assert limit <= now - NOW <= limit + 15 * MINUTE
        assert max(pauses) <= 15 * MINUTE
