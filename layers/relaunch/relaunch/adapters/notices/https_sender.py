"""POST over HTTPS to addresses that people give: to allowed hosts alone, and to none of a private network.

A name is resolved once, every address of it is checked, and the connection is made to one that was: a name that
resolves to another address a moment later reaches nothing. No redirect is followed, answers are bounded, and the whole
call has one time-out, however slowly the other side writes.
"""

import http.client
import socket
import ssl
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from email.message import Message
from ipaddress import IPv6Address, ip_address, ip_network
from urllib.parse import urlsplit

from relaunch.core.records import dataclass

_READ_SECONDS = 4.0
DEADLINE_SECONDS = 8.0
"""For how long a call may take in all."""
MAX_BYTES = 64 * 1024
_MAX_URL = 2_048
_HTTPS_PORT = 443
# NAT64 (RFC 6052) and the addresses "compatible" with IPv4 (RFC 4291, 2.5.5.1), which stand for any of IPv4.
_EMBEDDING = (ip_network("64:ff9b::/96"), ip_network("::/96"))


class UnsendableError(Exception):
    """The address is none that notices may go to. The message has its host at most, whose path is often a secret."""


class NoAnswerError(Exception):
    """There was no answer, or none in time; the request may have taken effect."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a service answered."""

    status: int
    content: bytes = b""
    headers: Message = field(default_factory=Message)


Resolve = Callable[[str, int], Sequence[str]]
Connect = Callable[[str, int, str, float], http.client.HTTPConnection]


def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a name; raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(each[4][0]) for each in found]


def connect(host: str, port: int, address: str, seconds: float) -> http.client.HTTPConnection:
    """Return a connection to an address of a host, whose certificate must be the host's."""
    return _Pinned(host, port, address, seconds)


class _Pinned(http.client.HTTPSConnection):
    """A connection to one address of its host, which was checked."""

    def __init__(self, host: str, port: int, address: str, seconds: float) -> None:
        self._tls = ssl.create_default_context()
        super().__init__(host, port, timeout=seconds, context=self._tls)
        self._address = address

    def connect(self) -> None:
        """Connect to the address, and check the certificate for the name."""
        raw = socket.create_connection((self._address, self.port), self.timeout)
        try:
            self.sock = self._tls.wrap_socket(raw, server_hostname=self.host)
        except BaseException:
            raw.close()
            raise


class HttpsSender:
    """Sends to hosts that are allowed: each is a name, or `*.` and the end of names."""

    def __init__(self, hosts: Sequence[str], resolve: Resolve = resolve, connect: Connect = connect) -> None:
        self._hosts = tuple(each.lower() for each in hosts)
        self._resolve = resolve
        self._connect = connect

    def check(self, url: str) -> tuple[str, int, str]:
        """Return the host, the port and the target of a URL.

        Raises:
            UnsendableError: it is no https URL, or of a host that is not allowed.
        """
        try:
            parts = urlsplit(url)
            host = (parts.hostname or "").lower()
            port = parts.port or _HTTPS_PORT
        except ValueError:
            raise UnsendableError("the address is no URL") from None
        if parts.scheme != "https" or not host or len(url) > _MAX_URL or not url.isascii() or not url.isprintable():
            raise UnsendableError("the address must be an https URL of at most 2,048 ASCII characters")
        if parts.username is not None or parts.password is not None or " " in url:
            raise UnsendableError("the address must have no user, password or space in it")
        if not any(_is_of(host, each) for each in self._hosts):
            raise UnsendableError(f"notices may not go to the host {host}: allowed are {', '.join(self._hosts)}")
        query = f"?{parts.query}" if parts.query else ""
        return host, port, f"{parts.path or '/'}{query}"

    def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Send a body, and return what was answered, whatever its status.

        Raises:
            UnsendableError: as in check, or the host resolves to an address of a private network.
            NoAnswerError: there was none within the time.
        """
        host, port, target = self.check(url)
        call = _Call(lambda: self._send(host, port, target, body, headers))
        return call.result(host)

    def _send(self, host: str, port: int, target: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        addresses = self._resolve(host, port)
        private = [each for each in addresses if not is_public(each)]
        if private or not addresses:
            raise UnsendableError(f"{host} resolves to an address of a private network, or to none")
        connection = self._connect(host, port, addresses[0], _READ_SECONDS)
        try:
            connection.request("POST", target, body, {"User-Agent": "relaunch", **headers})
            answer = connection.getresponse()
            return Answer(answer.status, answer.read(MAX_BYTES), answer.headers)
        finally:
            connection.close()


class _Call:
    """A call on a thread of its own: a service that writes one byte every few seconds is left behind by it."""

    def __init__(self, send: Callable[[], Answer]) -> None:
        self._send = send
        self._answers: list[Answer] = []
        self._errors: list[Exception] = []

    def result(self, host: str) -> Answer:
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        thread.join(DEADLINE_SECONDS)
        if self._answers:
            return self._answers[0]
        error = self._errors[0] if self._errors else None
        if isinstance(error, UnsendableError):
            raise error
        if error is None:
            raise NoAnswerError(f"no answer from {host} within {DEADLINE_SECONDS:.0f} s")
        if isinstance(error, OSError | http.client.HTTPException):
            # The words of some errors have the address in them.
            raise NoAnswerError(f"no answer from {host}: {type(error).__name__}") from None
        raise error

    def _run(self) -> None:
        try:
            self._answers.append(self._send())
        except Exception as error:  # noqa: BLE001 - it is raised by the thread that waits
            self._errors.append(error)


def is_public(address: str) -> bool:
    """Return whether an IP address is of the public internet, also what it stands for in IPv6."""
    try:
        ip = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, IPv6Address):
        within = ip.ipv4_mapped or ip.sixtofour
        if within is not None:
            return is_public(str(within))
        if ip.teredo is not None or any(ip in each for each in _EMBEDDING):
            return False
    return ip.is_global and not ip.is_multicast


def _is_of(host: str, allowed: str) -> bool:
    return host.endswith(allowed[1:]) if allowed.startswith("*.") else host == allowed
