"""Webhook deliveries as GitHub sends them ("Validating webhook deliveries", docs.github.com)."""

import hashlib
import hmac
import http.client
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from relaunch_local.repository import REPOSITORY

PUSH = REPOSITORY / "events" / "github.push.json"
TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True)
class Delivery:
    """A request to a webhook."""

    headers: Mapping[str, str]
    body: bytes


def sign_push(secret: str) -> Delivery:
    """Return a delivery of the push in events/, signed with this secret."""
    body = json.dumps(json.loads(PUSH.read_text()), separators=(",", ":"), ensure_ascii=False).encode()
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "GitHub-Hookshot/1f2e3d4",
        "X-GitHub-Delivery": str(uuid.uuid4()),
        "X-GitHub-Event": "push",
        "X-Hub-Signature-256": f"sha256={signature}",
    }
    return Delivery(headers, body)


def send(url: str, delivery: Delivery) -> int:
    """Send a delivery to a webhook on loopback; return the HTTP status."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("POST", address.path, delivery.body, dict(delivery.headers))
        return connection.getresponse().status
    finally:
        connection.close()
