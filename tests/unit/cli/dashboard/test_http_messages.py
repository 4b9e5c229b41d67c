"""Requests as they come, whatever is in them."""

import pytest

from relaunch_cli.dashboard.http_messages import Request, Response


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/", ()),
        ("/jobs/resnet-1", ("jobs", "resnet-1")),
        ("/jobs/a%2Fb%3Fc%23d", ("jobs", "a/b?c#d")),
        ("/jobs/%e4%ff", ("jobs", "\ufffd\ufffd")),
        ("/jobs/%ED%A0%80", ("jobs", "\ufffd\ufffd\ufffd")),
        ("/jobs/%", ("jobs", "%")),
        ("/jobs/%00?x=/y", ("jobs", "\x00")),
        ("//[/x", ("[", "x")),
        ("http://[", ("http:", "[")),
        ("http://127.0.0.1:8000/jobs", ("http:", "127.0.0.1:8000", "jobs")),
        ("*", ("*",)),
        ("/jobs#x?y", ("jobs",)),
    ],
)
def test_a_path_is_decoded_part_by_part(target: str, path: tuple[str, ...]) -> None:
    assert Request("GET", target).path == path


def test_a_parameter_that_is_empty_is_none_and_a_field_that_is_empty_is_one() -> None:
    request = Request("POST", "/?a=&b=+x+&b=y", body=b"c=&d=1")

    assert (request.parameter("a"), request.parameter("b"), request.parameter("c")) == ("", "x", "")
    assert dict(request.form) == {"c": [""], "d": ["1"]}


def test_too_many_parameters_are_none() -> None:
    many = "&".join(f"p{number}=1" for number in range(10_000))
    request = Request("POST", f"/?{many}", body=many.encode())

    assert (request.query, request.form) == ({}, {})


def test_a_body_that_is_no_text_is_replaced() -> None:
    assert Request("POST", "/", body=b"a=\xff%ff&\xff").field("a") == "\ufffd\ufffd"


def test_every_answer_lets_its_page_load_nothing_from_elsewhere() -> None:
    headers = Response(200).all_headers

    assert headers["Content-Security-Policy"].startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in headers["Content-Security-Policy"]
    # With no-referrer a browser sends `Origin: null` with a form, and the guard would refuse it.
    assert headers["Referrer-Policy"] == "same-origin"
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Frame-Options"] == "DENY"
