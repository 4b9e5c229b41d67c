"""The server of the dashboard: on loopback, as long as the command runs."""

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from relaunch_cli.dashboard.http_messages import Request, Response

MOST_BYTES = 64 * 1024
"""The longest body that is read: forms are short."""
_IDLE_SECONDS = 30.0
Answer = Callable[[Request], Response]


class DashboardServer(ThreadingHTTPServer):
    """Answers requests on a port of 127.0.0.1; `answer` is set before it serves."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        """Listen on a port, 0 for any.

        Raises:
            OSError: the port is taken.
        """
        super().__init__(("127.0.0.1", port), _Handler)
        self.answer: Answer = lambda _request: Response(503)

    @property
    def port(self) -> int:
        """Return the port."""
        return int(self.server_address[1])

    def serve_in_background(self) -> None:
        """Serve until the process ends, or until `shutdown`."""
        threading.Thread(target=self.serve_forever, name="dashboard", daemon=True).start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a browser that leaves while it is answered is no error."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_SECONDS
    server: DashboardServer

    def do_GET(self) -> None:
        self._answer(b"")

    def do_HEAD(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit() and len(length) < 8 and int(length) <= MOST_BYTES):
            self.close_connection = True
            self._send(Response(413, b"the body is too long, or has no length", "text/plain"))
            return
        self._answer(self.rfile.read(int(length)))

    def _answer(self, body: bytes) -> None:
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
