"""HTTP servers on loopback, as fakes of AWS and its recordings are served."""

import ssl
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class LoopbackHandler(BaseHTTPRequestHandler):
    """Keeps connections open and logs nothing."""

    protocol_version = "HTTP/1.1"
    # Send headers and body in one segment; otherwise delayed acknowledgements cost 40 ms per call.
    wbufsize = -1
    disable_nagle_algorithm = True

    def read_body(self) -> bytes:
        """Return the body of the request."""
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def respond(self, status: int, content: bytes, headers: Iterable[tuple[str, str]] = ()) -> None:
        """Send a response."""
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Log nothing: tests and measured processes close connections."""


@contextmanager
def serve_on_loopback(handler: type[LoopbackHandler], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve on an ephemeral port of loopback, over TLS when a context is given; yield the URL."""
    server = _Server(("127.0.0.1", 0), handler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
