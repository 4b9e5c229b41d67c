from datetime import timedelta

from fakes.builders import NOW
from relaunch.core.jobs.changes import (
    FIRST_RESEND,
    KEPT_UNSENT,
    LONGEST_RESEND,
    MAX_UNSENT,
    MAX_UNSENT_CHARACTERS,
    ChangedPart,
    JobChange,
    Outbox,
    cut,
)
from relaunch.core.jobs.state import JobState

MINUTE = timedelta(minutes=1)


def change(sequence: int, reason: str = "", after: timedelta = timedelta(0)) -> JobChange:
    return JobChange(sequence, NOW + after, JobState.RUNNING, JobState.LAUNCHING, (ChangedPart.STATE,), reason)


def outbox_of(count: int, reason: str = "") -> Outbox:
    outbox = Outbox()
    for number in range(1, count + 1):
        outbox = outbox.with_change(change(number, reason))
    return outbox


def numbers(outbox: Outbox) -> list[int]:
    return [each.sequence for each in outbox.unsent]


def test_a_change_is_sent_again_after_a_minute_if_nobody_does_before() -> None:
    outbox = Outbox().with_change(change(1))
    later = outbox.with_change(change(2, after=30 * MINUTE))

    assert outbox.resend_at == later.resend_at == NOW + FIRST_RESEND
    assert (later.sequence, numbers(later)) == (2, [1, 2])


def test_the_oldest_of_too_many_changes_are_given_up() -> None:
    outbox = outbox_of(MAX_UNSENT + 2)

    assert (outbox.sequence, numbers(outbox)) == (MAX_UNSENT + 2, list(range(3, MAX_UNSENT + 3)))


def test_long_reasons_leave_room_in_the_item_of_the_job() -> None:
    outbox = outbox_of(MAX_UNSENT, "r" * 1_000)

    assert sum(len(each.reason) for each in outbox.unsent) <= MAX_UNSENT_CHARACTERS
    assert numbers(outbox)[-1] == MAX_UNSENT


def test_what_was_taken_is_sent_no_more_and_the_rest_keeps_its_order() -> None:
    assert numbers(outbox_of(4).without(frozenset({1, 3}))) == [2, 4]
    assert outbox_of(2).without(frozenset({1, 2})) == Outbox(2)


def test_each_try_waits_as_long_again_as_the_oldest_change_has_waited() -> None:
    outbox = outbox_of(2)

    assert outbox.postponed(NOW + MINUTE / 2) is outbox
    assert outbox.postponed(NOW + MINUTE).resend_at == NOW + 2 * MINUTE
    assert outbox.postponed(NOW + 8 * MINUTE).resend_at == NOW + 16 * MINUTE
    late = NOW + timedelta(hours=9)
    assert outbox.postponed(late).resend_at == late + LONGEST_RESEND
    assert Outbox(3).postponed(late) == Outbox(3)


def test_a_change_that_has_waited_for_a_day_is_too_old() -> None:
    outbox = Outbox().with_change(change(1)).with_change(change(2, after=MINUTE))

    assert outbox.too_old(NOW + KEPT_UNSENT) == frozenset()
    assert outbox.too_old(NOW + KEPT_UNSENT + MINUTE) == frozenset({1})


def test_a_text_is_cut_to_its_limit() -> None:
    assert (cut("abc", 3), cut("abcd", 3)) == ("abc", "ab…")
