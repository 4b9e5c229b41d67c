import os

import pytest

from relaunch_local.demo.runner import shorten_url, without_aws_settings


def test_the_users_aws_settings_and_proxies_are_kept_away_and_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    with without_aws_settings():
        assert "AWS_PROFILE" not in os.environ
        assert "https_proxy" not in os.environ
        assert (os.environ["AWS_CONFIG_FILE"], os.environ["AWS_SHARED_CREDENTIALS_FILE"]) == (os.devnull, os.devnull)
        os.environ["AWS_REGION"] = "eu-central-1"

    assert os.environ["AWS_PROFILE"] == "production"
    assert os.environ.get("AWS_REGION") != "eu-central-1"


def test_a_function_url_fits_on_the_line() -> None:
    url = "http://127.0.0.1:40215/_aws/lambda-url/x451waak2z20tap8dc9v0zq9zln3mppo/"

    assert shorten_url(f"the webhook is at {url}") == "the webhook is at http://127.0.0.1:40215/_aws/lambda-url/…/"
