"""From events and what a receiver knows: what it is sent, never backwards."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from fakes.builders import NOW
from fakes.notices import make_event
from relaunch.core.definitions.notice_routes import NoticeKind
from relaunch.core.jobs.changes import ChangedPart
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.change_events import EventProgress, JobStateChange
from relaunch.core.notices.decision import KEPT, WINDOW, Decision, GiveUp, Later, Send, after, decide
from relaunch.core.notices.notice import Interruption, Notice, Subscription
from relaunch.core.notices.record import MAX_INTERRUPTIONS, NoticeRecord

ALL = Subscription(name="all", kinds=frozenset(NoticeKind))
DEFAULT = Subscription(name="team")
STATES = Subscription(name="status", wants_states=True)
EMPTY = NoticeRecord()
LATER = NOW + timedelta(minutes=10)


def started(sequence: int = 3, attempt: int = 1) -> JobStateChange:
    return make_event(sequence, state=JobState.RUNNING, state_before=JobState.LAUNCHING, attempt=attempt)


def interrupted(sequence: int) -> JobStateChange:
    return make_event(sequence, state=JobState.WAITING, state_before=JobState.STOPPING, attempt=1)


def ended(sequence: int, state: JobState = JobState.SUCCEEDED) -> JobStateChange:
    return make_event(sequence, state=state, state_before=JobState.RUNNING, attempt=1)


def progressed(sequence: int, stalled_since: datetime | None) -> JobStateChange:
    return make_event(
        sequence,
        state=JobState.RUNNING,
        state_before=JobState.RUNNING,
        changed=(ChangedPart.PROGRESS,),
        progress=EventProgress(step=100, saved_step=200, saved_at=NOW, stalled_since=stalled_since),
    )


def sent(decision: Decision) -> NoticeKind | None:
    assert isinstance(decision.step, Send)
    return decision.step.notice.kind


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (started(), NoticeKind.STARTED),
        (interrupted(4), NoticeKind.INTERRUPTED),
        (ended(4), NoticeKind.FINISHED),
        (ended(4, JobState.CANCELLED), NoticeKind.FINISHED),
        (ended(4, JobState.FAILED), NoticeKind.FAILED),
        (ended(4, JobState.TIMED_OUT), NoticeKind.FAILED),
        (progressed(4, NOW), NoticeKind.STALE_CHECKPOINT),
    ],
)
def test_each_kind_is_sent(event: JobStateChange, kind: NoticeKind) -> None:
    assert sent(decide(event, ALL, EMPTY, LATER)) is kind


def test_what_is_no_new_state_is_no_notice() -> None:
    event = make_event(5, state=JobState.RUNNING, state_before=JobState.RUNNING, changed=(ChangedPart.WARNING,))

    assert decide(event, DEFAULT, EMPTY, LATER).step is None
    assert decide(progressed(5, None), ALL, EMPTY, LATER).step is None
    assert decide(progressed(5, NOW), DEFAULT, EMPTY, LATER).step is None


def test_a_receiver_gets_the_kinds_that_it_wants_alone() -> None:
    decision = decide(started(), DEFAULT, EMPTY, LATER)

    assert decision.step is None
    assert decision.record.noted == 0


def test_an_event_that_comes_again_or_late_is_nothing() -> None:
    first = decide(ended(5), ALL, EMPTY, LATER)
    assert isinstance(first.step, Send)
    record = after(first.step.notice, first.record.claimed(LATER), LATER, "1.2")

    assert record == replace(first.record, said=5, thread="1.2")
    assert decide(ended(5), ALL, record, LATER).step is None
    assert decide(started(3), ALL, record, LATER).step is None


@pytest.mark.parametrize(
    ("event", "said_between_at"),
    [
        (started(), None),
        (make_event(3, state=JobState.RUNNING, state_before=JobState.LAUNCHING), None),
        (started(attempt=2), LATER),
        (interrupted(3), LATER),
        (make_event(3, state=JobState.SUCCEEDED, state_before=JobState.RUNNING, attempt=2), None),
    ],
    ids=["started", "started, of an unknown attempt", "runs again", "interrupted", "ended"],
)
def test_a_window_begins_with_what_comes_between_the_first_start_and_the_end(
    event: JobStateChange, said_between_at: datetime | None
) -> None:
    first = decide(event, ALL, EMPTY, LATER)
    assert isinstance(first.step, Send)

    assert after(first.step.notice, first.record, LATER).said_between_at == said_between_at


def test_what_waits_to_be_sent_gives_way_to_what_is_newer() -> None:
    noted = decide(ended(5), ALL, EMPTY, LATER).record

    assert decide(started(3), ALL, noted, LATER).step is None


def test_interruptions_within_a_window_are_one_text_with_their_number() -> None:
    first = decide(interrupted(4), DEFAULT, EMPTY, LATER)
    assert isinstance(first.step, Send)
    assert [each.sequence for each in first.step.notice.interruptions] == [4]
    record = after(first.step.notice, first.record, LATER)

    held = decide(interrupted(8), DEFAULT, record, LATER)
    assert held.step == Later(LATER + WINDOW)
    held = decide(interrupted(12), DEFAULT, held.record, LATER)
    assert decide(interrupted(8), DEFAULT, held.record, LATER + WINDOW).step != Later(LATER + WINDOW)
    due = decide(interrupted(12), DEFAULT, held.record, LATER + WINDOW)

    assert isinstance(due.step, Send)
    assert [each.sequence for each in due.step.notice.interruptions] == [8, 12]
    assert due.step.notice.all_interruptions == 3


def test_running_again_is_held_back_like_an_interruption_and_the_end_is_not() -> None:
    first = decide(interrupted(4), ALL, EMPTY, LATER)
    assert isinstance(first.step, Send)
    record = after(first.step.notice, first.record, LATER)

    assert decide(started(6, attempt=2), ALL, record, LATER).step == Later(LATER + WINDOW)
    assert sent(decide(ended(7), ALL, record, LATER)) is NoticeKind.FINISHED


def test_the_end_says_how_often_the_job_was_interrupted_though_nothing_of_it_was_sent() -> None:
    record = decide(interrupted(4), DEFAULT, EMPTY, LATER).record
    record = decide(interrupted(8), DEFAULT, record, LATER).record
    end = decide(ended(9), DEFAULT, record, LATER)

    both = tuple(Interruption(each.sequence, each.time) for each in (interrupted(4), interrupted(8)))
    event = ended(9)
    assert end.step == Send(
        Notice(
            kind=NoticeKind.FINISHED,
            event=event,
            interruptions=both,
            all_interruptions=2,
            reason="reason 9",
            first_at=both[0].at,
        )
    )


def test_an_interruption_that_comes_late_and_twice_is_counted_once() -> None:
    record = decide(ended(9), DEFAULT, EMPTY, LATER).record
    for _ in range(2):
        record = decide(interrupted(4), DEFAULT, record, LATER).record

    assert record.interruptions == (Interruption(4, interrupted(4).time),)


def test_of_very_many_interruptions_the_latest_are_counted() -> None:
    record = EMPTY
    for sequence in range(1, MAX_INTERRUPTIONS + 5):
        record = record.with_interruption(Interruption(sequence, NOW))

    assert len(record.interruptions) == MAX_INTERRUPTIONS
    assert record.interruptions[-1].sequence == MAX_INTERRUPTIONS + 4


def test_a_notice_is_given_up_after_a_day() -> None:
    event = ended(5)
    noted = decide(event, ALL, EMPTY, LATER).record

    assert isinstance(decide(event, ALL, noted, LATER + KEPT).step, Send)
    decision = decide(event, ALL, noted, LATER + KEPT + timedelta(seconds=1))
    assert isinstance(decision.step, GiveUp)
    assert decide(event, ALL, after(decision.step.notice, decision.record, LATER), LATER).step is None


def test_one_whose_event_was_on_its_way_for_a_day_is_tried_nevertheless() -> None:
    assert isinstance(decide(ended(5), ALL, EMPTY, LATER + 2 * KEPT).step, Send)


def test_while_one_function_delivers_no_other_one_does() -> None:
    record = EMPTY.claimed(LATER)
    assert record.claimed_until is not None

    assert decide(ended(5), ALL, record, LATER).step == Later(record.claimed_until)
    assert isinstance(decide(ended(5), ALL, record, record.claimed_until).step, Send)
    assert isinstance(decide(ended(5), ALL, record.released(), LATER).step, Send)


class TestWaits:
    def test_a_job_that_does_not_run_for_an_hour_waits_too_long(self) -> None:
        created = make_event(1)
        due = created.time + DEFAULT.waits_after

        early = decide(created, DEFAULT, EMPTY, created.time)
        assert early.step == Later(due)
        why = make_event(2, reason="no capacity", changed=(ChangedPart.WAITING_FOR,), state_before=JobState.WAITING)
        record = decide(why, DEFAULT, early.record, why.time).record
        decision = decide(created, DEFAULT, record, due)

        kind = NoticeKind.WAITS_TOO_LONG
        too_long = Notice(kind=kind, event=created, reason="no capacity", first_at=created.time)
        assert decision.step == decide(created, DEFAULT, record, due + KEPT).step == Send(too_long)
        assert decide(created, DEFAULT, record, due + KEPT + timedelta(seconds=1)).step == GiveUp(too_long)
        said = after(too_long, decision.record.claimed(due), due, "1.2")
        assert said == replace(decision.record, wait_said=1, thread="1.2")
        assert decide(created, DEFAULT, said, due).step is None
        assert sent(decide(ended(5), DEFAULT, said, due)) is NoticeKind.FINISHED

    def test_one_that_ran_meanwhile_does_not(self) -> None:
        created = make_event(1)
        record = decide(created, DEFAULT, EMPTY, created.time).record
        record = decide(started(3), DEFAULT, record, LATER).record

        assert decide(created, DEFAULT, record, created.time + DEFAULT.waits_after).step is None

    def test_the_reason_is_that_of_the_event_if_none_is_known(self) -> None:
        event = interrupted(8)
        record = replace(EMPTY, noted=8, said=8)
        decision = decide(event, DEFAULT, replace(record, wait_sequence=9), event.time + DEFAULT.waits_after)

        assert isinstance(decision.step, Send)
        assert decision.step.notice.reason == event.reason

    def test_one_that_was_interrupted_is_said_to_be_and_later_to_wait_too_long(self) -> None:
        event = interrupted(8)
        first = decide(event, DEFAULT, EMPTY, event.time)
        assert isinstance(first.step, Send)
        record = after(first.step.notice, first.record, event.time)

        assert record.settled == 7, "it ran before"
        assert decide(event, DEFAULT, record, event.time).step == Later(event.time + DEFAULT.waits_after)

    def test_one_whose_launch_was_refused_has_waited_since_it_was_created(self) -> None:
        refused = make_event(4, state_before=JobState.LAUNCHING)

        assert decide(refused, DEFAULT, EMPTY, refused.time + 2 * DEFAULT.waits_after).step is None

    def test_a_receiver_that_does_not_want_it_does_not_get_it(self) -> None:
        without = replace(DEFAULT, kinds=frozenset({NoticeKind.FAILED}))

        assert decide(make_event(1), without, EMPTY, LATER + timedelta(hours=2)) == Decision(EMPTY, None)

    def test_a_job_that_is_refused_at_once_does_not_wait(self) -> None:
        refused = make_event(1, state=JobState.FAILED)

        assert sent(decide(refused, DEFAULT, EMPTY, LATER)) is NoticeKind.FAILED


class TestStates:
    @pytest.mark.parametrize("event", [make_event(1), started(), interrupted(4), ended(5)])
    def test_each_new_state_is_sent_at_once(self, event: JobStateChange) -> None:
        decision = decide(event, STATES, replace(EMPTY, said_between_at=LATER), LATER)

        assert isinstance(decision.step, Send)
        assert decision.step.notice.kind is None
        assert decision.step.notice.notice_id == f"{event.id}:state"

    def test_the_latest_alone(self) -> None:
        record = decide(ended(5), STATES, EMPTY, LATER).record

        assert decide(started(3), STATES, record, LATER).step is None
        assert record.settled == 0

    def test_what_a_job_waits_for_is_one(self) -> None:
        event = make_event(2, changed=(ChangedPart.WAITING_FOR,), state_before=JobState.WAITING)

        assert isinstance(decide(event, STATES, EMPTY, LATER).step, Send)
