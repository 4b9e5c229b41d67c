import asyncio
import json
import re
from typing import Any

import pytest

from relaunch_local.attack.requests import Call
from relaunch_local.request_guard.asgi import GuardedApplication
from relaunch_local.request_guard.credentials import Credentials
from relaunch_local.request_guard.guard import RequestGuard

ROOT = Credentials("AKIAROOT", "secret")
HOST = "127.0.0.1:4566"
UNSIGNED = re.compile(r"/open/[a-z]+/")


class Echo:
    """An application that answers with the body it was sent, and allows every origin."""

    def __init__(self) -> None:
        self.scopes: list[Any] = []

    async def __call__(self, scope, receive, send) -> None:
        self.scopes.append(scope["type"])
        if scope["type"] != "http":
            return
        message = await receive()
        headers = [(b"Access-Control-Allow-Origin", b"*"), (b"content-type", b"text/plain")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": message["body"]})
        assert (await receive())["type"] == "http.disconnect"


def exchange(scope: dict[str, Any], messages: list[dict[str, Any]]) -> tuple[Echo, list[dict[str, Any]]]:
    """Serve one connection; return the application and what was sent."""
    echo, sent, waiting = Echo(), [], [*messages, {"type": "http.disconnect"}]
    guarded = GuardedApplication(echo, RequestGuard({ROOT.access_key_id: ROOT.secret_access_key}.get), UNSIGNED)

    async def receive():
        return waiting.pop(0)

    async def send(message):
        sent.append(message)

    asyncio.run(guarded(scope, receive, send))
    return echo, sent


def scope_of(call: Call) -> dict[str, Any]:
    path, _, query = call.url.removeprefix(f"http://{HOST}").partition("?")
    headers = {"Host": HOST, **call.headers}
    return {
        "type": "http",
        "method": call.method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }


def chunks(*parts: bytes) -> list[dict[str, Any]]:
    return [{"type": "http.request", "body": part, "more_body": part is not parts[-1]} for part in parts]


def test_a_signed_request_reaches_the_application_with_its_body_and_no_answer_allows_an_origin() -> None:
    call = Call(f"http://{HOST}/a?b=c", body=b"in two parts").sign(ROOT)

    echo, (start, body) = exchange(scope_of(call), chunks(b"in two", b" parts"))

    assert echo.scopes == ["http"]
    assert (start["status"], body["body"]) == (200, b"in two parts")
    assert start["headers"] == [(b"content-type", b"text/plain")]


@pytest.mark.parametrize("path", ["/", "/open/", "/open//x", "/closed/open/a/", "/_ministack/reset"])
def test_an_unsigned_request_does_not(path: str) -> None:
    echo, (start, _) = exchange(scope_of(Call(f"http://{HOST}{path}")), chunks(b"body"))

    assert echo.scopes == []
    assert start["status"] == 403


@pytest.mark.parametrize(("body", "status"), [(b"body", 200), (b"other", 403)])
def test_a_signature_that_a_path_does_not_need_is_verified_all_the_same(body: bytes, status: int) -> None:
    call = Call(f"http://{HOST}/open/a/", body=b"body").sign(ROOT)

    _, (start, _) = exchange(scope_of(call), chunks(body))

    assert start["status"] == status


def test_a_changed_body_does_not() -> None:
    call = Call(f"http://{HOST}/", body=b"body").sign(ROOT)

    echo, (start, _) = exchange(scope_of(call), chunks(b"other"))

    assert (echo.scopes, start["status"]) == ([], 403)


def test_what_needs_no_signature_must_come_from_no_page_all_the_same() -> None:
    call = Call(f"http://{HOST}/open/a/", body=b"body")
    foreign = {"Host": "attacker.example"}

    assert exchange(scope_of(call), chunks(b"body"))[1][1]["body"] == b"body"
    for refused in (call.add(Origin="null"), Call(call.url, headers=foreign), Call(call.url, "OPTIONS")):
        echo, (start, _) = exchange(scope_of(refused), chunks(b"body"))
        assert (echo.scopes, start["status"]) == ([], 403)


def test_a_client_that_leaves_before_its_body_is_read_is_not_answered() -> None:
    call = Call(f"http://{HOST}/", body=b"body").sign(ROOT)

    echo, sent = exchange(scope_of(call), [{"type": "http.request", "body": b"bo", "more_body": True}])

    assert (echo.scopes, sent) == ([], [])


def test_refusals_are_written_as_the_services_of_either_protocol_write_them() -> None:
    call = Call(f"http://{HOST}/")

    _, (_, body) = exchange(scope_of(call.add(X_Amz_Target="DynamoDB_20120810.ListTables")), chunks(b""))
    _, (_, text) = exchange(scope_of(call), chunks(b""))

    assert json.loads(body["body"])["__type"] == "MissingAuthenticationToken"
    assert b"<Code>MissingAuthenticationToken</Code>" in text["body"]


def test_a_websocket_is_closed_and_the_lifespan_is_the_applications() -> None:
    echo, sent = exchange({"type": "websocket", "path": "/open/a/", "headers": []}, [{"type": "websocket.connect"}])
    assert (echo.scopes, sent) == ([], [{"type": "websocket.close", "code": 1008}])

    assert exchange({"type": "lifespan"}, [])[0].scopes == ["lifespan"]
