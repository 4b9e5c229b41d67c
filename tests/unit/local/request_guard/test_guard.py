import pytest

from relaunch_local.attack.requests import Call
from relaunch_local.request_guard.credentials import Credentials
from relaunch_local.request_guard.guard import LOOPBACK_HOSTS, RefusedRequestError, RequestGuard
from relaunch_local.request_guard.signature import RequestHead

ROOT = Credentials("AKIAROOT", "secret")
GUARD = RequestGuard({ROOT.access_key_id: ROOT.secret_access_key}.get)


def head(method: str = "POST", *headers: tuple[str, str]) -> RequestHead:
    return RequestHead(method, "/", headers)


def refusal_of(request: RequestHead, guard: RequestGuard = GUARD) -> str | None:
    try:
        guard.check_sender(request)
    except RefusedRequestError as error:
        return error.code
    return None


@pytest.mark.parametrize("host", ["127.0.0.1:4566", "127.0.0.1", "localhost:80", "LOCALHOST:4566"])
def test_a_loopback_host_is_taken(host: str) -> None:
    assert refusal_of(head("POST", ("host", host))) is None


@pytest.mark.parametrize(
    "hosts",
    [
        (),
        ("",),
        ("attacker.example:4566",),
        ("127.0.0.1.attacker.example:4566",),
        ("localhost.attacker.example",),
        ("attacker.localhost:4566",),
        ("localhost.:4566",),
        ("127.0.0.1:4566@attacker.example",),
        ("127.0.0.1:4566:80",),
        ("172.17.0.1:4566",),
        ("0.0.0.0:4566",),
        ("127.0.0.1:4566", "attacker.example:4566"),
        ("127.0.0.1:4566", "127.0.0.1:4566"),
    ],
)
def test_another_host_is_refused(hosts: tuple[str, ...]) -> None:
    assert refusal_of(head("POST", *(("host", host) for host in hosts))) == "AccessDenied"


def test_a_host_that_was_added_is_taken() -> None:
    guard = RequestGuard({}.get, LOOPBACK_HOSTS.union(["172.17.0.1"]))

    assert refusal_of(head("POST", ("host", "172.17.0.1:4566")), guard) is None
    assert refusal_of(head("POST", ("host", "127.0.0.1:4566")), guard) is None
    assert refusal_of(head("POST", ("host", "172.17.0.2:4566")), guard) == "AccessDenied"


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    "header",
    [
        ("origin", "http://127.0.0.1:8000"),
        ("origin", "null"),
        ("origin", ""),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("sec-fetch-site", "none"),
    ],
)
def test_a_browsers_request_is_refused(method: str, header: tuple[str, str]) -> None:
    assert refusal_of(head(method, ("host", "localhost"), header)) == "AccessDenied"


def test_a_preflight_is_refused_with_or_without_an_origin() -> None:
    assert refusal_of(head("OPTIONS", ("host", "localhost"))) == "AccessDenied"


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (Call("http://localhost/"), "MissingAuthenticationToken"),
        (Call("http://localhost/").sign(Credentials("test", "test")), "InvalidClientTokenId"),
        (Call("http://localhost/").sign(Credentials("111122223333", "test")), "InvalidClientTokenId"),
        (Call("http://localhost/").sign(Credentials(ROOT.access_key_id, "test")), "SignatureDoesNotMatch"),
    ],
)
def test_a_caller_without_a_known_key_and_its_secret_is_refused(call: Call, code: str) -> None:
    with pytest.raises(RefusedRequestError) as caught:
        check_caller(call)

    assert caught.value.code == code


def test_a_caller_with_the_secret_of_its_key_is_taken() -> None:
    check_caller(Call("http://localhost/").sign(ROOT))


def check_caller(call: Call) -> None:
    request = RequestHead("POST", "/", [(name.lower(), value) for name, value in call.headers.items()])
    GUARD.check_signature(GUARD.check_caller(request), request, b"")
