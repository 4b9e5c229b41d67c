"""The connection to a cluster: credentials that are fetched when they are needed, and TLS that trusts its CA alone."""

import hashlib
import os
import ssl
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import httpx

from relaunch.adapters.kubernetes.api.kubeconfig import ClusterAccess, KubeconfigError

CONNECT_SECONDS = 3.0
READ_SECONDS = 10.0
_FINGERPRINT = 12
# Credentials are replaced so long before they expire: a request may take that long.
EXPIRY_MARGIN = timedelta(seconds=60)

TransportFactory = Callable[[ssl.SSLContext], httpx.BaseTransport]


class Connection:
    """A namespace of a cluster, as the owner of its credentials; not for several threads at once.

    `fetch` returns new credentials and raises ports' errors; it is called at the first request, 60 s before they
    expire, and when the server refuses them. `namespace` is that of the kubeconfig's context, or `default`, if empty.
    """

    def __init__(
        self,
        fetch: Callable[[], ClusterAccess],
        namespace: str = "",
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        transport: TransportFactory | None = None,
    ) -> None:
        self._fetch = fetch
        self._namespace = namespace
        self._now = now
        self._transport = transport or (lambda context: httpx.HTTPTransport(verify=context))
        self._access: ClusterAccess | None = None
        self._http: httpx.Client | None = None

    @property
    def namespace(self) -> str:
        """The namespace that requests are about."""
        return self._namespace or self._current().namespace or "default"

    @property
    def identity(self) -> str:
        """A fingerprint of the cluster's CA, and the namespace.

        The CA is the cluster's own, whatever address the kubeconfig has for it, and is known without a permission: the
        UID of a namespace is not, as the Role of Relaunch reads none.
        """
        authority = self._current().certificate_authority.encode()
        return f"{hashlib.sha256(authority).hexdigest()[:_FINGERPRINT]}/{self.namespace}"

    @property
    def server(self) -> str:
        """The server's address, empty before the first request."""
        return self._access.server if self._access else ""

    @property
    def http(self) -> httpx.Client:
        """A client with valid credentials and the server's address."""
        access = self._current()
        if self._http is None:
            self._http = _open(access, self._transport(tls_context(access)))
        return self._http

    def renew(self) -> None:
        """Drop the credentials: the next request fetches new ones."""
        if self._http is not None:
            self._http.close()
        self._access = None
        self._http = None

    def close(self) -> None:
        """Close the connection; the next request opens a new one, with the same credentials."""
        if self._http is not None:
            self._http.close()
        self._http = None

    def _current(self) -> ClusterAccess:
        expires_at = self._access.expires_at if self._access else None
        if expires_at is not None and expires_at - EXPIRY_MARGIN <= self._now():
            self.renew()
        if self._access is None:
            self._access = self._fetch()
        return self._access


def tls_context(access: ClusterAccess) -> ssl.SSLContext:
    """Return a context that trusts the cluster's CA and nobody else, and shows the client's certificate if it has one.

    Raises:
        KubeconfigError: a certificate or the key is malformed, or they do not belong together.
    """
    try:
        context = ssl.create_default_context(cadata=access.certificate_authority)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if access.client_certificate:
            with _as_file(access.client_certificate + "\n" + access.client_key) as path:
                # An encrypted key would be asked for on the terminal.
                context.load_cert_chain(path, password=lambda: b"")
    except ssl.SSLError:
        # Not chained: nothing of what is secret may be logged.
        raise KubeconfigError("a certificate or key is malformed, or they do not belong together") from None
    return context


@contextmanager
def _as_file(content: str) -> Iterator[str]:
    """Show a text as a file, since OpenSSL reads keys from files only: in memory where Linux can do that."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("key", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, content.encode())
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.NamedTemporaryFile("w") as file:  # readable by its owner only
        file.write(content)
        file.flush()
        yield file.name


def _open(access: ClusterAccess, transport: httpx.BaseTransport) -> httpx.Client:
    headers = {"Accept": "application/json", "User-Agent": "relaunch"}
    if access.token:
        headers["Authorization"] = f"Bearer {access.token}"
    return httpx.Client(
        base_url=access.server,
        headers=headers,
        timeout=httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS),
        transport=transport,
        trust_env=False,
    )
