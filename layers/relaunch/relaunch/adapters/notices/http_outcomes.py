"""What an answer over HTTP means for a notice, and when a service wants to be asked again."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.message import Message
from email.utils import parsedate_to_datetime

from relaunch.adapters.notices.https_sender import Answer, NoAnswerError, UnsendableError
from relaunch.ports.notices import Delivered, Outcome, Postponed, Refused

# A request that is wrong in itself (RFC 9110, 15.5): the next one may be right, this one never is.
_NEVER = frozenset({400, 405, 406, 411, 413, 414, 415, 422, 431})
_MENDABLE = frozenset({401, 402, 403, 404, 410})
_MAX_WORDS = 120
_MOST_SECONDS = 10**7


def post_outcome(post: Callable[[], Answer], read: Callable[[Answer], Outcome]) -> Outcome:
    """Return what became of a call; an address that may not be used waits for somebody to correct it."""
    try:
        answer = post()
    except (UnsendableError, NoAnswerError) as error:
        return Postponed(str(error))
    return read(answer)


def outcome_of(answer: Answer, service: str, now: datetime) -> Outcome:
    """Return what the status of an answer means; the body is not shown, as it may repeat the request."""
    status = answer.status
    if 200 <= status < 300:
        return Delivered(answer=f"HTTP {status}")
    if status in _NEVER:
        return Refused(f"{service} answers HTTP {status}")
    if status in _MENDABLE:
        return Postponed(f"{service} answers HTTP {status}: its address or token is no longer accepted")
    if 300 <= status < 400:
        return Postponed(f"{service} answers HTTP {status}: a redirect, which is not followed")
    return Postponed(f"{service} answers HTTP {status}", retry_at(answer.headers, now))


def retry_at(headers: Message, now: datetime) -> datetime | None:
    """Return the time of a Retry-After header, in seconds or as a date (RFC 9110, 10.2.3); None without a valid one."""
    text = (headers.get("Retry-After") or "").strip()
    if re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?", text):
        return now + timedelta(seconds=min(float(text), _MOST_SECONDS))
    try:
        at = parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def words(value: object) -> str:
    """Return a code that a service answered, if it looks like one: other text may have anything in it."""
    text = str(value)
    return text if re.fullmatch(rf"[A-Za-z0-9_.-]{{1,{_MAX_WORDS}}}", text) else "an unknown answer"
