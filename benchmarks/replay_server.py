"""AWS on loopback over TLS: records the responses of other servers, and replays them without those servers.

Functions are measured with recorded responses, so that the time of an emulator is not included and the same event can
be handled for the first time repeatedly.
"""

import json
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from benchmarks.certificates import server_context
from benchmarks.errors import NotMeasurableError
from fakes.loopback import LoopbackHandler, serve_on_loopback

_SCOPE = re.compile(r"Credential=[^/]+/[0-9]{8}/[^/]+/([^/]+)/aws4_request")
_NOT_FORWARDED = frozenset({"connection", "transfer-encoding", "content-length", "date", "server", "keep-alive"})


class Request(NamedTuple):
    """An HTTP request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def service(self) -> str:
        """The service that the request is signed for."""
        found = _SCOPE.search(self.headers.get("Authorization", ""))
        return found[1] if found else ""

    @property
    def operation(self) -> str:
        """The API operation."""
        if target := self.headers.get("X-Amz-Target"):
            return target.rpartition(".")[2]
        if action := parse_qs(self.body.decode(errors="replace")).get("Action"):
            return action[0]
        return "ListObjectsV2" if "list-type=2" in self.path else f"{self.method.title()}Object"


@dataclass(frozen=True)
class Exchange:
    """A call and its response; `items_written` is the number of actions of a transaction, or 1 for other writes."""

    service: str
    operation: str
    items_written: int
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class ReplayServer:
    """Records calls, or replays a recording in order.

    A warm function makes fewer calls than a cold one: recorded calls that it omits are skipped. `unexpected` are the
    calls that the recording has no response for; the response is status 400. `arrived_at` has by operation when it was
    first called (time.perf_counter).
    """

    def __init__(self) -> None:
        self.upstreams: dict[str, str] = {}
        self.recorded: list[Exchange] = []
        self.unexpected: list[str] = []
        self.arrived_at: dict[str, float] = {}
        self.skipped: list[str] = []
        self.url = ""
        self._replayed: list[Exchange] | None = None
        self._lock = threading.Lock()

    def record(self, upstreams: Mapping[str, str]) -> None:
        """Forward calls to the URL of their service (`*`: all others), and record them."""
        self.upstreams = dict(upstreams)
        self._replayed = None
        self.recorded = []

    def replay(self, exchanges: tuple[Exchange, ...]) -> None:
        """Replay this recording."""
        self._replayed = list(exchanges)
        self.skipped = []
        self.unexpected = []
        self.arrived_at = {}

    @property
    def omitted(self) -> int:
        """The number of recorded calls that were not made."""
        return len(self.skipped) + len(self._replayed or ())

    def require_exact(self) -> None:
        """Check that exactly the recorded calls were made.

        Raises:
            NotMeasurableError: the function made other calls than when it was recorded.
        """
        omitted = [*self.skipped, *(exchange.operation for exchange in self._replayed or ())]
        if self.unexpected or omitted:
            raise NotMeasurableError(
                f"unexpected calls: {self.unexpected or 'none'}; omitted calls: {omitted or 'none'}"
            )

    def answer(self, request: Request) -> Exchange:
        """Return the response to a request."""
        if self._replayed is None:
            exchange = self._forward(request)
            self.recorded.append(exchange)
            return exchange
        with self._lock:
            self.arrived_at.setdefault(request.operation, time.perf_counter())
            for position, exchange in enumerate(self._replayed):
                if exchange.operation == request.operation:
                    self.skipped += [each.operation for each in self._replayed[:position]]
                    del self._replayed[: position + 1]
                    return exchange
        self.unexpected.append(request.operation)
        return Exchange(request.service, request.operation, 0, 400, (), b'{"__type": "NotRecorded"}')

    def _forward(self, request: Request) -> Exchange:
        upstream = urlsplit(self.upstreams.get(request.service) or self.upstreams["*"])
        connection = HTTPConnection(upstream.hostname or "", upstream.port, timeout=30)
        try:
            connection.request(request.method, request.path, request.body, dict(request.headers))
            response = connection.getresponse()
            headers = tuple(each for each in response.getheaders() if each[0].lower() not in _NOT_FORWARDED)
            written = _items_written(request)
            return Exchange(request.service, request.operation, written, response.status, headers, response.read())
        finally:
            connection.close()


def _items_written(request: Request) -> int:
    if request.operation == "TransactWriteItems":
        return len(json.loads(request.body)["TransactItems"])
    return int(request.operation in {"PutItem", "UpdateItem", "DeleteItem"})


@contextmanager
def serve_replay(certificate: Path) -> Iterator[ReplayServer]:
    """Run a replay server on an ephemeral port of loopback."""
    replay = ReplayServer()

    class Handler(LoopbackHandler):
        def do_POST(self) -> None:  # noqa: N802 - as http.server calls it
            """Handle a call."""
            request = Request(self.command, self.path, dict(self.headers.items()), self.read_body())
            exchange = replay.answer(request)
            self.respond(exchange.status, exchange.body, exchange.headers)

        # A call without a body.
        do_GET = do_POST  # noqa: N815

    with serve_on_loopback(Handler, server_context(certificate)) as replay.url:
        yield replay
