"""The header of the distribution in front of the webhook."""

import pytest

from relaunch.adapters.github.origin_header import HEADER, has_origin_secret, read_secrets

NEW, OLD = "n" * 32, "o" * 32


@pytest.mark.parametrize(
    ("text", "secrets"),
    [("", ()), (" , ", ()), (NEW, (NEW.encode(),)), (f"{NEW}, {OLD}", (NEW.encode(), OLD.encode()))],
)
def test_an_empty_secret_is_none(text, secrets):
    assert read_secrets(text) == secrets


@pytest.mark.parametrize(
    ("headers", "is_known"),
    [
        ({HEADER: NEW}, True),
        ({HEADER: OLD}, True),
        ({HEADER: NEW[:-1]}, False),
        ({HEADER: ""}, False),
        ({HEADER: f"{NEW},{OLD}"}, False),
        ({HEADER: "\u00fc\ud800"}, False),
        ({}, False),
    ],
)
def test_one_of_the_secrets_is_required(headers, is_known):
    assert has_origin_secret(headers, read_secrets(f"{NEW},{OLD}")) is is_known


def test_without_a_secret_every_request_is_let_in():
    assert has_origin_secret({}, ())
