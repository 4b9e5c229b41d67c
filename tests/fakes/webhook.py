"""Requests as GitHub and a Lambda function URL make them."""

import base64
import hashlib
import hmac
import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

from fakes.repository import REPOSITORY

EVENTS = REPOSITORY / "events"
SECRET = "It's a Secret to Everybody"


def load_event(name: str) -> Any:
    """Load a sample of events/."""
    return json.loads((EVENTS / f"{name}.json").read_text(encoding="utf-8"))


def sign(body: bytes, secret: str = SECRET) -> str:
    """Return the value of X-Hub-Signature-256."""
    return f"sha256={hmac.digest(secret.encode(), body, 'sha256').hex()}"


def make_request(
    body: bytes,
    headers: Mapping[str, str | None] | None = None,
    *,
    event: str = "push",
    secret: str = SECRET,
    is_base64: bool = False,
) -> dict[str, Any]:
    """Make the event of a function URL, signed; `headers` replaces headers, None removes one."""
    sent = {
        "content-type": "application/json",
        "x-github-event": event,
        "x-github-delivery": "guid-1",
        "x-github-hook-id": "7",
        "x-hub-signature-256": sign(body, secret),
        **(headers or {}),
    }
    return {
        "version": "2.0",
        "headers": {name: value for name, value in sent.items() if value is not None},
        "body": base64.b64encode(body).decode() if is_base64 else body.decode(),
        "isBase64Encoded": is_base64,
    }


def make_delivery(event: str, payload: Any, delivery: str = "guid-1") -> dict[str, Any]:
    """Make the message that github_webhook queues for a body."""
    body_sha256 = hashlib.sha256(json.dumps(payload).encode()).hexdigest()
    return {
        "source": "github",
        "event": event,
        "delivery": delivery,
        "hook_id": "7",
        "body_sha256": body_sha256,
        "payload": payload,
    }


def post(url: str, request: Mapping[str, Any]) -> int:
    """Send a request over HTTP; return the status."""
    sent = urllib.request.Request(url, request["body"].encode(), request["headers"])  # noqa: S310 - loopback
    try:
        with urllib.request.urlopen(sent, timeout=60) as response:  # noqa: S310 - loopback
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code
