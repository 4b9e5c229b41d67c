"""What a receiver got, read from its own side: the words of a message, and the signed body of an endpoint."""

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from relaunch_local.simulation.aws.runtime import Invocation
from relaunch_local.simulation.notices.stories import attempt_of

_JOB = re.compile(r"^relaunch explain (\S+)$", re.MULTILINE)
_ATTEMPT = re.compile(r"^Attempt: (\d+)$", re.MULTILINE)
_AT = re.compile(r"^At: (\d{4}-\d\d-\d\d \d\d:\d\d) UTC$", re.MULTILINE)
# By the words of a title. A title names the job first.
_TITLES = {
    " has started": "started",
    " runs again": "started",
    " was interrupted": "interrupted",
    " has waited since ": "waits-too-long",
    " has finished": "finished",
    " was cancelled": "finished",
    " has failed": "failed",
    " ran out of time": "failed",
}


@dataclass(eq=False, kw_only=True)
class Receipt:
    """A message that a receiver took. `sequence` is 0, and `detail` empty, where its form says neither."""

    receiver: str
    at: datetime
    job_id: str
    kind: str
    minute: str
    """The time of the event, to the minute, as people read it."""
    attempt: int = 0
    """0 before the first."""
    is_again: bool = False
    """Whether it says that the training runs again, not for the first time."""
    sequence: int = 0
    message_id: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)
    interruptions: int = 0
    thread: str = ""
    """The message that it was put under, empty of a message of its own."""
    ts: str = ""
    """Its own name as others are put under it."""
    is_answered: bool = False
    """Whether the function that sent it got the answer."""
    invocation: Invocation | None = None


class UnreadableError(Exception):
    """What a receiver got is no notice."""


def read_text(receiver: str, at: datetime, title: str, text: str) -> Receipt:
    """Return what a message in words says; raises UnreadableError."""
    job = _JOB.search(text)
    minute = _AT.search(text)
    kind = next((kind for words, kind in _TITLES.items() if words in title), "")
    if job is None or minute is None or not kind or job[1] not in title:
        raise UnreadableError(text)
    attempt = _ATTEMPT.search(text)
    return Receipt(
        receiver=receiver,
        at=at,
        job_id=job[1],
        kind=kind,
        minute=minute[1],
        attempt=int(attempt[1]) if attempt is not None else 0,
        is_again=" runs again" in title,
    )


def read_signed(receiver: str, at: datetime, body: bytes, headers: Mapping[str, str], key: bytes) -> Receipt:
    """Return what a request to an endpoint says (Standard Webhooks 1.0.0, "Verifying webhook authenticity").

    Raises:
        UnreadableError: its signature is not that of its ID, its time and its body, or its time is not the present.
    """
    message_id = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    content = b".".join((message_id.encode(), timestamp.encode(), body))
    expected = b"v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest())
    is_signed = hmac.compare_digest(expected, headers.get("webhook-signature", "").encode())
    # Libraries allow five minutes.
    is_now = timestamp.isdigit() and abs(int(timestamp) - at.timestamp()) < 300
    if not is_signed or not is_now:
        raise UnreadableError(f"{message_id}: its signature or its time is wrong")
    data = json.loads(body)["data"]
    event = data["event"]
    return Receipt(
        receiver=receiver,
        at=at,
        job_id=event["job_id"],
        kind=data["kind"],
        minute=f"{datetime.fromisoformat(event['time']):%Y-%m-%d %H:%M}",
        attempt=attempt_of(event),
        is_again=data["kind"] == "started" and attempt_of(event) > 1,
        sequence=event["sequence"],
        message_id=message_id,
        detail=event,
        interruptions=data["interruptions"],
    )
