import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from relaunch_action import http_requests
from relaunch_action.http_requests import NoResponseError, Request, Response, send


class Answers(BaseHTTPRequestHandler):
    def answer(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length)
        if self.path == "/cut":
            self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nhalf")
            return
        if self.path == "/nothing":
            return
        status = int(self.path.removeprefix("/") or 200)
        self.send_response(status)
        if status == 307:
            self.send_header("location", "/200")
        told = f"{self.command} {self.headers['content-type']} ".encode() + body
        self.send_header("content-length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    do_GET = do_POST = answer  # noqa: N815 - the names that http.server looks for

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_body_is_posted_with_its_headers_and_none_is_a_get(url: str) -> None:
    posted = send(Request(f"{url}/", {"content-type": "application/json"}, b"{}"))
    got = send(Request(f"{url}/", {"content-type": "none"}))

    assert posted == Response(200, b"POST application/json {}")
    assert got == Response(200, b"GET none ")


@pytest.mark.parametrize("status", [201, 307, 403, 404, 429, 500, 503])
def test_every_status_is_a_response_and_no_redirect_is_followed(url: str, status: int) -> None:
    assert send(Request(f"{url}/{status}", {"content-type": "a"}, b"b")) == Response(status, b"POST a b")


@pytest.mark.parametrize("path", ["/cut", "/nothing"])
def test_half_a_response_is_none(url: str, path: str) -> None:
    with pytest.raises(NoResponseError):
        send(Request(f"{url}{path}", {}, b"{}"))


def test_nobody_listens_and_nobody_answers_in_time(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_requests, "TIMEOUT_SECONDS", 0.05)
    with HTTPServer(("127.0.0.1", 0), Answers) as silent:
        with pytest.raises(NoResponseError, match="timed out"):
            send(Request(f"http://127.0.0.1:{silent.server_port}/"))
        free = silent.server_port

    with pytest.raises(NoResponseError):
        send(Request(f"http://127.0.0.1:{free}/"))
