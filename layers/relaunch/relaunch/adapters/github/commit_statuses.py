"""Sets statuses of commits at GitHub ("REST API endpoints for commit statuses", GitHub Docs).

A status that was set twice is there twice, and shown once: after a time-out it is set again. Each counts for the limits
of requests, and of statuses, of which a commit has 1,000 for one context at most.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from relaunch.adapters.github.rest_api import GithubRestApi, RestAnswer
from relaunch.core.lifecycle.change_events import JobStateChange
from relaunch.core.notices.commit_status import RECEIVER, CommitState, CommitStatus, ShownChange, commit_status_of
from relaunch.core.notices.decision import KEPT
from relaunch.core.notices.notice import Notice, Subscription
from relaunch.core.notices.page import page_of
from relaunch.core.notices.pauses import ALERTED_AFTER
from relaunch.core.notices.status_budget import PER_HOUR, StatusBudget, hold_until, spread
from relaunch.core.notices.status_report import TRIED_AGAIN, StatusReport
from relaunch.ports import Clock, PortError, StaleWriteError, TransientError
from relaunch.ports.commit_statuses import CommitStatusStore, StoredBudget, StoredShown
from relaunch.ports.notices import Delivered, Held, NoticeReceiver, Outcome, Postponed, ReceiverSource, Refused

PARAMETER = "GithubStatusTokenSecretArn"
"""The stack's parameter that names the secret of the token."""
# Others write the budget at the same time only while statuses are set.
_MOST_LOADS = 5
_NOT_ACCEPTED = 401
_REMEDIES = {
    _NOT_ACCEPTED: f": GitHub does not accept the token: store another one as the secret of {PARAMETER}",
    403: ': give the token "Commit statuses: read and write" of this repository',
    404: ': give the token "Commit statuses: read and write" of this repository, if there still is one of this name',
    422: ": the commit is gone, or has as many statuses as it may: the next commit gets its own",
}
# A missing right, and a repository that has another name now.
_MENDABLE = frozenset({301, 307, 308, 403, 404})
# For so long what somebody can set right is waited for, before a notice is given up.
_BARRED = KEPT - timedelta(hours=1)
_REPORT_READ_EVERY = timedelta(minutes=5)


class GithubCommitStatuses:
    """Implements NoticeReceiver.

    `page_url` is where a status leads to, with `{job_id}` in it; empty if there is no page of jobs.
    """

    def __init__(self, api: GithubRestApi, store: CommitStatusStore, clock: Clock, page_url: str = "") -> None:
        self._api = api
        self._store = store
        self._clock = clock
        self._page_url = page_url
        self._subscription = Subscription(name=RECEIVER, wants_states=True)
        self._report: tuple[datetime, StatusReport] | None = None

    @property
    def subscription(self) -> Subscription:
        return self._subscription

    def deliver(self, notice: Notice, thread: str) -> Outcome:
        del thread
        status = commit_status_of(notice.event)
        if status is None:
            return Delivered()
        try:
            return self._deliver(status, notice.event)
        except PortError as error:
            return Postponed(str(error))

    def _deliver(self, status: CommitStatus, change: JobStateChange) -> Outcome:
        is_end = status.state is not CommitState.PENDING
        now = self._clock.now()
        # Looked at first, and counted after what is shown was claimed: what waits for room writes nothing.
        barred_until = self._barred_until(status.repository, change)
        if barred_until is not None and now < barred_until:
            return Held(barred_until + spread(change.job_id), "the repository refuses statuses")
        held_until = hold_until(self._store.load_budget().budget, change, now, is_end=is_end)
        if held_until is not None:
            return self._held(held_until, change, now, is_end=is_end)
        claimed = self._claim(status, change)
        if claimed is not None:
            return claimed
        turn = self._take_turn(change, is_end=is_end)
        return Held(turn) if isinstance(turn, datetime) else self._set(status, change, turn)

    def _barred_until(self, repository: str, change: JobStateChange) -> datetime | None:
        """Return when a repository is tried again that refuses statuses, None if a change need not wait for that."""
        now = self._clock.now()
        if now - change.time >= _BARRED:
            return None
        with suppress(TransientError):
            return self._load_report(now).barred_until(repository)
        return None

    def _held(self, until: datetime, change: JobStateChange, now: datetime, *, is_end: bool) -> Held:
        """Return what holds a status for want of room; that ends come late is an alert once a day."""
        if not is_end or now - change.time < ALERTED_AFTER or self._load_report(now).is_late_said(now):
            return Held(until)
        if self._change_report(now, lambda report: report.with_late_said(now)).is_late_said(now):
            return Held(until)
        return Held(
            until, f"ends of jobs come more than {ALERTED_AFTER} late: more than {PER_HOUR} an hour", is_alert=True
        )

    def _claim(self, status: CommitStatus, change: JobStateChange) -> Delivered | Held | None:
        """Note what a context is about to show, None if that is this change.

        A change of another job that is later stays shown. While a request of another job may be on its way, nothing is
        sent: GitHub shows what it took last.

        Raises:
            TransientError: others note something else again and again.
        """
        for _ in range(_MOST_LOADS):
            stored = self._store.load_shown(status)
            shown = stored.shown
            if shown is not None and not shown.is_followed_by(change):
                return Delivered(answer=f"{status.context} shows a later job")
            now = self._clock.now()
            until = shown.under_way_until(change) if shown is not None else None
            if until is not None and now < until:
                return Held(until)
            with suppress(StaleWriteError):
                claimed = ShownChange(change.job_id, change.time, sent_at=now)
                self._store.save_shown(status, StoredShown(claimed, stored.version))
                return None
        raise TransientError(f"what {status.context} shows is changed by others again and again")

    def _take_turn(self, change: JobStateChange, *, is_end: bool) -> StatusBudget | datetime:
        """Count a request, and return the budget after it; or return when there may be room for it."""
        for _ in range(_MOST_LOADS):
            now = self._clock.now()
            stored = self._store.load_budget()
            held_until = hold_until(stored.budget, change, now, is_end=is_end)
            if held_until is not None:
                return held_until
            used = stored.budget.used(now)
            if self._save(stored, used):
                return used
        return self._clock.now() + spread(change.job_id)

    def _save(self, stored: StoredBudget, budget: StatusBudget) -> bool:
        try:
            self._store.save_budget(StoredBudget(budget, stored.version))
        except StaleWriteError:
            return False
        return True

    def _set(self, status: CommitStatus, change: JobStateChange, budget: StatusBudget) -> Outcome:
        body = {"state": status.state.value, "context": status.context, "description": status.description}
        if self._page_url:
            body["target_url"] = page_of(self._page_url, change.job_id)
        doing = f"setting the status of a commit of {status.repository}"
        answer = self._api.send("POST", f"repos/{status.repository}/statuses/{status.sha}", doing, body)
        now = self._clock.now()
        if answer.is_taken:
            self._note_taken(status.repository, now, answer, budget)
            return Delivered(answer=f"{status.context} of {status.repository} is {status.state}")
        reason = f"{doing}: HTTP {answer.status} {answer.message}".rstrip() + _remedy(answer)
        if answer.is_limited:
            return Postponed(reason, self._note_limited(budget, now, answer.retry_at(now)))
        if answer.may_pass or answer.status == _NOT_ACCEPTED:
            return Postponed(reason)
        return self._refused(status.repository, answer.status, reason, change)

    def _note_limited(self, budget: StatusBudget, now: datetime, asked: datetime | None) -> datetime | None:
        """Return until when GitHub is left alone, after every function was asked to do so."""
        with suppress(TransientError):
            self._note(lambda noted: noted.limited_at(now, asked))
        return budget.limited_at(now, asked).closed_until

    def _note(self, change: Callable[[StatusBudget], StatusBudget]) -> None:
        """Change the budget by what GitHub answered; where others always come first, that is theirs to note."""
        for _ in range(_MOST_LOADS):
            stored = self._store.load_budget()
            if self._save(stored, change(stored.budget)):
                return

    def _note_taken(self, repository: str, now: datetime, answer: RestAnswer, budget: StatusBudget) -> None:
        """Note that a status was set, which it stays where that cannot be noted."""
        with suppress(TransientError):
            if budget.limited:
                self._note(StatusBudget.answered)
            report = self._load_report(now)
            if report.after_taken(repository, now, answer.token_expires_at) != report:
                self._change_report(now, lambda each: each.after_taken(repository, now, answer.token_expires_at))

    def _refused(self, repository: str, code: int, reason: str, change: JobStateChange) -> Outcome:
        """Return what becomes of a status that GitHub refuses; what somebody can set right is waited for."""
        now = self._clock.now()
        is_barred = code in _MENDABLE
        before = self._change_report(now, lambda each: each.with_problem(repository, reason, now, is_barred=is_barred))
        is_said = before.is_said(repository, reason, now)
        if not is_barred:
            return Refused(reason, is_known=is_said)
        if now - change.time >= _BARRED:
            return Refused(reason)
        return Held(now + TRIED_AGAIN + spread(change.job_id), reason, is_alert=not is_said)

    def _load_report(self, now: datetime) -> StatusReport:
        if self._report is None or now - self._report[0] >= _REPORT_READ_EVERY:
            return self._read_report(now)
        return self._report[1]

    def _read_report(self, now: datetime) -> StatusReport:
        """Read the report as other functions have left it."""
        self._report = now, self._store.load_report()
        return self._report[1]

    def _change_report(self, now: datetime, change: Callable[[StatusReport], StatusReport]) -> StatusReport:
        """Change the report, which other functions change at once; return the one before that.

        Raises:
            TransientError: others change it again and again.
        """
        for _ in range(_MOST_LOADS):
            before = self._read_report(now)
            after = change(before)
            if after == before:
                return before
            with suppress(StaleWriteError):
                self._store.save_report(after)
                self._report = now, after
                return before
        raise TransientError("the report of commit statuses is changed by others again and again")


class WithCommitStatuses:
    """Implements ReceiverSource: `others`, and the statuses of commits for jobs that have one."""

    def __init__(self, others: ReceiverSource, statuses: GithubCommitStatuses) -> None:
        self._others = others
        self._statuses = statuses

    def receivers_for(self, event: JobStateChange) -> Sequence[NoticeReceiver]:
        found = self._others.receivers_for(event)
        return found if commit_status_of(event) is None else [*found, self._statuses]


def _remedy(answer: RestAnswer) -> str:
    """Return what to do about an answer, empty if it is to wait."""
    if 300 <= answer.status < 400:
        return ": it has another name now: name that in the triggers"
    return _REMEDIES.get(answer.status, "") if not answer.is_limited else ""
