"""An endpoint of notices: takes what is signed as Standard Webhooks 1.0.0 says, and keeps it.

Source: github.com/standard-webhooks/standard-webhooks, spec/, "Verifying signatures". The product's code plays no part.
"""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

from relaunch_local.internet.answers import HostAnswer, HostRequest

ENDPOINT = "hooks.acme.example"


class NoticeEndpoint:
    """An endpoint with this key: what it took is in `taken`, in order, and each ID once."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._by_id: dict[str, Mapping[str, Any]] = {}

    @property
    def secret(self) -> str:
        """The secret as `relaunch notices add` takes it."""
        return f"whsec_{base64.b64encode(self._key).decode()}"

    @property
    def taken(self) -> list[Mapping[str, Any]]:
        """The bodies of what was taken."""
        return list(self._by_id.values())

    def answer(self, request: HostRequest) -> HostAnswer:
        """Take a request, or refuse one with a wrong signature."""
        names = ("webhook-id", "webhook-timestamp", "webhook-signature")
        message_id, timestamp, signatures = (request.headers.get(name, "") for name in names)
        content = b".".join((message_id.encode(), timestamp.encode(), request.body))
        expected = base64.b64encode(hmac.digest(self._key, content, hashlib.sha256)).decode()
        if f"v1,{expected}" not in signatures.split(" "):
            return HostAnswer(401)
        self._by_id.setdefault(message_id, json.loads(request.body))
        return HostAnswer(200)
