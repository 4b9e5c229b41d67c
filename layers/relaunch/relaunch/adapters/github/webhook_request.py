"""Handles a webhook request: verifies its signature and queues the event.

Requests and responses are those of Lambda function URLs ("Invoking Lambda function URLs", payload format 2.0, AWS
Lambda Developer Guide); sample: events/function-url.github-push.json. GitHub waits ten seconds for a response, records
any status other than 2xx as a failure, and does not retry: ignored events are therefore answered with 202.
Imports are kept to a minimum for the cold start of github_webhook.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Mapping
from urllib.parse import parse_qs

from relaunch.adapters.github.payload_trimming import trim_payload
from relaunch.adapters.github.signature import SecretRing, read_digest
from relaunch.adapters.github.webhook_secrets import find_repository, read_scope

MAX_BODY_BYTES = 6 * 1024 * 1024  # the limit of Lambda; GitHub sends up to 25 MB
MAX_MESSAGE_BYTES = 900_000  # the limit of SQS is 1,048,576
FORMAT = 1
"""The newest format of the message for the intake queue, which adapters.messages.body checks."""
WANTED_EVENTS = frozenset(
    ("push", "workflow_dispatch", "repository_dispatch", "workflow_run", "release", "package", "registry_package")
)
_MAX_HEADER_LENGTH = 100
_MAX_NAME_LENGTH = 140


class Answer:
    """An HTTP status and a text without secrets; `detail` is for the log only."""

    __slots__ = ("detail", "status", "text")

    def __init__(self, status: int, text: str, detail: str = "") -> None:
        self.status = status
        self.text = text
        self.detail = detail

    def to_response(self) -> dict[str, object]:
        """Return the response of a function URL."""
        return {
            "statusCode": self.status,
            "headers": {"content-type": "application/json"},
            "body": json.dumps({"status": self.text}),
        }


class Request:
    """A request: header names in lower case, and the body as bytes.

    `length` is the length of the body in Lambda's event. The headers, including the event name, are not signed.
    """

    __slots__ = ("body", "headers", "length", "path")

    def __init__(self, event: object) -> None:
        members = event if isinstance(event, Mapping) else {}
        headers = members.get("headers")
        pairs = headers.items() if isinstance(headers, Mapping) else ()
        self.headers = {str(name).lower(): str(value) for name, value in pairs}
        path = members.get("rawPath")
        self.path = path if isinstance(path, str) else "/"
        body = members.get("body")
        text = body if isinstance(body, str) else ""
        self.length = len(text)
        self.body = (
            b"" if self.length > MAX_BODY_BYTES else _read_body(text, is_base64=bool(members.get("isBase64Encoded")))
        )

    @property
    def scope(self) -> str | None:
        """Return the scope that the path names, None if it names none."""
        return read_scope(self.path)

    @property
    def event(self) -> str:
        """Return the event name."""
        return self.headers.get("x-github-event", "")[:_MAX_HEADER_LENGTH]

    @property
    def delivery(self) -> str:
        """Return the delivery ID, which is the same for a redelivery."""
        return self.headers.get("x-github-delivery", "")[:_MAX_HEADER_LENGTH]


def receive(request: Request, secrets: SecretRing, enqueue: Callable[[str], object], received_at: str) -> Answer:
    """Verify and queue a request; exceptions of `secrets.has_signed` and `enqueue(message)` are propagated."""
    if max(request.length, len(request.body)) > MAX_BODY_BYTES:
        return Answer(413, "the body is too large")
    digest = read_digest(request.headers.get("x-hub-signature-256"))
    if digest is None:
        return Answer(401, "X-Hub-Signature-256 is missing or malformed")
    scope = request.scope
    if scope is None:
        return Answer(404, "the path is neither /, nor /OWNER, nor /OWNER/REPOSITORY")
    if not secrets.has_signed(scope, request.body, digest):
        # A scope without a secret is answered alike: who uses Relaunch is nobody's business.
        return Answer(401, "X-Hub-Signature-256 does not match")
    return _answer_signed(request, secrets, enqueue, received_at)


def _answer_signed(request: Request, secrets: SecretRing, enqueue: Callable[[str], object], received_at: str) -> Answer:
    payload = _read_payload(request)
    if payload is None:
        return Answer(415, "the body is neither JSON nor a form with JSON in its field payload")
    refusal = _find_scope_refusal(request, payload, secrets)
    if refusal:
        return Answer(403, "another secret signs for this repository", refusal)
    if request.event == "ping":
        return Answer(200, "pong")
    if request.event not in WANTED_EVENTS:
        return Answer(202, "ignored", f"{request.event or 'unnamed'} events start nothing")
    return _enqueue_message(request, payload, enqueue, received_at)


def _find_scope_refusal(request: Request, payload: Mapping[str, object], secrets: SecretRing) -> str:
    """Return why the secret that signed a payload must not, empty if it may: it may be that of another repository."""
    repository = find_repository(payload)
    signing_scope = secrets.find_signing_scope(payload)
    is_ping_of_app = request.event == "ping" and not repository
    if is_ping_of_app or signing_scope == request.scope:
        return ""
    named = repository[:_MAX_NAME_LENGTH] or "what names neither a repository nor an organization"
    needed = f"the secret of {signing_scope} does" if signing_scope else "no secret does: add one"
    return f"the secret of {request.scope} does not sign for {named}, {needed}"


def _enqueue_message(
    request: Request, payload: Mapping[str, object], enqueue: Callable[[str], object], received_at: str
) -> Answer:
    try:
        message = build_message(request, payload, received_at)
    except RecursionError:
        # json.dumps has a lower nesting limit than json.loads.
        return Answer(415, "the body is nested too deeply")
    if message is None:
        return Answer(413, "the body is too large, even reduced to what is used of it")
    enqueue(message)
    return Answer(202, "queued")


def build_message(request: Request, payload: Mapping[str, object], received_at: str) -> str | None:
    """Return the message for the intake queue in ASCII, with a trimmed payload if needed; None if still too large."""
    message = {
        "source": "github",
        "format": FORMAT,
        "event": request.event,
        "delivery": request.delivery,
        "hook_id": request.headers.get("x-github-hook-id", "")[:_MAX_HEADER_LENGTH],
        "body_sha256": hashlib.sha256(request.body).hexdigest(),
        "received_at": received_at,
        "payload": payload,
    }
    text = json.dumps(message, separators=(",", ":")) if len(request.body) <= MAX_MESSAGE_BYTES else ""
    if not text or len(text) > MAX_MESSAGE_BYTES:
        text = json.dumps({**message, "payload": trim_payload(payload)}, separators=(",", ":"))
    return text if len(text) <= MAX_MESSAGE_BYTES else None


def _read_body(text: str, *, is_base64: bool) -> bytes:
    """Return the body as bytes; invalid base64 is returned unchanged, and fails the verification."""
    raw = text.encode("utf-8", "surrogatepass")
    if not is_base64:
        return raw
    try:
        return base64.b64decode(raw, validate=True)
    except binascii.Error:
        return raw


def _read_payload(request: Request) -> Mapping[str, object] | None:
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if content_type == "application/json":
            payload = json.loads(request.body)
        elif content_type == "application/x-www-form-urlencoded":
            payload = json.loads(parse_qs(request.body.decode("ascii"), max_num_fields=10)["payload"][0])
        else:
            return None
    except (ValueError, KeyError, RecursionError):
        return None
    return payload if isinstance(payload, dict) else None
