"""AWS on loopback, over TLS: takes down what its upstreams answer, and gives the same answers again without them.

Functions are measured against recorded answers: the time of an emulator is not theirs, and the same event can be
handled for the first time as often as one likes.
"""

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qs, urlsplit

from benchmarks.certificates import server_context
from benchmarks.errors import NotMeasurableError

_SCOPE = re.compile(r"Credential=[^/]+/[0-9]{8}/[^/]+/([^/]+)/aws4_request")
_NOT_FORWARDED = frozenset({"connection", "transfer-encoding", "content-length", "date", "server", "keep-alive"})


class Request(NamedTuple):
    """A request as it came over the wire."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def service(self) -> str:
        """The service that it is signed for."""
        found = _SCOPE.search(self.headers.get("Authorization", ""))
        return found[1] if found else ""

    @property
    def operation(self) -> str:
        """The operation by its name in the API."""
        if target := self.headers.get("X-Amz-Target"):
            return target.rpartition(".")[2]
        if action := parse_qs(self.body.decode(errors="replace")).get("Action"):
            return action[0]
        return "ListObjectsV2" if "list-type=2" in self.path else f"{self.method.title()}Object"


@dataclass(frozen=True)
class Exchange:
    """One call and its answer; `items_written` counts the actions of a transaction, and 1 for any other write."""

    service: str
    operation: str
    items_written: int
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


class ReplayServer:
    """Records the calls that come in, or answers them from a recording, in their order.

    A warm function asks for less than a cold one: what it leaves out is passed over. `unexpected` names the calls that
    the rest of the recording has no answer to: they were answered with status 400.
    """

    def __init__(self) -> None:
        self.upstreams: dict[str, str] = {}
        self.recorded: list[Exchange] = []
        self.unexpected: list[str] = []
        self.skipped: list[str] = []
        self.url = ""
        self._replayed: list[Exchange] | None = None
        self._lock = threading.Lock()

    def record(self, upstreams: Mapping[str, str]) -> None:
        """Forward calls from now on to the URL of their service, `*` being that of any other, and take them down."""
        self.upstreams, self._replayed, self.recorded = dict(upstreams), None, []

    def replay(self, exchanges: tuple[Exchange, ...]) -> None:
        """Answer from this recording from now on."""
        self._replayed = list(exchanges)
        self.skipped, self.unexpected = [], []

    @property
    def omitted(self) -> int:
        """How many recorded calls were not made."""
        return len(self.skipped) + len(self._replayed or ())

    def require_exact(self) -> None:
        """Insist that exactly the recorded calls were made.

        Raises:
            NotMeasurableError: the function did something else than when it was recorded, so the figure means nothing.
        """
        omitted = [*self.skipped, *(exchange.operation for exchange in self._replayed or ())]
        if self.unexpected or omitted:
            raise NotMeasurableError(
                f"a function asked for {self.unexpected or 'nothing'} beside, left out {omitted or 'nothing'}"
            )

    def answer(self, request: Request) -> Exchange:
        """Answer one request."""
        if self._replayed is None:
            exchange = self._forward(request)
            self.recorded.append(exchange)
            return exchange
        with self._lock:
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
    """Serve on an ephemeral port of loopback."""
    replay = ReplayServer()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Headers and body leave in one segment: else delayed acknowledgements cost 40 ms a call.
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            """Answer one call."""
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            exchange = replay.answer(Request(self.command, self.path, dict(self.headers.items()), body))
            self.send_response(exchange.status)
            for name, value in exchange.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(exchange.body)))
            self.end_headers()
            self.wfile.write(exchange.body)

        def do_GET(self) -> None:
            """Answer one call without a body."""
            self.do_POST()

        def log_message(self, *_: object) -> None:
            """Keep quiet."""

    server = _Server(("127.0.0.1", 0), Handler)
    server.socket = server_context(certificate).wrap_socket(
        server.socket, server_side=True, do_handshake_on_connect=False
    )
    replay.url = f"https://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield replay
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Keep quiet about clients that hang up: measured processes just end."""
