from pathlib import Path

import pytest

from relaunch_cli.errors import CommandError
from relaunch_cli.repository_setup.findings import Webhook
from relaunch_cli.repository_setup.github_webhook import Gh, find_webhook, make_webhook
from unit.cli.repository_setup.fake_gh import FakeGh

BASE = "https://hook.example/"
URL = "https://hook.example/acme/vision"


def find(*events: str) -> Webhook | None:
    return find_webhook("acme/vision", BASE, events, Gh())


def test_dispatches_need_no_webhook_because_none_is_sent_them(tmp_path, monkeypatch):
    FakeGh(tmp_path, monkeypatch)

    assert find("workflow_dispatch", "repository_dispatch") is None
    assert find() is None


def test_a_webhook_is_made_with_its_secret_which_no_argument_has(tmp_path: Path, monkeypatch):
    others = [{"id": 1, "config": {"url": "https://other.example/"}, "events": ["push"]}, "malformed", {"id": 2}]
    gh = FakeGh(tmp_path, monkeypatch, others)
    found = find("push", "release", "workflow_dispatch")
    assert found == Webhook("acme/vision", URL, ("push", "release"))

    make_webhook(found, lambda: "the secret", Gh())

    method, path, body = gh.calls[-1]
    assert (method, path) == ("POST", "repos/acme/vision/hooks")
    assert body["config"] == {"url": URL, "content_type": "json", "insecure_ssl": "0", "secret": "the secret"}
    assert (body["name"], body["active"], body["events"]) == ("web", True, ["push", "release"])
    assert "the secret" not in gh.text


@pytest.mark.parametrize(
    ("events", "missing"), [(["push"], ("release",)), (["push", "release"], ()), (["*"], ()), ([], ("push", "release"))]
)
def test_a_webhook_that_is_there_gets_what_it_lacks(tmp_path, monkeypatch, events, missing):
    gh = FakeGh(tmp_path, monkeypatch, [{"id": 5, "config": {"url": "https://hook.example/"}, "events": events}])
    found = find("release", "push")

    assert found == Webhook("acme/vision", URL, missing, 5)
    make_webhook(found, lambda: "never asked for", Gh())

    assert gh.calls[-1] == ("PATCH", "repos/acme/vision/hooks/5", {"add_events": list(missing)})


def test_without_gh_it_says_how_to_make_it_by_hand(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    found = find("push")

    assert found is not None
    assert "gh is not installed: make it by hand, as `relaunch webhook add acme/vision` says" in found.obstacle


def test_who_may_not_see_webhooks_is_told_and_sets_up_the_rest(tmp_path, monkeypatch):
    gh = FakeGh(tmp_path, monkeypatch)
    gh.fail("some context\ngh: Not Found (HTTP 404)")

    found = find("push")

    assert found is not None
    assert "GitHub refuses GET repos/acme/vision/hooks" in found.obstacle
    assert "gh: Not Found (HTTP 404)" in found.obstacle
    assert "gh auth login --scopes admin:repo_hook" in found.obstacle


def test_a_webhook_that_cannot_be_made_is_an_error(tmp_path, monkeypatch):
    gh = FakeGh(tmp_path, monkeypatch)
    found = find("push")
    assert found is not None
    gh.fail("gh: Forbidden (HTTP 403)")

    with pytest.raises(CommandError, match=r"GitHub refuses POST .*Forbidden"):
        make_webhook(found, lambda: "secret", Gh())


@pytest.mark.parametrize("answer", ["no json", '{"message": "odd"}'])
def test_an_answer_that_is_not_understood_makes_no_second_webhook(tmp_path, monkeypatch, answer):
    FakeGh(tmp_path, monkeypatch, answer)

    found = find("push")

    assert found is not None
    assert found.is_needed == (answer != "no json")


def test_a_webhook_that_is_switched_off_is_not_there(tmp_path, monkeypatch):
    hook = {"id": 5, "active": False, "config": {"url": "https://hook.example/"}, "events": ["push"]}
    FakeGh(tmp_path, monkeypatch, [hook])

    assert find("push") == Webhook("acme/vision", URL, ("push",))
