"""The server of the dashboard: on loopback, as long as the command runs."""

import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

from relaunch_cli.dashboard.http_messages import TEXT, Request, Response
from relaunch_cli.dashboard.peers import is_own_user
from relaunch_cli.terminal import echo

MOST_BYTES = 64 * 1024
"""The longest body that is read: forms are short."""
_IDLE_SECONDS = 30.0
_MOST_CONNECTIONS = 64
"""How many are open at once, each in a thread; a browser opens six."""
Answer = Callable[[Request], Response]


class DashboardServer(ThreadingHTTPServer):
    """Answers requests on a port of 127.0.0.1; `answer` is set before it serves."""

    daemon_threads = True
    # Some versions of http.server let two processes listen on one port.
    allow_reuse_port = False

    def __init__(self, port: int = 0) -> None:
        """Listen on a port, 0 for any.

        Raises:
            OSError: the port is taken.
        """
        super().__init__(("127.0.0.1", port), _Handler)
        self.answer: Answer = lambda _request: Response(503)
        self._free = threading.BoundedSemaphore(_MOST_CONNECTIONS)

    def server_bind(self) -> None:
        """Bind; HTTPServer would look its own name up, for seconds where no name server answers."""
        TCPServer.server_bind(self)

    @property
    def port(self) -> int:
        """Return the port."""
        return int(self.server_address[1])

    def serve_in_background(self) -> None:
        """Serve until the process ends, or until `shutdown`."""
        threading.Thread(target=self.serve_forever, name="dashboard", daemon=True).start()

    def verify_request(self, *_: object) -> bool:
        """Return whether another connection is taken."""
        return self._free.acquire(blocking=False)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer the requests of a connection until it ends."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, *_: object) -> None:
        """Say nothing of a browser that leaves while it is answered, which is no error."""
        error = sys.exception()
        if not isinstance(error, OSError):
            echo(f"relaunch dashboard: {error!r}", err=True)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_SECONDS
    # Headers and body in one segment: otherwise a delayed acknowledgement costs 40 ms.
    wbufsize = -1
    disable_nagle_algorithm = True
    server: DashboardServer

    def handle(self) -> None:
        """Answer the requests of a connection, if it is of the user who runs this."""
        if is_own_user(self.client_address, ("127.0.0.1", self.server.port)):
            super().handle()
            return
        self.command = ""
        # A connection that is closed with something unread is reset, and the answer is lost with it.
        self.connection.recv(MOST_BYTES)
        self._end(403, "this program is of another user than `relaunch dashboard`: run both as the same one")

    def do_GET(self) -> None:
        self._answer(b"")

    def do_HEAD(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        lengths = self.headers.get_all("Content-Length", [])
        length = lengths[0] if len(lengths) == 1 and "Transfer-Encoding" not in self.headers else ""
        if not (length.isascii() and length.isdigit() and len(length) < 8 and int(length) <= MOST_BYTES):
            self.send_error(413)
            return
        body = self.rfile.read(int(length))
        if len(body) == int(length):
            self._answer(body)

    def send_error(self, code: int, *_: object, **__: object) -> None:
        """Answer what is no request that this server takes: nothing of it is repeated, and the connection ends."""
        self._end(code, HTTPStatus(code).phrase)

    def _end(self, code: int, said: str) -> None:
        self.close_connection = True
        # Of a version that could not be read: it would be HTTP/0.9, which has no headers.
        self.request_version = self.protocol_version
        self._send(Response(code, f"{said}\n".encode(), TEXT, {"Connection": "close"}))

    def _answer(self, body: bytes) -> None:
        if not body and not {"content-length", "transfer-encoding"}.isdisjoint(map(str.lower, self.headers)):
            # A body that is not read would be taken for the next request.
            self.close_connection = True
        headers = [(name.lower(), value) for name, value in self.headers.items()]
        self._send(self.server.answer(Request(self.command, self.path, headers, body)))

    def _send(self, response: Response) -> None:
        self.send_response_only(response.status)
        for name, value in response.all_headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(response.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as http.server calls it
        """Say nothing: targets have the token."""
