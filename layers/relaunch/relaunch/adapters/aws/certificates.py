"""The certificates of authorities, read once for all clients of a function.

botocore reads them for every connection, and a function has one to each service: 15 to 45 ms each time, of a processor
of its own. Here a client sends by the same class of botocore, with one TLS context. The names that are replaced are not
documented, so they rest on the pinned release of botocore and on the test of this module.
"""

import socket
from typing import Any
from urllib.request import getproxies

from botocore.httpsession import URLLib3Session, create_urllib3_context, get_cert_path

# As botocore's clients have them.
_SOCKET_OPTIONS = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]


class SharedCertificates:
    """Lets clients send with one TLS context, which is made with the first of them."""

    def __init__(self, bundle: str | None) -> None:
        """Take a file of certificates, None for those of botocore."""
        self._bundle = bundle
        self._context: Any = None

    def share_with(self, client: Any) -> Any:
        """Return the client; behind a proxy it sends as it would, with a context of its own."""
        if getproxies():
            return client
        client._endpoint.http_session = _Sender(self._trusting(), client.meta.config)  # noqa: SLF001 - see above
        return client

    def _trusting(self) -> Any:
        if self._context is None:
            context = create_urllib3_context()
            # The stubs know no file here, nor what times out and the options of sockets below.
            context.load_verify_locations(get_cert_path(self._bundle or True))  # type: ignore[arg-type]
            self._context = context
        return self._context


class _Sender(URLLib3Session):
    """Sends as botocore does, with a context that has its certificates."""

    def __init__(self, context: Any, config: Any) -> None:
        self._trusting = context
        super().__init__(
            timeout=(config.connect_timeout, config.read_timeout),  # type: ignore[arg-type]
            max_pool_connections=config.max_pool_connections,
            socket_options=_SOCKET_OPTIONS,  # type: ignore[arg-type]
        )

    def _get_ssl_context(self) -> Any:
        return self._trusting

    def _setup_ssl_cert(self, conn: Any, url: str, verify: Any) -> None:  # noqa: ARG002 - as botocore calls it
        conn.cert_reqs = "CERT_REQUIRED"
        conn.ca_certs = None
