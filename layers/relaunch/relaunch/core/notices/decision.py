"""From an event of a job and what a receiver knows of it: nothing, a notice, or another look later.

An event is looked at until it is settled. Only the newest one that a receiver wants is sent, so that a receiver that
was down gets the end of a job, and what came between as a number in it.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.definitions.notice_routes import NoticeKind
from relaunch.core.jobs.changes import ChangedPart, cut
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.change_events import JobStateChange
from relaunch.core.notices.notice import Interruption, Notice, Subscription
from relaunch.core.notices.record import NoticeRecord
from relaunch.core.records import dataclass

KEPT = timedelta(hours=24)
"""For how long a notice is tried, then it is given up."""
WINDOW = timedelta(minutes=15)
"""How often a receiver hears at most of one job that it was interrupted, or runs again."""
_MAX_REASON = 300
_RAN = frozenset({JobState.RUNNING, JobState.STOPPING})
_FAILED = frozenset({JobState.FAILED, JobState.TIMED_OUT})


@dataclass(frozen=True, slots=True)
class Send:
    """Deliver a notice now."""

    notice: Notice


@dataclass(frozen=True, slots=True)
class Later:
    """Decide again at this time."""

    at: datetime


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The notice was tried for too long."""

    notice: Notice


@dataclass(frozen=True, slots=True)
class Decision:
    """The record to save if it is another one, and what to do; None: the event is settled."""

    record: NoticeRecord
    step: Send | Later | GiveUp | None


def kind_of(event: JobStateChange) -> NoticeKind | None:
    """Return the kind of notice that an event is by itself, None if it is none."""
    if ChangedPart.STATE not in event.changed:
        has_stalled = event.progress is not None and event.progress.stalled_since is not None
        return NoticeKind.STALE_CHECKPOINT if has_stalled and ChangedPart.PROGRESS in event.changed else None
    if event.state.is_final:
        return NoticeKind.FAILED if event.state in _FAILED else NoticeKind.FINISHED
    if event.state is JobState.RUNNING:
        return NoticeKind.STARTED
    return NoticeKind.INTERRUPTED if _ceased_to_run(event) else None


def is_wanted(event: JobStateChange, subscription: Subscription) -> bool:
    """Return whether a receiver wants an event by itself, apart from how long the job waits after it."""
    return subscription.wants_states or kind_of(event) in subscription.kinds


def decide(event: JobStateChange, subscription: Subscription, record: NoticeRecord, now: datetime) -> Decision:
    """Return what to do about an event for a receiver; it is pure, and may be asked as often as one likes."""
    noted = _note(event, subscription, record, now)
    if noted != record:
        noted = replace(noted, first_at=min(record.first_at or event.time, event.time))
    step = _of_itself(event, subscription, noted, now)
    return Decision(noted, step or _of_its_wait(event, subscription, noted, now))


def after(notice: Notice, record: NoticeRecord, now: datetime, thread: str = "") -> NoticeRecord:
    """Return the record after a notice was delivered, refused or given up; an empty thread leaves the former one."""
    thread = thread or record.thread
    sequence = notice.event.sequence
    if notice.kind is NoticeKind.WAITS_TOO_LONG:
        return replace(record, wait_said=max(record.wait_said, sequence), thread=thread, claimed_until=None)
    between = now if _is_between(notice.kind, notice.event) else record.said_between_at
    said = max(record.said, sequence)
    return replace(record, said=said, said_between_at=between, thread=thread, claimed_until=None)


def _note(event: JobStateChange, subscription: Subscription, record: NoticeRecord, now: datetime) -> NoticeRecord:
    sequence = event.sequence
    if is_wanted(event, subscription) and sequence > record.noted:
        record = replace(record, noted=sequence, noted_at=now)
    if subscription.wants_states:
        return record
    if kind_of(event) is NoticeKind.INTERRUPTED:
        record = record.with_interruption(Interruption(sequence, event.time))
    if NoticeKind.WAITS_TOO_LONG not in subscription.kinds:
        return record
    if event.state in _RAN or event.state.is_final:
        return replace(record, settled=max(record.settled, sequence))
    if _ceased_to_run(event):
        # It ran before, also where the event that says so is still on its way.
        record = replace(record, settled=max(record.settled, sequence - 1))
    if sequence > record.wait_sequence:
        return replace(record, wait_sequence=sequence, wait_reason=cut(event.reason, _MAX_REASON))
    return record


def _of_itself(
    event: JobStateChange, subscription: Subscription, record: NoticeRecord, now: datetime
) -> Send | Later | GiveUp | None:
    if not is_wanted(event, subscription) or not record.said < event.sequence == record.noted:
        return None
    kind = None if subscription.wants_states else kind_of(event)
    notice = Notice(
        kind=kind,
        event=event,
        interruptions=record.unsaid,
        all_interruptions=len(record.interruptions),
        reason=event.reason,
        first_at=record.first_at,
    )
    held_until = now
    if _is_between(kind, event) and record.said_between_at is not None:
        held_until = record.said_between_at + WINDOW
    return _when(notice, record, held_until, now)


def _of_its_wait(
    event: JobStateChange, subscription: Subscription, record: NoticeRecord, now: datetime
) -> Send | Later | GiveUp | None:
    if subscription.wants_states or NoticeKind.WAITS_TOO_LONG not in subscription.kinds or not _begins_wait(event):
        return None
    if max(record.settled, record.wait_said) >= event.sequence:
        return None
    notice = Notice(
        kind=NoticeKind.WAITS_TOO_LONG,
        event=event,
        all_interruptions=len(record.interruptions),
        reason=record.wait_reason or event.reason,
        first_at=record.first_at,
    )
    return _when(notice, record, event.time + subscription.waits_after, now)


def _when(notice: Notice, record: NoticeRecord, due: datetime, now: datetime) -> Send | Later | GiveUp:
    """Return a notice when it is due and nobody else delivers one of this job to this receiver."""
    claimed_until = record.claimed_until or now
    if now < max(due, claimed_until):
        return Later(max(due, claimed_until))
    tried_since = due if notice.kind is NoticeKind.WAITS_TOO_LONG else (record.noted_at or now)
    return GiveUp(notice) if now - tried_since > KEPT else Send(notice)


def _is_between(kind: NoticeKind | None, event: JobStateChange) -> bool:
    is_again = kind is NoticeKind.STARTED and (event.attempt or 1) > 1
    return is_again or kind is NoticeKind.INTERRUPTED


def _ceased_to_run(event: JobStateChange) -> bool:
    return event.state_before in _RAN and event.state in (JobState.WAITING, JobState.LAUNCHING)


def _begins_wait(event: JobStateChange) -> bool:
    is_new = event.state_before is None and not event.state.is_final
    return ChangedPart.STATE in event.changed and (is_new or _ceased_to_run(event))
