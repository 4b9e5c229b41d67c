"""The server on a real port, and what clients send that are no browsers."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from relaunch_cli.dashboard import server as module
from relaunch_cli.dashboard.http_messages import Request, Response
from relaunch_cli.dashboard.server import MOST_BYTES, DashboardServer

HOST = b"Host: 127.0.0.1\r\n"
MARK = b"<script>x</script>"


class Served:
    """A server that answers what it was asked, and the connections to it."""

    def __init__(self) -> None:
        self.server = DashboardServer()
        self.server.answer = self.answer
        self.asked: list[Request] = []
        self.failure: Exception | None = None
        threading.Thread(target=self.server.serve_forever, args=(0.005,), daemon=True).start()

    def answer(self, request: Request) -> Response:
        self.asked.append(request)
        if self.failure:
            raise self.failure
        return Response(200, f"{request.method} {request.target} {request.body.decode()}".encode())

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.server.port), timeout=60)

    def send(self, sent: bytes) -> bytes:
        """Return everything that is answered until the connection ends; nothing more is sent."""
        found = b""
        # A server that answers nothing may have ended the connection before any of it.
        with closing(self.connect()) as connection, suppress(OSError):
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65_536):
                found += part
        return found


@pytest.fixture
def served() -> Iterator[Served]:
    served = Served()
    yield served
    served.server.shutdown()
    served.server.server_close()


def test_several_requests_come_through_one_connection(served: Served) -> None:
    form = b"POST /b HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\n\r\na=1"

    answers = served.send(b"GET /a HTTP/1.1\r\n" + HOST + b"\r\n" + form + b"HEAD /c HTTP/1.1\r\n" + HOST + b"\r\n")

    assert [(each.method, each.target, each.body) for each in served.asked] == [
        ("GET", "/a", b""),
        ("POST", "/b", b"a=1"),
        ("HEAD", "/c", b""),
    ]
    assert answers.count(b"HTTP/1.1 200 OK") == 3
    assert b"GET /a" in answers
    assert b"POST /b a=1" in answers
    assert b"HEAD /c" not in answers
    assert answers.count(b"Content-Security-Policy: default-src 'none'") == 3


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"POST / HTTP/1.1\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (MOST_BYTES + 1), 413),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nContent-Length: \xb2\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 413),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n", 413),
        (b"DELETE / HTTP/1.1\r\n\r\n", 501),
        (MARK + b" / HTTP/1.1\r\n\r\n", 501),
        (b"GET / " + MARK + b" HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1." + MARK + b"\r\n\r\n", 400),
        (b"GET / HTTP/9.0\r\n\r\n", 505),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nA: " + b"b" * 70_000 + b"\r\n\r\n", 431),
    ],
)
def test_what_is_no_request_is_answered_without_a_word_of_it_and_ends(served: Served, sent: bytes, status: int) -> None:
    answered = served.send(sent + b"GET /second HTTP/1.1\r\n\r\n")

    head, _, body = answered.partition(b"\r\n\r\n")
    assert b" %d " % status in head.splitlines()[0]
    assert b"Content-Security-Policy: default-src 'none'" in head
    assert b"Content-Type: text/plain; charset=utf-8" in head
    assert b"Connection: close" in head
    assert b"Server:" not in head
    assert b"script>" not in answered
    assert len(body) < 60
    assert served.asked == []


def test_a_body_that_is_not_read_is_no_request(served: Served) -> None:
    smuggled = b"GET /second HTTP/1.1\r\n\r\n"

    served.send(b"GET /first HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(smuggled), smuggled))

    assert [each.target for each in served.asked] == ["/first"]


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nab", b"\r\n"])
def test_a_client_that_leaves_is_no_request(served: Served, sent: bytes) -> None:
    served.send(sent)

    assert served.asked == []


def test_http_1_0_is_answered_and_ends(served: Served) -> None:
    assert served.send(b"GET /a HTTP/1.0\r\n\r\n").endswith(b"GET /a ")


def test_a_client_that_is_slow_does_not_stay(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module._Handler, "timeout", 0.01)

    with closing(served.connect()) as connection:
        connection.sendall(b"GET /")
        assert connection.recv(1) == b""


def test_no_more_connections_are_open_than_the_limit(served: Served) -> None:
    served.server._free = threading.BoundedSemaphore(1)

    with closing(served.connect()) as first:
        first.sendall(b"GET /a HTTP/1.1\r\n\r\n")
        assert first.recv(12) == b"HTTP/1.1 200"
        with closing(served.connect()) as second:
            assert second.recv(1) == b""
    while not served.server._free.acquire(timeout=0.01):
        pass
    served.server._free.release()
    assert served.send(b"GET /b HTTP/1.1\r\n\r\n").endswith(b"GET /b ")


def test_a_bug_is_named_in_the_terminal_and_a_browser_that_left_is_not(served: Served, capfd) -> None:
    for failure in (ValueError("a bug"), BrokenPipeError(), ConnectionResetError()):
        served.failure = failure
        assert served.send(b"GET / HTTP/1.1\r\n\r\n") == b""

    assert capfd.readouterr().err == "relaunch dashboard: ValueError('a bug')\n"


def test_it_listens_on_loopback_alone(served: Served) -> None:
    assert served.server.server_address[0] == "127.0.0.1"


def test_a_process_of_another_user_is_refused(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_own_user", lambda peer, own: own[1] != served.server.port)

    answered = served.send(b"GET /a HTTP/1.1\r\n\r\n")

    assert answered.startswith(b"HTTP/1.1 403 ")
    assert b"run both as the same one" in answered
    assert b"Content-Security-Policy" in answered
    assert served.asked == []
