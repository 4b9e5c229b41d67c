"""Serves hosts by their names over TLS on a port of loopback, and says how functions reach them."""

import json
import ssl
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from relaunch_local.internet import routes
from relaunch_local.internet.answers import Host, HostRequest
from relaunch_local.kubernetes.certificates import CertificateAuthority

# Public, and nobody's: the anycast addresses of 6to4 relays, which RFC 7526 took out of use.
_ADDRESSES = "192.88.99.{}"
_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Internet:
    """Hosts that are served."""

    hosts: Mapping[str, Host]
    authority: CertificateAuthority = field(repr=False)
    port: int

    def environment(self, folder: Path) -> dict[str, str]:
        """Write what functions need into a new folder, and return the variables that lead to it.

        OpenSSL takes the authorities that it trusts from SSL_CERT_FILE
        (https://docs.openssl.org/master/man3/SSL_CTX_load_verify_locations/).
        """
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(Path(routes.__file__).read_text())
        authority = folder / "authority.pem"
        authority.write_text(self.authority.certificate)
        found = {name: (_ADDRESSES.format(place), self.port) for place, name in enumerate(self.hosts, 1)}
        return {
            routes.FUNCTION_PATH_VARIABLE: str(folder),
            routes.ROUTES_VARIABLE: json.dumps(found),
            "SSL_CERT_FILE": str(authority),
        }


@contextmanager
def running_internet(hosts: Mapping[str, Host]) -> Iterator[Internet]:
    """Serve these hosts, with a certificate that has all their names, until the context ends."""
    authority = CertificateAuthority()
    server = _Server((_LOOPBACK, 0), _Handler)
    server.hosts = hosts
    server.context = _server_context(authority, hosts)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield Internet(hosts, authority, int(server.server_address[1]))
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _server_context(authority: CertificateAuthority, hosts: Mapping[str, Host]) -> ssl.SSLContext:
    issued = authority.issue_server(tuple(hosts))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        chain = Path(folder) / "chain.pem"
        chain.write_text(issued.certificate + issued.key)
        context.load_cert_chain(chain)
    return context


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    hosts: Mapping[str, Host]
    context: ssl.SSLContext

    def finish_request(self, request: object, client_address: object) -> None:
        with self.context.wrap_socket(request, server_side=True) as secured:  # type: ignore[arg-type]  # a socket
            super().finish_request(secured, client_address)

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: callers break connections off when they end."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: _Server

    def do_GET(self) -> None:
        """Answer a request by the host that it names; another one was misdirected (RFC 9110, 15.5.20)."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        host = self.server.hosts.get(headers.get("host", "").partition(":")[0])
        if host is None:
            self.send_error(421)
            return
        answer = host.answer(HostRequest(self.command, self.path, headers, body))
        content = answer.body.encode()
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET  # noqa: N815 - the base class looks for these names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Log nothing."""
