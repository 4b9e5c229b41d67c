"""Who may ask the dashboard: its own pages, of a browser that was given the token."""

from dataclasses import replace

import pytest

from fakes.dashboard_world import own
from relaunch_cli.dashboard.guard import FORM_FIELD, Guard, RefusedError
from relaunch_cli.dashboard.http_messages import Request

GUARD = Guard(8000, "t0ken", "f0rm")
OTHER = Guard(8001, "t0ken")


def asked(**headers: str) -> Request:
    return own(8000, GUARD, **headers)


def is_refused(request: Request) -> bool:
    try:
        GUARD.check(request)
    except RefusedError:
        return True
    return False


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "LOCALHOST:8000"])
def test_its_own_pages_may_ask(host: str) -> None:
    assert not is_refused(asked(host=host))


@pytest.mark.parametrize(
    "host",
    [
        *("", "127.0.0.1", "127.0.0.1:8001", "localhost:80", "localhost.:8000", "attacker.example:8000", "[::1]:8000"),
        *("127.0.0.1.attacker.example:8000", "0.0.0.0:8000", "2130706433:8000", "127.1:8000", "127.0.0.1:8000x"),
    ],
)
def test_another_name_is_refused_also_with_the_token(host: str) -> None:
    assert is_refused(asked(host=host))
    with pytest.raises(RefusedError):
        GUARD.is_entry(own(8000, GUARD, target="/?token=t0ken", host=host))


@pytest.mark.parametrize(
    ("headers", "refused"),
    [
        ({"sec_fetch_site": "none"}, False),
        ({"sec_fetch_site": "same-site"}, True),  # a page of another port
        ({"sec_fetch_site": "cross-site"}, True),
        ({"origin": "http://127.0.0.1:8000"}, False),
        ({"origin": "http://127.0.0.1:8001"}, True),
        ({"origin": "http://localhost:8000"}, True),
        ({"origin": "https://127.0.0.1:8000"}, True),
        ({"origin": "null"}, True),
        ({"origin": ""}, True),
        ({"cookie": ""}, True),
        ({"cookie": "relaunch-dashboard-8000=other"}, True),
        ({"cookie": OTHER.cookie}, True),  # browsers send it to every port
        ({"cookie": "relaunch-dashboard-8000=t0ken\xe4"}, True),
        ({"cookie": "relaunch-dashboard-8000"}, True),
        ({"cookie": "a=b; relaunch-dashboard-8000=t0ken; c"}, False),
    ],
)
def test_another_page_or_program_is_refused(headers: dict[str, str], refused: bool) -> None:
    assert is_refused(asked(**headers)) is refused


@pytest.mark.parametrize("name", ["host", "origin", "cookie"])
def test_a_header_that_comes_twice_is_none(name: str) -> None:
    request = asked(origin="http://127.0.0.1:8000")

    assert is_refused(replace(request, headers=[*request.headers, (name, request.header(name))]))


@pytest.mark.parametrize(
    ("body", "refused"),
    [(f"{FORM_FIELD}=f0rm", False), (f"{FORM_FIELD}=other", True), (f"{FORM_FIELD}=%C3%A4%ED%A0%80", True), ("", True)],
)
def test_a_form_has_a_secret_of_its_own(body: str, refused: bool) -> None:
    assert is_refused(own(8000, GUARD, "POST", "/", body.encode())) is refused


def test_the_address_lets_a_browser_in_from_wherever_it_was_opened() -> None:
    assert GUARD.url == "http://127.0.0.1:8000/?token=t0ken"
    assert GUARD.is_entry(own(8000, GUARD, target="/?token=t0ken", cookie="", sec_fetch_site="cross-site"))
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(GUARD.cookie.split("; "))


@pytest.mark.parametrize(
    ("method", "target"),
    [("POST", "/?token=t0ken"), ("HEAD", "/?token=t0ken"), ("GET", "/jobs?token=t0ken"), ("GET", "/")],
)
def test_nothing_else_is_an_entry(method: str, target: str) -> None:
    assert not GUARD.is_entry(own(8000, GUARD, method, target))


@pytest.mark.parametrize("token", ["other", "t0ken0", "%E4", "%ED%A0%80", "\xe4"])
def test_another_token_is_refused(token: str) -> None:
    with pytest.raises(RefusedError, match="another run"):
        GUARD.is_entry(own(8000, GUARD, target=f"/?token={token}"))


def test_each_run_has_secrets_of_its_own_and_shows_none() -> None:
    first = Guard(8000)

    assert len({first.token, first.form_token, Guard(8000).token}) == 3
    assert first.token not in repr(first)
    assert first.form_token not in repr(first)
