"""Send what an event of a job is worth saying to the receivers that want it.

Each receiver has a record of the job. It is saved before a delivery, with a claim, so that two functions do not deliver
to one receiver of one job at the same time, and after it. A notice is delivered twice only where the answer of a
receiver or the second save was lost, or the function died between: its identity is the same then.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import ceil
from typing import assert_never

from relaunch.core.lifecycle.change_events import JobStateChange
from relaunch.core.lifecycle.metrics import Metric, MetricDatum
from relaunch.core.notices.decision import GiveUp, Later, Send, after, decide
from relaunch.core.notices.notice import Notice
from relaunch.core.notices.pauses import may_alert, next_pause_end
from relaunch.core.notices.record import NoticeRecord
from relaunch.ports import NoticeDependencies, NotYetError, StaleWriteError, TransientError
from relaunch.ports.notices import (
    Delivered,
    Held,
    NoticeReceiver,
    Outcome,
    Postponed,
    ReceiverPause,
    Refused,
    StoredRecord,
)

# Others save the record of one job and receiver at the same time only while its events come together.
_MOST_LOADS = 5
_AFTER_CONFLICTS = timedelta(seconds=5)
# One event may be worth two notices: the training was interrupted, and waits too long since then.
_MOST_STEPS = 4
_MAX_REASON = 300


def send_notices(event: JobStateChange, deps: NoticeDependencies) -> None:
    """Send what is to be said about an event now.

    A receiver that takes nothing holds up no other one: each has its own turn, and after a failure a pause.

    Raises:
        NotYetError: there is something to say about the event later.
        TransientError: what was said could not be read or saved; nothing of it is said twice for that, but for a notice
            that was just delivered.
    """
    later: list[datetime] = []
    failures: list[TransientError] = []
    receivers = deps.receivers.receivers_for(event)
    if not receivers:
        deps.log.decided("no receivers", job_id=event.job_id, sequence=event.sequence)
    for receiver in receivers:
        try:
            at = _Turn(receiver, event, deps).take()
        except TransientError as error:
            failures.append(error)
            continue
        if at is not None:
            later.append(at)
    if failures:
        raise failures[0]
    if later:
        raise NotYetError(_seconds_until(later, deps.clock.now()))


def _seconds_until(times: Sequence[datetime], now: datetime) -> int:
    return max(ceil((min(times) - now).total_seconds()), 1)


class _Turn:
    """What one receiver is sent of one event."""

    def __init__(self, receiver: NoticeReceiver, event: JobStateChange, deps: NoticeDependencies) -> None:
        self._receiver = receiver
        self._name = receiver.subscription.name
        self._event = event
        self._deps = deps

    def take(self) -> datetime | None:
        """Say what is to be said; return when to look at the event again, None if it is settled."""
        for _ in range(_MOST_STEPS):
            try:
                is_over, at = self._step()
            except StaleWriteError:
                continue
            if is_over:
                return at
        return self._deps.clock.now() + _AFTER_CONFLICTS

    def _step(self) -> tuple[bool, datetime | None]:
        """Do the next step; return whether it was the last one, and when to look again."""
        now = self._deps.clock.now()
        stored = self._deps.notice_records.load_record(self._event.job_id, self._name)
        decision = decide(self._event, self._receiver.subscription, stored.record, now)
        step = decision.step
        match step:
            case None:
                self._save_if_new(stored, decision.record)
                return True, None
            case Later(at):
                self._save_if_new(stored, decision.record)
                return True, at
            case GiveUp(notice):
                self._save(replace(stored, record=after(notice, decision.record, now)))
                self._say_given_up(notice, "tried for 24 hours")
                return False, None
            case Send(notice):
                return self._send(notice, stored, decision.record)
            case _:
                assert_never(step)

    def _send(self, notice: Notice, stored: StoredRecord, record: NoticeRecord) -> tuple[bool, datetime | None]:
        now = self._deps.clock.now()
        pause = self._deps.notice_records.load_pause(self._name)
        if pause is not None and now < pause.until:
            self._save_if_new(stored, record)
            return True, pause.until
        self._save(replace(stored, record=record.claimed(now)))
        outcome = self._deliver(notice, record.thread)
        match outcome:
            case Delivered(thread):
                self._keep(notice, thread)
                self._end_pause(pause)
                self._deps.log.decided("notice sent", **self._facts(notice))
                return False, None
            case Refused(reason, is_known):
                self._keep(notice, "")
                self._say_given_up(notice, reason, is_known=is_known)
                return False, None
            case Held(until, reason, is_alert):
                self._release()
                if is_alert:
                    self._deps.log.decided("notice held", **self._facts(notice), reason=reason, is_alert=True)
                return True, until
            case Postponed():
                # First, because an answer that was lost may still be on its way: what is newer waits for it.
                until = self._pause(outcome, pause, notice)
                self._release()
                return True, until
            case _:
                assert_never(outcome)

    def _deliver(self, notice: Notice, thread: str) -> Outcome:
        try:
            return self._receiver.deliver(notice, thread)
        except Exception as error:  # noqa: BLE001 - a bug in what speaks to one service is no reason to be silent to others
            # The words of the error may have an address or a token in them.
            return Postponed(f"a bug of Relaunch: {type(error).__name__}")

    def _keep(self, notice: Notice, thread: str) -> None:
        """Save what was said, over what others noted meanwhile."""
        for _ in range(_MOST_LOADS):
            stored = self._deps.notice_records.load_record(self._event.job_id, self._name)
            now = self._deps.clock.now()
            try:
                self._save(replace(stored, record=after(notice, stored.record, now, thread)))
            except StaleWriteError:
                continue
            return
        raise TransientError(f"what {self._name} knows of {self._event.job_id} was changed by others again and again")

    def _release(self) -> None:
        """End the claim; if others changed the record meanwhile, it ends by itself."""
        stored = self._deps.notice_records.load_record(self._event.job_id, self._name)
        try:
            self._save(replace(stored, record=stored.record.released()))
        except StaleWriteError:
            self._deps.log.decided("claim left to end by itself", job_id=self._event.job_id, receiver=self._name)

    def _pause(self, outcome: Postponed, before: ReceiverPause | None, notice: Notice) -> datetime:
        """Leave the receiver alone, in every function; return until when.

        A longer pause that another function has saved meanwhile stands.
        """
        now = self._deps.clock.now()
        reason = outcome.reason[:_MAX_REASON]
        for _ in range(_MOST_LOADS):
            since = before.since if before is not None else now
            until = next_pause_end(since, now, outcome.retry_at)
            was_reported = before is not None and before.is_reported
            is_alert = not was_reported and may_alert(since, now)
            pause = ReceiverPause(since, until, reason, is_reported=is_alert or was_reported)
            try:
                self._deps.notice_records.save_pause(self._name, pause, before)
            except StaleWriteError:
                before = self._deps.notice_records.load_pause(self._name)
                if before is None or before.until < until:
                    continue
                until = before.until
                since = before.since
                is_alert = False
            facts = self._facts(notice) | {"reason": reason, "since": since.isoformat(), "is_alert": is_alert or None}
            self._deps.log.decided("notice postponed", **facts)
            return until
        raise TransientError(f"the pause of {self._name} was changed by others again and again")

    def _end_pause(self, pause: ReceiverPause | None) -> None:
        if pause is None:
            return
        try:
            self._deps.notice_records.save_pause(self._name, None, pause)
        except StaleWriteError:
            self._deps.log.decided("pause of another function kept", receiver=self._name)

    def _say_given_up(self, notice: Notice, reason: str, *, is_known: bool = False) -> None:
        facts = self._facts(notice) | {"reason": reason[:_MAX_REASON], "is_alert": None if is_known else True}
        self._deps.log.decided("notice given up", **facts)
        if not is_known:
            self._deps.metrics.record(MetricDatum(Metric.NOTICES_GIVEN_UP))

    def _facts(self, notice: Notice) -> dict[str, object]:
        kind = notice.kind.value if notice.kind else "state"
        return {"job_id": self._event.job_id, "receiver": self._name, "kind": kind, "sequence": notice.event.sequence}

    def _save_if_new(self, stored: StoredRecord, record: NoticeRecord) -> None:
        if record != stored.record:
            self._save(replace(stored, record=record))

    def _save(self, stored: StoredRecord) -> None:
        self._deps.notice_records.save_record(self._event.job_id, self._name, stored, self._deps.clock.now())
