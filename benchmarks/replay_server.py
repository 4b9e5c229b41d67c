"""AWS on loopback over TLS: records the responses of other servers, and replays them without those servers.

Functions are measured with recorded responses, so that the time of an emulator is not included and the same event can
be handled for the first time repeatedly.
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
    calls that the recording has no response for; the response is status 400.
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
        """Forward calls to the URL of their service (`*`: all others), and record them."""
        self.upstreams, self._replayed, self.recorded = dict(upstreams), None, []

    def replay(self, exchanges: tuple[Exchange, ...]) -> None:
        """Replay this recording."""
        self._replayed = list(exchanges)
        self.skipped, self.unexpected = [], []

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

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Send headers and body in one segment; otherwise delayed acknowledgements cost 40 ms per call.
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            """Handle a call."""
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            exchange = replay.answer(Request(self.command, self.path, dict(self.headers.items()), body))
            self.send_response(exchange.status)
            for name, value in exchange.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(exchange.body)))
            self.end_headers()
            self.wfile.write(exchange.body)

        def do_GET(self) -> None:
            """Handle a call without a body."""
            self.do_POST()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

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
        """Log nothing: measured processes end without closing their connections."""
