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
from relaunch.core.notices.notice import Notice, Subscription
from relaunch.core.notices.page import page_of
from relaunch.core.notices.status_budget import StatusBudget, hold_until, spread
from relaunch.core.notices.status_report import StatusReport
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
        # Looked at first, and counted after what is shown was claimed: what waits for room writes nothing.
        held_until = hold_until(self._store.load_budget().budget, change, self._clock.now(), is_end=is_end)
        if held_until is not None:
            return Held(held_until)
        if not self._claim(status, change):
            return Delivered(answer=f"{status.context} shows a later job")
        turn = self._take_turn(change, is_end=is_end)
        return Held(turn) if isinstance(turn, datetime) else self._set(status, change.job_id, turn)

    def _claim(self, status: CommitStatus, change: JobStateChange) -> bool:
        """Note what a context is about to show; return False if that is a change of another job that is later.

        Raises:
            TransientError: others note something else again and again.
        """
        for _ in range(_MOST_LOADS):
            stored = self._store.load_shown(status)
            if stored.shown is not None and not stored.shown.is_followed_by(change):
                return False
            with suppress(StaleWriteError):
                self._store.save_shown(status, StoredShown(ShownChange(change.job_id, change.time), stored.version))
                return True
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

    def _set(self, status: CommitStatus, job_id: str, budget: StatusBudget) -> Outcome:
        body = {"state": status.state.value, "context": status.context, "description": status.description}
        if self._page_url:
            body["target_url"] = page_of(self._page_url, job_id)
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
        return self._refused(status.repository, reason, now)

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
            after = report.after_taken(repository, now, answer.token_expires_at)
            if after != report:
                self._save_report(after, now)

    def _refused(self, repository: str, reason: str, now: datetime) -> Refused:
        report = self._load_report(now)
        if report.is_said(repository, reason, now):
            return Refused(reason, is_known=True)
        self._save_report(report.with_problem(repository, reason, now), now)
        return Refused(reason)

    def _load_report(self, now: datetime) -> StatusReport:
        if self._report is None or now - self._report[0] >= _REPORT_READ_EVERY:
            self._report = now, self._store.load_report()
        return self._report[1]

    def _save_report(self, report: StatusReport, now: datetime) -> None:
        self._report = now, report
        self._store.save_report(report)


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
