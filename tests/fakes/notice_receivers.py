"""Slack, Teams, Discord and an endpoint of Standard Webhooks, served on loopback.

How each refuses is a table with the page that says so; the words of bodies are those of the pages where they have any.
"""

import base64
import hashlib
import hmac
import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from fakes.loopback import LoopbackHandler, serve_on_loopback
from relaunch.adapters.notices.https_sender import HttpsSender

TOKEN = "xoxb-1234-abcd"
CHANNEL = "C0123ABCD"
KEY = bytes(range(32))
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"
SLACK_WEBHOOK = "https://hooks.slack.com/services/T0/B0/secretpath"
TEAMS = "https://prod-01.westeurope.logic.azure.com:443/workflows/w/triggers/manual/paths/invoke?sig=secretsig"
DISCORD = "https://discord.com/api/webhooks/1/secrettoken"
ENDPOINT = "https://hooks.example.com/relaunch?key=secretkey"
ADDRESSES = {"slack": SLACK_WEBHOOK, "teams": TEAMS, "discord": DISCORD, "webhook": ENDPOINT}

Answer = tuple[int, Mapping[str, str], bytes]


@dataclass(frozen=True)
class Refusal:
    """An answer that takes no notice; `outcome` is what the port makes of it, and `retry_seconds` its pause."""

    status: int
    outcome: str
    page: str
    body: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    retry_seconds: float | None = None

    @property
    def answer(self) -> Answer:
        """Return it as a service answers."""
        return self.status, self.headers, self.body.encode()


def _slack(error: str) -> str:
    return json.dumps({"ok": False, "error": error})


_SLACK = "https://docs.slack.dev/reference/methods/chat.postMessage#errors"
_SLACK_HOOKS = "https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks#handling_errors"
_SLACK_LIMITS = "https://docs.slack.dev/apis/web-api/rate-limits"
_TEAMS = "https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/add-incoming-webhook"
_DISCORD = "https://docs.discord.com/developers/topics/opcodes-and-status-codes#http"
_DISCORD_LIMITS = "https://docs.discord.com/developers/topics/rate-limits"
_STANDARD = "https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md"
BY_TOKEN: Mapping[str, Refusal] = {
    "invalid_auth": Refusal(200, "Postponed", _SLACK, _slack("invalid_auth")),
    "token_revoked": Refusal(200, "Postponed", _SLACK, _slack("token_revoked")),
    "channel_not_found": Refusal(200, "Postponed", _SLACK, _slack("channel_not_found")),
    "not_in_channel": Refusal(200, "Postponed", _SLACK, _slack("not_in_channel")),
    "is_archived": Refusal(200, "Postponed", _SLACK, _slack("is_archived")),
    "msg_too_long": Refusal(200, "Refused", _SLACK, _slack("msg_too_long")),
    "no_text": Refusal(200, "Refused", _SLACK, _slack("no_text")),
    "rate_limited": Refusal(200, "Postponed", _SLACK, _slack("rate_limited")),
    "too many": Refusal(429, "Postponed", _SLACK_LIMITS, "", {"Retry-After": "30"}, 30.0),
    "fatal_error": Refusal(200, "Postponed", _SLACK, _slack("fatal_error")),
    "no JSON": Refusal(200, "Postponed", _SLACK, "<html>"),
    "no object": Refusal(200, "Postponed", _SLACK, "[]"),
}
REFUSALS: Mapping[str, Mapping[str, Refusal]] = {
    "slack": {
        "invalid_payload": Refusal(400, "Refused", _SLACK_HOOKS, "invalid_payload"),
        "action_prohibited": Refusal(403, "Postponed", _SLACK_HOOKS, "action_prohibited"),
        "no_service": Refusal(404, "Postponed", _SLACK_HOOKS, "no_service"),
        "channel_is_archived": Refusal(410, "Postponed", _SLACK_HOOKS, "channel_is_archived"),
        "rollup_error": Refusal(500, "Postponed", _SLACK_HOOKS, "rollup_error"),
        "too many": Refusal(429, "Postponed", _SLACK_LIMITS, "", {"Retry-After": "1"}, 1.0),
    },
    "teams": {
        "too large": Refusal(413, "Refused", _TEAMS),
        "too many": Refusal(429, "Postponed", _TEAMS, "", {"Retry-After": "Sat, 14 Mar 2026 09:27:23 GMT"}, 30.0),
        "signature": Refusal(401, "Postponed", _TEAMS, '{"error": {"code": "DirectApiAuthorizationRequired"}}'),
        "gone": Refusal(404, "Postponed", _TEAMS, '{"error": {"code": "WorkflowNotFound"}}'),
        "gateway": Refusal(504, "Postponed", _TEAMS),
    },
    "discord": {
        "bad request": Refusal(400, "Refused", _DISCORD, '{"code": 50035, "message": "Invalid Form Body"}'),
        "unauthorized": Refusal(401, "Postponed", _DISCORD, '{"code": 50027, "message": "Invalid Webhook Token"}'),
        "gone": Refusal(404, "Postponed", _DISCORD, '{"code": 10015, "message": "Unknown Webhook"}'),
        "limit": Refusal(429, "Postponed", _DISCORD_LIMITS, '{"retry_after": 1.5, "global": false}', {}, 1.5),
        "limit with a header": Refusal(429, "Postponed", _DISCORD_LIMITS, "{}", {"Retry-After": "65"}, 65.0),
        "limit of Cloudflare": Refusal(429, "Postponed", _DISCORD_LIMITS, "error code: 1015"),
        "gateway": Refusal(502, "Postponed", _DISCORD),
    },
    "webhook": {
        "gone": Refusal(410, "Postponed", f"{_STANDARD}#operational-considerations"),
        "too many": Refusal(429, "Postponed", f"{_STANDARD}#operational-considerations", "", {"Retry-After": "5"}, 5.0),
        "no date": Refusal(503, "Postponed", f"{_STANDARD}#operational-considerations", "", {"Retry-After": "soon"}),
        "redirect": Refusal(
            307, "Postponed", f"{_STANDARD}#security", "", {"Location": "https://169.254.169.254/latest/meta-data"}
        ),
        "wrong signature": Refusal(401, "Postponed", f"{_STANDARD}#verifying-signatures"),
        "not understood": Refusal(422, "Refused", f"{_STANDARD}#operational-considerations"),
    },
}


@dataclass
class Request:
    """What a service was sent."""

    host: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Any:
        """Return the body."""
        return json.loads(self.body)


@dataclass
class ReceiverServices:
    """All services on one port: each request is kept, and answered by `refusals`, one by one, or taken."""

    requests: list[Request] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    addresses: Mapping[str, str] = field(default_factory=dict)
    """What names resolve to; public addresses unless they are here."""
    url: str = ""

    def sender(self, hosts: Any = ("slack.com", "hooks.slack.com")) -> HttpsSender:
        """Make a sender whose connections go to loopback, whatever address was resolved and checked."""
        port = urlsplit(self.url).port

        def connect(_host: str, _port: int, _address: str, seconds: float) -> http.client.HTTPConnection:
            return http.client.HTTPConnection("127.0.0.1", port, timeout=seconds)

        return HttpsSender(hosts, lambda host, _port: [self.addresses.get(host, "203.0.114.9")], connect)

    def answer(self, request: Request) -> Answer:
        """Answer a request as its service does."""
        self.requests.append(request)
        if self.refusals:
            return self.refusals.pop(0).answer
        if request.target == "/api/chat.postMessage":
            number = len(self.requests)
            return 200, {}, json.dumps({"ok": True, "channel": CHANNEL, "ts": f"1793709042.{number:06d}"}).encode()
        return 202 if "/workflows/" in request.target else 200, {}, b"ok"


@contextmanager
def serve_receivers() -> Iterator[ReceiverServices]:
    """Serve them."""
    services = ReceiverServices()

    class Handler(LoopbackHandler):
        def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, answered, body = services.answer(
                Request(headers.get("host", ""), self.path, headers, self.read_body())
            )
            self.respond(status, body, answered.items())

    with serve_on_loopback(Handler) as url:
        services.url = url
        yield services


def is_signed(request: Request, key: bytes = KEY) -> bool:
    """Verify a request as the specification says, without our own code."""
    content = f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode() + request.body
    expected = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    return f"v1,{expected}" in request.headers["webhook-signature"].split(" ")
