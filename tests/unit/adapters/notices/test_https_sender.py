"""Where notices may go to, and for how long anybody is waited for."""

import http.client
import socket
import ssl
import threading
from pathlib import Path

import pytest

from fakes.loopback import LoopbackHandler, serve_on_loopback
from fakes.notice_receivers import ReceiverServices
from relaunch.adapters.notices import https_sender
from relaunch.adapters.notices.https_sender import HttpsSender, NoAnswerError, UnsendableError, connect, is_public
from relaunch_local.kubernetes.certificates import CertificateAuthority

HOSTS = ("hooks.example.com", "*.logic.azure.com")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://hooks.example.com/x",
        "https://hooks.example.org/x",
        "https://example.com/x",
        "https://a.hooks.example.com/x",
        "https://logic.azure.com/x",
        "https://evillogic.azure.com/x",
        "https://hooks.example.com.evil.org/x",
        "https://user:pass@hooks.example.com/x",
        "https://hooks.example.com:x/",
        "https://[::1",
        "https://hooks.example.com/a b",
        "https://hooks.example.com/\r\nX: y",
        "https://hooks.example.com/é",
        f"https://hooks.example.com/{'x' * 2_048}",
        "file:///etc/passwd",
    ],
)
def test_no_other_address_is_sent_to(services: ReceiverServices, url: str) -> None:
    with pytest.raises(UnsendableError):
        services.sender(HOSTS).post(url, b"", {})

    assert services.requests == []


@pytest.mark.parametrize(
    "url", ["https://hooks.example.com", "https://HOOKS.example.com/?a=b", "https://p.x.logic.azure.com:443/y"]
)
def test_an_allowed_host_is(services: ReceiverServices, url: str) -> None:
    assert services.sender(HOSTS).post(url, b"{}", {}).status == 200


@pytest.mark.parametrize(
    "address",
    [
        *(
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",  # noqa: S104 - no binding
            "224.0.0.1",
        ),
        *(
            "::1",
            "fe80::1%eth0",
            "fd00:ec2::254",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
            "ff02::1",
        ),
        *("::127.0.0.1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "no address"),
    ],
)
def test_no_private_address_is_connected_to(services: ReceiverServices, address: str) -> None:
    services.addresses = {"hooks.example.com": address}

    assert not is_public(address)
    with pytest.raises(UnsendableError, match="private network"):
        services.sender(HOSTS).post("https://hooks.example.com/", b"", {})


@pytest.mark.parametrize("address", ["203.0.114.9", "2606:4700::1111", "::ffff:1.1.1.1"])
def test_public_ones_are(address: str) -> None:
    assert is_public(address)


def test_the_connection_is_made_to_the_address_that_was_checked() -> None:
    asked: list[tuple[str, int, str]] = []

    def refuse(host: str, port: int, address: str, _seconds: float) -> http.client.HTTPConnection:
        asked.append((host, port, address))
        raise ConnectionRefusedError("https://hooks.example.com/secret")

    sender = HttpsSender(HOSTS, lambda _host, _port: ["203.0.114.9", "203.0.114.10"], refuse)
    with pytest.raises(NoAnswerError, match=r"no answer from hooks\.example\.com: ConnectionRefusedError"):
        sender.post("https://hooks.example.com/secret", b"", {})

    assert asked == [("hooks.example.com", 443, "203.0.114.9")]


def test_a_name_that_resolves_to_nothing_has_no_answer() -> None:
    def resolve(_host: str, _port: int) -> list[str]:
        raise socket.gaierror("not known")

    with pytest.raises(NoAnswerError):
        HttpsSender(HOSTS, resolve).post("https://hooks.example.com/", b"", {})
    with pytest.raises(UnsendableError):
        HttpsSender(HOSTS, lambda *_: []).post("https://hooks.example.com/", b"", {})


def test_a_service_that_never_stops_writing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(https_sender, "DEADLINE_SECONDS", 0.2)
    is_over = threading.Event()

    class Trickle(LoopbackHandler):
        def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
            while not is_over.wait(0.02):
                try:
                    self.connection.sendall(b"H")
                except OSError:
                    return

    with serve_on_loopback(Trickle) as url:
        port = int(url.rpartition(":")[2])
        sender = HttpsSender(
            HOSTS,
            lambda *_: ["203.0.114.9"],
            lambda _host, _port, _address, seconds: http.client.HTTPConnection("127.0.0.1", port, timeout=seconds),
        )
        with pytest.raises(NoAnswerError, match="within"):
            sender.post("https://hooks.example.com/", b"", {})
        is_over.set()


def test_an_answer_is_read_to_its_bound(services: ReceiverServices, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(https_sender, "MAX_BYTES", 1)

    assert services.sender(HOSTS).post("https://hooks.example.com/", b"", {}).content == b"o"


def test_a_bug_is_not_hidden() -> None:
    def resolve(_host: str, _port: int) -> list[str]:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        HttpsSender(HOSTS, resolve).post("https://hooks.example.com/", b"", {})


def test_the_certificate_must_be_that_of_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = CertificateAuthority()
    issued = authority.issue_server()
    chain = tmp_path / "server.pem"
    chain.write_text(issued.certificate + issued.key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(chain)
    make = ssl.create_default_context
    monkeypatch.setattr(ssl, "create_default_context", lambda: make(cadata=authority.certificate))

    class Taker(LoopbackHandler):
        def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
            self.respond(200, self.read_body())

    with serve_on_loopback(Taker, server) as url:
        port = int(url.rpartition(":")[2])
        named = connect("127.0.0.1", port, "127.0.0.1", 4.0)
        named.request("POST", "/", b"taken")
        assert named.getresponse().read() == b"taken"
        named.close()
        other = connect("hooks.example.com", port, "127.0.0.1", 4.0)
        with pytest.raises(ssl.SSLCertVerificationError):
            other.request("POST", "/", b"secret")
