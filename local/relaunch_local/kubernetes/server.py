"""The API of a cluster over HTTPS on loopback, with a certificate authority made for it, and faults on demand."""

import base64
import json
import ssl
import tempfile
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import yaml

from relaunch_local.kubernetes.certificates import CertificateAuthority
from relaunch_local.kubernetes.cluster import KubernetesCluster
from relaunch_local.kubernetes.errors import ApiError
from relaunch_local.kubernetes.requests import Request, answer
from relaunch_local.kubernetes.reviews import ACCESS, PATH, review_self
from relaunch_local.kubernetes.role import Access, Role

_MAX_BODY = 3 << 20
TOKEN = "relaunch-local"  # noqa: S105 - for loopback only


@dataclass(frozen=True)
class Fault:
    """What the next request meets: an error, None for a connection that breaks; `after` it took effect."""

    error: ApiError | None = None
    after: bool = False


class KubernetesServer:
    """Serves a cluster on an ephemeral port of 127.0.0.1 until it is closed."""

    def __init__(self, cluster: KubernetesCluster) -> None:
        self.cluster = cluster
        self.faults: deque[Fault] = deque()
        """Each is for one request, in order."""
        self.forbidden: set[tuple[str, str]] = set()
        """Verbs and resources that no Role allows, such as `("list", "nodes")`."""
        self.tokens = {TOKEN}
        """Bearer tokens that are accepted."""
        self.roles: dict[str, Role] = {}
        """What the users of tokens may do; others may do everything."""
        self.user = "launcher"
        """The name of those others, whose certificates are for it."""
        self.granted: set[Access] = set()
        """What users with a Role have done."""
        self.refused: set[Access] = set()
        """What users with a Role were not allowed to do."""
        self.requests: list[tuple[str, str]] = []
        """Methods and paths, in order."""
        self.authority = CertificateAuthority()
        self._closed = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.owner = self
        self._server.context = self._tls_context()
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        """The server's address."""
        return f"https://127.0.0.1:{self._server.server_address[1]}"

    def is_closed(self) -> bool:
        """Return whether it serves no more."""
        return self._closed.is_set()

    def start(self) -> None:
        """Start to serve, on threads."""
        self._thread.start()

    def close(self) -> None:
        """Stop to serve; the cluster's processes are their owner's."""
        self._closed.set()
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def kubeconfig(self, namespace: str, *, with_certificate: bool = False, role: Role | None = None) -> str:
        """Return a kubeconfig with a token, or with a client certificate as ACK issues them.

        With a role the token is its user's, who may do nothing else.
        """
        user = {"token": TOKEN if role is None else self._issue_token(role)}
        if with_certificate:
            issued = self.authority.issue_client(self.user)
            user = {"client-certificate-data": _encode(issued.certificate), "client-key-data": _encode(issued.key)}
        cluster = {"server": self.url, "certificate-authority-data": _encode(self.authority.certificate)}
        context = {"cluster": "local", "user": "launcher", "namespace": namespace}
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "local",
            "clusters": [{"name": "local", "cluster": cluster}],
            "contexts": [{"name": "local", "context": context}],
            "users": [{"name": "launcher", "user": user}],
        }
        return str(yaml.safe_dump(document))

    def serve(self, request: Request) -> tuple[int, Any, Mapping[str, str]]:
        """Return the status, the content and further headers of an answer.

        Raises:
            ApiError: the answer is an error.
            ConnectionError: there is no answer.
        """
        self.requests.append((request.method, request.path))
        fault = self.faults.popleft() if self.faults else None
        if fault is not None and not fault.after:
            raise fault.error or ConnectionError
        self._authorize(request)
        answered = self._review(request) if request.path == PATH else answer(self.cluster, request)
        if fault is not None:
            raise fault.error or ConnectionError
        return answered

    def _review(self, request: Request) -> tuple[int, Any, Mapping[str, str]]:
        role = self.roles.get(request.token)
        user = self.user if role is None else role.user
        return 201, review_self(request.method, request.json(), user, self.cluster.minor), {}

    def _issue_token(self, role: Role) -> str:
        token = f"{TOKEN}-{len(self.roles)}"
        self.tokens.add(token)
        self.roles[token] = role
        return token

    def _authorize(self, request: Request) -> None:
        access = ACCESS if request.path == PATH else request.access
        role = self.roles.get(request.token)
        if (access.verb, access.resource) in self.forbidden:
            raise ApiError(403, "Forbidden", Role(self.user, frozenset()).refusal(access, request.name))
        if role is None or access == ACCESS:
            return
        if refusal := role.refusal(access, request.name):
            self.refused.add(access)
            raise ApiError(403, "Forbidden", refusal)
        self.granted.add(access)

    def _tls_context(self) -> ssl.SSLContext:
        issued = self.authority.issue_server()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as folder:
            chain = Path(folder) / "chain.pem"
            chain.write_text(issued.certificate + issued.key)
            context.load_cert_chain(chain)
        context.load_verify_locations(cadata=self.authority.certificate)
        # As a real server: who shows no certificate may have a token.
        context.verify_mode = ssl.CERT_OPTIONAL
        return context


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    owner: KubernetesServer
    context: ssl.SSLContext

    def finish_request(self, request: Any, client_address: Any) -> None:
        # On the connection's own thread: a client that does not shake hands keeps nobody waiting.
        with self.context.wrap_socket(request, server_side=True) as secured:
            super().finish_request(secured, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients that distrust the certificate break off."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server
    wbufsize = -1

    def do_GET(self) -> None:
        """Answer a request."""
        self._serve()

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815 - the base class looks for these names

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class names it so
        """Log nothing."""

    def _serve(self) -> None:
        try:
            body = self._body()
            token = self._authenticate()
            parts = urlsplit(self.path)
            query = dict(parse_qsl(parts.query, keep_blank_values=True))
            owner = self.server.owner
            kinds = (self.headers.get("Content-Type", ""), token, self.headers.get("Accept", ""))
            request = Request(self.command, parts.path, query, body, *kinds, owner.is_closed)
            self._reply(*owner.serve(request))
        except ApiError as error:
            retry = {} if error.retry_after_seconds is None else {"Retry-After": str(error.retry_after_seconds)}
            self._reply(error.code, error.to_status(), retry)
        except ConnectionError:
            self.close_connection = True

    def _body(self) -> bytes:
        length = int(self.headers.get("Content-Length") or 0)
        if length > _MAX_BODY:
            self.close_connection = True
            raise ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {_MAX_BODY}")
        return self.rfile.read(length)

    def _authenticate(self) -> str:
        """Return the bearer token, empty for a client certificate."""
        kind, _, token = self.headers.get("Authorization", "").partition(" ")
        has_certificate = isinstance(self.connection, ssl.SSLSocket) and bool(self.connection.getpeercert())
        if not has_certificate and (kind != "Bearer" or token not in self.server.owner.tokens):
            raise ApiError(401, "Unauthorized", "Unauthorized")
        return "" if has_certificate else token

    def _reply(self, status: int, content: Any, headers: Mapping[str, str]) -> None:
        if isinstance(content, Iterator):
            self._stream(status, content)
            return
        is_text = isinstance(content, str)
        body = content.encode() if is_text else json.dumps(content).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Type", "text/plain" if is_text else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, status: int, parts: Iterator[Any]) -> None:
        """Send what comes, in chunks of HTTP/1.1, as soon as it comes."""
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        for part in parts:
            chunk = (part if isinstance(part, str) else json.dumps(part) + "\n").encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")


def _encode(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
