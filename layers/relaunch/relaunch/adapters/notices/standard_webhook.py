"""Any endpoint: signed as Standard Webhooks 1.0.0 says (github.com/standard-webhooks/standard-webhooks, spec/).

The body is `{"type", "timestamp", "data"}`; `data` has the words and the whole event. The ID is the same when a notice
is sent again, so that an endpoint can leave out what it has.
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping

from relaunch.adapters.messages.job_change import write_detail
from relaunch.adapters.notices.http_outcomes import outcome_of, post_outcome
from relaunch.adapters.notices.https_sender import HttpsSender
from relaunch.core.notices.notice import Notice, Subscription
from relaunch.core.notices.text import write_text
from relaunch.ports import Clock
from relaunch.ports.notices import Outcome

SECRET_PREFIX = "whsec_"  # noqa: S105 - what a secret begins with
# "between 24 bytes (192 bits) and 64 bytes (512 bits)" ("Signature scheme").
_SHORTEST = 24
_LONGEST = 64


def read_secret(text: str) -> bytes:
    """Return the key of a secret; raises ValueError, which does not repeat it."""
    try:
        key = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not text.startswith(SECRET_PREFIX) or not _SHORTEST <= len(key) <= _LONGEST:
        raise ValueError(f"the secret must be {SECRET_PREFIX} and 24 to 64 bytes in base64")
    return key


def sign(key: bytes, message_id: str, timestamp: int, body: bytes) -> Mapping[str, str]:
    """Return the headers of a message."""
    content = b".".join((message_id.encode(), str(timestamp).encode(), body))
    signature = base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{signature}",
    }


class StandardWebhook:
    """Implements NoticeReceiver for an endpoint."""

    def __init__(self, subscription: Subscription, url: str, key: bytes, sender: HttpsSender, clock: Clock) -> None:
        self._subscription = subscription
        self._url = url
        self._key = key
        self._sender = sender
        self._clock = clock

    @property
    def subscription(self) -> Subscription:
        return self._subscription

    def deliver(self, notice: Notice, thread: str) -> Outcome:
        del thread
        now = self._clock.now()
        body = write_body(notice)
        # A dot parts what is signed; those of a job's name are no danger, the ID is signed whole.
        signed = sign(self._key, notice.notice_id, int(now.timestamp()), body)
        headers = {"Content-Type": "application/json", **signed}
        return post_outcome(
            lambda: self._sender.post(self._url, body, headers),
            lambda answer: outcome_of(answer, "the endpoint", self._clock.now()),
        )


def write_body(notice: Notice) -> bytes:
    """Return the body, which is the same whenever the notice is sent, but for what it counts."""
    text = write_text(notice)
    kind = notice.kind.value if notice.kind else "state"
    data = {
        "kind": kind,
        "is_test": notice.is_test,
        "title": text.title,
        "reason": text.reason,
        "advice": text.advice,
        "commands": text.commands,
        **({"page_url": text.page_url} if text.page_url else {}),
        "interruptions": notice.all_interruptions,
        "event": json.loads(write_detail(notice.event)),
    }
    content = {"type": f"relaunch.job.{kind}", "timestamp": notice.event.time.isoformat(), "data": data}
    return json.dumps(content, separators=(",", ":")).encode()
