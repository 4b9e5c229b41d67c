"""Forwards TCP connections of containers from the Docker bridge's address to loopback."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import BaseRequestHandler, ThreadingTCPServer
from urllib.parse import urlsplit


class _Forwarder(ThreadingTCPServer):
    daemon_threads = True


@contextmanager
def forwarded(url: str, address: str) -> Iterator[str]:
    """Forward connections to an address of this machine to the server at `url`; yield the URL to use instead."""
    target = urlsplit(url)

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection((target.hostname, target.port)) as server:
                back = threading.Thread(target=_copy, args=(server, self.request), daemon=True)
                back.start()
                _copy(self.request, server)
                back.join()

    with _Forwarder((address, 0), Handler) as forwarder:
        threading.Thread(target=forwarder.serve_forever, daemon=True).start()
        yield f"http://{address}:{forwarder.server_address[1]}"
        forwarder.shutdown()


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        # One side has closed the connection.
        return
