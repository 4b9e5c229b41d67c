"""A fake of the Secrets Manager and SQS actions that github_webhook uses, over HTTP on loopback."""

import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fakes.loopback import LoopbackHandler, serve_on_loopback


class FakeAwsEndpoint:
    """The secrets, messages and requests of the fake; each of `failures` is the response to one request.

    `stored_at` is when the secrets were stored.

    A failure is (status, error code), or None to close the connection without a response.
    """

    def __init__(self) -> None:
        self.secrets: dict[str, str] = {}
        self.stored_at = 0.0
        self.messages: list[dict[str, Any]] = []
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.failures: dict[str, list[tuple[int, str] | None]] = {}
        self.url = ""
        self.closes_connections = False

    def answer(self, target: str, parameters: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """Return the response to a request."""
        if target == "AmazonSQS.SendMessage":
            self.messages.append(json.loads(parameters["MessageBody"]))
            return 200, {"MessageId": f"message-{len(self.messages)}"}
        secret = self.secrets.get(parameters["VersionStage"])
        if secret is None:
            code = "com.amazonaws.secretsmanager#ResourceNotFoundException"
            return 400, {"__type": code, "Message": "Secrets Manager can't find the specified secret value."}
        return 200, {"SecretString": secret, "CreatedDate": self.stored_at}

    def targets(self) -> list[str]:
        """Return the requested operations, in order."""
        return [target.rpartition(".")[2] for target, _, _ in self.requests]


@contextmanager
def serve_aws(tls: ssl.SSLContext | None = None) -> Iterator[FakeAwsEndpoint]:
    """Serve the fake on an ephemeral port of loopback, over TLS when a context is given."""
    endpoint = FakeAwsEndpoint()

    class Handler(LoopbackHandler):
        def do_POST(self) -> None:  # noqa: N802 - as http.server calls it
            body = self.read_body()
            target = self.headers["X-Amz-Target"]
            endpoint.requests.append((target, dict(self.headers.items()), body))
            planned = endpoint.failures.get(target.rpartition(".")[2])
            failure = planned.pop(0) if planned else (0, "")
            self.close_connection = failure is None or endpoint.closes_connections
            if failure is None:
                return
            status, code = failure
            answer: dict[str, Any] = {"__type": code, "message": "as planned"}
            if not status:
                status, answer = endpoint.answer(target, json.loads(body))
            self.respond(status, json.dumps(answer).encode())

    with serve_on_loopback(Handler, tls) as endpoint.url:
        yield endpoint
