"""The certificates of authorities, read once for all clients of a function.

botocore reads them for every connection, and a function has one to each service: 15 to 45 ms each time, of a processor
of its own. A handler of botocore's event `before-send` may answer a request instead of it; here it sends the request as
botocore does, by its class, with one TLS context. The two methods that are replaced are not documented: without them
certificates would be read as before, or no certificate would be trusted.
"""

import socket
from typing import Any
from urllib.request import getproxies

from botocore.httpsession import URLLib3Session, create_urllib3_context, get_cert_path

# As botocore's clients have them.
_SOCKET_OPTIONS = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]


class SharedCertificates:
    """Lets clients send with one TLS context, which is made when the first of them sends."""

    def __init__(self, bundle: str | None) -> None:
        """Take a file of certificates, None for those of botocore."""
        self._bundle = bundle
        self._context: Any = None

    def share_with(self, client: Any) -> Any:
        """Return the client; behind a proxy it sends as it would, with a context of its own."""
        if getproxies():
            return client
        senders: list[_Sender] = []

        def send(request: Any, **_: Any) -> Any:
            if not senders:
                senders.append(_Sender(self._trusting(), client.meta.config))
            return senders[0].send(request)

        client.meta.events.register("before-send", send)
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
