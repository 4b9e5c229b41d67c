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


def test_a_refusal_is_told_with_what_mends_it(tmp_path, monkeypatch):
    gh = FakeGh(tmp_path, monkeypatch)
    gh.fail("some context\ngh: Not Found (HTTP 404)")

    with pytest.raises(CommandError, match=r"GitHub refuses GET .*: gh: Not Found \(HTTP 404\)") as refused:
        find("push")

    assert "gh auth login --scopes admin:repo_hook" in refused.value.hint


@pytest.mark.parametrize(("answer", "is_understood"), [("no json", False), ('{"message": "odd"}', True)])
def test_an_answer_that_is_not_understood_makes_no_second_webhook(tmp_path, monkeypatch, answer, is_understood):
    FakeGh(tmp_path, monkeypatch, answer)

    if is_understood:
        assert find("push") == Webhook("acme/vision", URL, ("push",))
    else:
        with pytest.raises(CommandError, match="gh answers no JSON"):
            find("push")
