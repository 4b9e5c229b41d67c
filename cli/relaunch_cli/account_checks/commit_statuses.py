"""Statuses of commits: whether GitHub takes them, and until when the token is good for that."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from relaunch.core.checks import Check, is_ok, problem, unknown
from relaunch.core.notices.status_report import StatusReport
from relaunch.ports.notices import ReceiverPause

NAME = "commit statuses"
_PAGE = "docs/commit-statuses.md"
_REPLACED_BEFORE = timedelta(days=14)
# GitHub has answered the time of the answer itself (https://github.com/google/go-github/issues/3708).
_SHORTEST_LIFE = timedelta(hours=1)


def check_statuses(report: StatusReport, pause: ReceiverPause | None, now: datetime) -> Iterator[Check]:
    """Check what became of the last statuses, and the token that they were set with.

    No call tells whether a token may write statuses but one that writes one, so what is said is what GitHub answered.
    """
    if pause is not None and pause.until > now:
        text = f"GitHub takes none since {pause.since:%Y-%m-%d %H:%M} UTC: {pause.reason}"
        yield problem(NAME, text, f"{_PAGE} says what the token needs; they are tried again for a day")
    for _, each in sorted(report.problems.items()):
        yield problem(NAME, each.reason, f"{_PAGE} says what the token needs")
    if report.taken_at is None:
        if not report.problems and pause is None:
            yield unknown(NAME, "none was set yet", "push to a repository that a trigger watches, and look again")
        return
    yield is_ok(NAME, f"GitHub took that of a commit of {report.taken_by} at {report.taken_at:%Y-%m-%d %H:%M} UTC")
    yield from _check_token(report.taken_at, report.token_expires_at, now)


def _check_token(taken_at: datetime, expires_at: datetime | None, now: datetime) -> Iterator[Check]:
    if expires_at is None:
        yield is_ok(NAME, "GitHub names no time at which the token expires")
    elif expires_at - taken_at < _SHORTEST_LIFE:
        text = "when the token expires is not known: GitHub answers a time that is over at once"
        yield unknown(NAME, text, "look at the token's page at GitHub")
    elif expires_at - now < _REPLACED_BEFORE:
        verb = "expired" if expires_at <= now else "expires"
        text = f"the token {verb} at {expires_at:%Y-%m-%d %H:%M} UTC"
        yield problem(NAME, text, f"make another one, and store it in its secret ({_PAGE})")
    else:
        yield is_ok(NAME, f"the token expires at {expires_at:%Y-%m-%d %H:%M} UTC")
