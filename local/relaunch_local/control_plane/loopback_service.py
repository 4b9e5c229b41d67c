"""Small servers on loopback that a control plane calls: over HTTPS with a certificate of its authority, or in plain."""

import ssl
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from relaunch_local.kubernetes.certificates import CertificateAuthority


@dataclass(frozen=True)
class Answer:
    """What is answered."""

    body: str
    status: int = 200
    content_type: str = "application/json"


Answerer = Callable[[str, bytes], Answer]
"""Answers a request by its path with its query, and its body."""


class LoopbackService:
    """Serves on a free port of 127.0.0.1 until it is closed; with an authority over HTTPS."""

    def __init__(self, answer: Answerer, authority: CertificateAuthority | None = None) -> None:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.answer = answer
        self._server.context = server_context(authority) if authority else None
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The port."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The address."""
        return f"{'https' if self._server.context else 'http'}://127.0.0.1:{self.port}"

    def close(self) -> None:
        """Stop to serve."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def server_context(authority: CertificateAuthority) -> ssl.SSLContext:
    """Return a context with a certificate for 127.0.0.1."""
    issued = authority.issue_server()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        chain = Path(folder) / "chain.pem"
        chain.write_text(issued.certificate + issued.key)
        context.load_cert_chain(chain)
    return context


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    answer: Answerer
    context: ssl.SSLContext | None

    def finish_request(self, request: object, client_address: object) -> None:
        if self.context is None:
            super().finish_request(request, client_address)  # type: ignore[arg-type]  # what this base class gets
            return
        with self.context.wrap_socket(request, server_side=True) as secured:  # type: ignore[arg-type]  # a socket
            super().finish_request(secured, client_address)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: callers break connections off when they end."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: _Server

    def do_GET(self) -> None:
        """Answer a request."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        answer = self.server.answer(self.path, body)
        content = answer.body.encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET  # noqa: N815 - the base class looks for these names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Log nothing."""
