"""A job in its concurrency group: how it enters it, when it leaves it, what it waits for, and when it holds it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_attempt, make_definition, make_job, make_running_job, make_timeline_entry
from relaunch.core.definitions.concurrency import Concurrency
from relaunch.core.jobs.effects import AdmitWaiting, RequestLaunch
from relaunch.core.jobs.groups import GroupChange, GroupPlace, GroupStanding
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState, Waiting, WaitReason
from relaunch.core.lifecycle.decision import LAUNCH_TIMEOUT, Decision, ignore
from relaunch.core.lifecycle.events import CancelAsked, SlotDenied
from relaunch.core.lifecycle.groups import (
    enter_group,
    jobs_to_wake,
    leaves_group,
    slot_of,
    waits_for_group,
    with_group,
    with_place,
)
from relaunch.core.lifecycle.table import decide
from relaunch.core.lifecycle.wait_explanation import explain_waiting

SECOND = timedelta(seconds=1)
CANCELS = make_definition(concurrency=Concurrency("{inputs.a}", cancel_in_progress=True))
WAITS = make_definition(concurrency=Concurrency("gpu"))
ENTRY = make_timeline_entry()
PLACE = GroupPlace("gpu", NOW)
HOLDS = replace(PLACE, is_holder=True)
JOB = make_job("resnet-2", definition=WAITS, group=PLACE)
REPLACED = "replaced by job resnet-3, the newest of its concurrency group gpu"


def newest(job_id: str = "resnet-3", *, cancels: bool = False, holder: str = "") -> GroupStanding:
    return GroupStanding(job_id, NOW, NOW, cancels, holder)


class TestPlace:
    def test_a_definition_without_groups_has_jobs_in_none(self):
        job = make_job()
        assert with_place(job, NOW) == job
        assert slot_of(job) == ""

    def test_a_job_whose_trigger_lacks_the_branch_is_in_none(self):
        job = make_job(definition=replace(WAITS, concurrency=Concurrency("{branch}")))
        assert with_place(job, NOW) == job

    def test_a_job_that_was_refused_is_in_none(self):
        job = make_job(definition=WAITS, state=JobState.FAILED)
        assert with_place(job, NOW) == job

    def test_a_job_gets_the_group_of_its_inputs_and_the_time_of_its_event(self):
        job = make_job(definition=CANCELS, inputs={"a": "small"})
        placed = with_place(job, NOW - 90.5 * SECOND)
        assert placed.group == GroupPlace("small", (NOW - 91 * SECOND).replace(microsecond=0))

    @pytest.mark.parametrize("seconds", [60, 61, 365 * 86_400])
    def test_nothing_is_newer_than_its_acceptance_as_far_as_clocks_tell(self, seconds):
        placed = with_place(make_job(definition=WAITS), NOW + seconds * SECOND)
        assert placed.group.event_at == (NOW + 60 * SECOND).replace(microsecond=0)

    def test_a_request_has_no_time_but_its_acceptance(self):
        assert with_place(make_job(definition=WAITS), None).group == GroupPlace("gpu")

    def test_the_name_in_the_table_is_of_one_definition(self):
        bert = replace(JOB, definition=replace(WAITS, name="bert"))
        upper = replace(JOB, group=replace(PLACE, name="GPU"))
        names = {slot_of(each) for each in (JOB, bert, upper, replace(JOB, job_id="resnet-9"))}
        assert len(names) == 3
        assert slot_of(JOB).startswith("resnet#")


class TestEntering:
    def test_the_first_one_is_the_newest_one_and_wakes_the_others(self):
        job, entries, standing = enter_group(JOB, [ENTRY], GroupStanding())
        assert job == replace(JOB, pending=(*JOB.pending, AdmitWaiting()))
        assert entries == (ENTRY,)
        assert standing == GroupStanding("resnet-2", NOW, NOW)

    def test_a_newer_one_comes_after_the_one_before_and_leaves_it_the_group(self):
        before = newest("resnet-1", holder="resnet-0")
        job, _, standing = enter_group(replace(JOB, definition=CANCELS, pending=(RequestLaunch(),)), [], before)
        assert job.group.after == "resnet-1"
        assert job.pending == (RequestLaunch(), AdmitWaiting())
        assert standing == GroupStanding("resnet-2", NOW, NOW, cancels=True, holder="resnet-0")

    def test_a_job_whose_definition_has_lost_its_group_cancels_none(self):
        _, _, standing = enter_group(replace(JOB, definition=make_definition()), [], GroupStanding())
        assert standing is not None
        assert not standing.cancels

    def test_an_older_one_ends_and_names_the_newer_one(self):
        waiting = replace(JOB, pending=(RequestLaunch(),))
        job, entries, standing = enter_group(waiting, [ENTRY], newest())
        assert standing is None
        assert job == replace(
            JOB,
            state=JobState.CANCELLED,
            reason=REPLACED,
            waiting=None,
            wake_at=None,
            ended_at=NOW,
        )
        assert [(each.event, each.detail) for each in entries[1:]] == [("cancelled", REPLACED)]
        assert entries[-1].state is JobState.CANCELLED

    @pytest.mark.parametrize(
        ("event", "accepted", "job_id", "is_late"),
        [
            (-1, 1, "resnet-4", True),
            (1, -1, "resnet-2", False),
            (0, -1, "resnet-4", True),
            (0, 1, "resnet-2", False),
            (0, 0, "resnet-2", True),
            (0, 0, "resnet-4", False),
        ],
    )
    def test_jobs_are_ordered_by_event_then_acceptance_then_id(self, event, accepted, job_id, is_late):
        times = {"event_at": NOW + event * SECOND, "accepted_at": NOW + accepted * SECOND}
        assert newest().is_newer_than(**times, job_id=job_id) is is_late
        job = replace(JOB, job_id=job_id, accepted_at=times["accepted_at"])
        job = replace(job, group=replace(PLACE, event_at=times["event_at"]))
        assert (enter_group(job, [], newest())[2] is None) is is_late

    @pytest.mark.parametrize("seconds", [-5, 0, 5])
    def test_a_request_is_newer_than_what_was_accepted_before_whatever_clocks_say(self, seconds):
        accepted_at = NOW + seconds * SECOND
        asked = replace(JOB, group=GroupPlace("gpu"), accepted_at=accepted_at)
        job, _, standing = enter_group(asked, [], newest())
        at = max(NOW, accepted_at.replace(microsecond=0))
        assert job.group == GroupPlace("gpu", at, "resnet-3")
        assert standing == GroupStanding("resnet-2", at, accepted_at)

    def test_the_first_request_goes_by_its_acceptance(self):
        accepted_at = NOW + 0.5 * SECOND
        asked = replace(JOB, group=GroupPlace("gpu"), accepted_at=accepted_at)
        job, _, standing = enter_group(asked, [], GroupStanding())
        assert job.group.event_at == NOW
        assert standing == GroupStanding("resnet-2", NOW, accepted_at)

    @pytest.mark.parametrize("lacks", ["event_at", "accepted_at"])
    def test_what_has_no_time_is_newer_than_nothing(self, lacks):
        assert not replace(newest(), **{lacks: None}).is_newer_than(NOW - SECOND, NOW, "")


class TestLeaving:
    @pytest.mark.parametrize("standing", [GroupStanding(), newest("resnet-2"), newest("resnet-2", cancels=True)])
    def test_the_newest_one_stays(self, standing):
        assert leaves_group(JOB, standing) is None

    @pytest.mark.parametrize("cancels", [False, True])
    def test_one_that_waits_leaves_for_a_newer_one(self, cancels):
        assert leaves_group(JOB, newest(cancels=cancels)) == CancelAsked(REPLACED)

    def test_the_one_in_progress_leaves_if_the_newest_one_cancels(self):
        held = replace(JOB, group=HOLDS, attempt=make_attempt())
        assert leaves_group(held, newest()) is None
        assert leaves_group(held, newest(cancels=True)) == CancelAsked(REPLACED)

    @pytest.mark.parametrize("fields", [{"cancel_requested": "not needed"}, {"state": JobState.SUCCEEDED}])
    def test_who_leaves_already_is_not_cancelled_again(self, fields):
        assert leaves_group(replace(JOB, **fields), newest(cancels=True)) is None

    @pytest.mark.parametrize("holder", ["", "resnet-2"])
    def test_a_group_that_nobody_else_holds_is_not_waited_for(self, holder):
        assert waits_for_group(JOB, newest(holder=holder)) is None

    def test_a_group_that_another_one_holds_is_waited_for(self):
        assert waits_for_group(JOB, newest(holder="resnet-1")) == SlotDenied(slot_of(JOB), 1, "resnet-1")

    @pytest.mark.parametrize("place", [PLACE, HOLDS])
    def test_who_was_launched_does_not_wait_for_it(self, place):
        launched = replace(JOB, group=place, attempt=make_attempt())
        assert waits_for_group(launched, newest(holder="resnet-1")) is None

    def test_the_others_look_at_the_group(self):
        job = replace(JOB, group=replace(PLACE, after="resnet-1"))
        assert jobs_to_wake(job, newest("resnet-2", holder="resnet-0")) == ("resnet-0", "resnet-1")
        assert jobs_to_wake(job, newest(holder="resnet-1")) == ("resnet-1", "resnet-3")
        assert jobs_to_wake(JOB, GroupStanding()) == ()


class TestHolding:
    def launching(self, **fields: object) -> Decision:
        return Decision(replace(JOB, state=JobState.LAUNCHING, attempt=make_attempt(), **fields))

    def test_the_first_placement_takes_the_group(self):
        decision = with_group(JOB, None, self.launching(), NOW)
        assert decision.group_change is GroupChange.TAKE
        assert decision.job.group == HOLDS

    def test_later_ones_do_not(self):
        held = replace(JOB, group=HOLDS, attempt=make_attempt())
        decision = self.launching(group=HOLDS)
        assert with_group(held, None, decision, NOW) == decision

    def test_a_job_in_no_group_takes_none(self):
        decision = self.launching(group=GroupPlace())
        assert with_group(replace(JOB, group=GroupPlace()), None, decision, NOW) == decision

    def test_a_job_that_an_earlier_release_launched_never_holds_it(self):
        launched = replace(JOB, attempt=make_attempt())
        assert with_group(launched, None, self.launching(), NOW) == self.launching()

    def test_what_is_ignored_changes_nothing(self):
        decision = ignore(replace(JOB, attempt=make_attempt()), "nothing")
        assert with_group(JOB, None, decision, NOW) == decision

    def test_the_end_releases_it_and_wakes_the_newest_one(self):
        held = replace(JOB, group=HOLDS, attempt=make_attempt())
        ended = Decision(replace(held, state=JobState.CANCELLED, wake_at=None))
        decision = with_group(held, None, ended, NOW)
        assert decision.group_change is GroupChange.RELEASE
        assert decision.job.group == PLACE
        assert decision.job.pending == (AdmitWaiting(),)
        assert decision.job.wake_at == NOW + LAUNCH_TIMEOUT

    def test_the_end_wakes_once(self):
        held = replace(JOB, group=HOLDS, attempt=make_attempt())
        ended = replace(held, state=JobState.CANCELLED, wake_at=NOW, pending=(AdmitWaiting(),))
        decision = with_group(held, None, Decision(ended), NOW)
        assert decision.job.pending == (AdmitWaiting(),)
        assert decision.job.wake_at == NOW

    def test_a_job_that_waits_for_capacity_and_is_cancelled_releases_it(self):
        waiting = Waiting(WaitReason.CAPACITY, NOW, "nothing is there")
        held = replace(JOB, group=HOLDS, attempt=make_attempt(), waiting=waiting)
        decision = decide(held, CancelAsked("not needed"), NOW, StackLimits())
        assert decision.group_change is GroupChange.RELEASE
        assert decision.job.pending == (AdmitWaiting(),)

    def test_a_job_that_runs_keeps_it(self):
        running = make_running_job(definition=WAITS, group=HOLDS)
        decision = decide(running, CancelAsked("not needed"), NOW, StackLimits())
        assert decision.group_change is None
        assert decision.job.group == HOLDS


class TestWaiting:
    def denied(self, slot: str = "") -> Decision:
        waiting = Waiting(WaitReason.SLOT if slot else WaitReason.LAUNCH, NOW, "", slot=slot)
        event = SlotDenied(slot_of(JOB), 1, holder="resnet-1")
        return decide(replace(JOB, waiting=waiting), event, NOW, StackLimits())

    def test_who_holds_the_group_is_said(self):
        waiting = self.denied().job.waiting
        assert waiting is not None
        assert (waiting.reason, waiting.slot) == (WaitReason.SLOT, slot_of(JOB))
        assert waiting.detail == "job resnet-1 of its concurrency group gpu has not ended"

    @pytest.mark.parametrize(("slot", "admits"), [("", False), ("resnet", True), ("*", True), (slot_of(JOB), False)])
    def test_a_slot_that_it_was_admitted_to_is_for_the_next_one(self, slot, admits):
        assert (AdmitWaiting() in self.denied(slot).job.pending) is admits

    def test_it_is_explained(self):
        job = self.denied().job
        explanation = explain_waiting(job, NOW)
        assert explanation.waiting_for.startswith("its concurrency group: job resnet-1 of")
        assert explanation.next_at == job.wake_at
        assert "concurrency.cancel_in_progress" in explanation.advice[0]

    def test_a_slot_of_the_definition_is_explained_as_before(self):
        job = replace(JOB, waiting=Waiting(WaitReason.SLOT, NOW, "full", slot="resnet"))
        assert explain_waiting(job, NOW).waiting_for == "a free slot: full"
