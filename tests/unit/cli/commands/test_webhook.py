"""webhook."""

import json
from datetime import timedelta

import pytest

from fakes.cli_session import flat
from fakes.webhook import sign
from relaunch.adapters.github.signature import REFRESH_SECONDS, SecretRing, read_digest
from relaunch_cli.commands import webhook

HOURS = timedelta(hours=1)


def scopes_of(session):
    return json.loads(session.webhook.load().text)["scopes"]


def accepts(session, scope, secret):
    """Tell whether github_webhook accepts a signature now."""
    store = session.webhook

    def read(stage):
        version = store.load() if stage == "AWSCURRENT" else None
        return (version.text, version.stored_at.timestamp()) if version else None

    ring = SecretRing(read, lambda: session.clock.now().timestamp(), store.previous_seconds)
    return ring.has_signed(scope, b"{}", read_digest(sign(b"{}", secret)))


def test_the_first_scope_keeps_the_default_secret(relaunch, session):
    document = relaunch("webhook", "add", "Acme/Vision", "--json").document

    assert document["scope"] == "acme/vision"
    assert document["url"] == "https://hook.example/acme/vision"
    assert scopes_of(session) == {"/": {"secret": "generated"}, "acme/vision": {"secret": document["secret"]}}
    assert len(document["secret"]) == 64
    assert accepts(session, "acme/vision", document["secret"])
    assert accepts(session, "/", "generated")


def test_the_first_scope_keeps_a_default_secret_that_was_replaced_lately_too(relaunch, session):
    session.webhook.store("newer")
    session.clock.advance(HOURS)

    relaunch("webhook", "add", "acme")

    assert accepts(session, "/", "newer")
    assert accepts(session, "/", "generated")
    session.clock.advance(11 * HOURS)
    assert accepts(session, "/", "newer")
    assert not accepts(session, "/", "generated")


def test_a_new_secret_is_printed_once_with_what_to_do_next(relaunch, session):
    result = relaunch("webhook", "add", "acme/vision", columns=200)
    secret = scopes_of(session)["acme/vision"]["secret"]

    assert secret in result.stdout
    assert "https://hook.example/acme/vision" in result.stdout
    assert "Set the URL and the secret in GitHub now" in result.stderr
    for command in (("webhook", "list"), ("webhook", "list", "--json"), ("webhook", "remove", "acme/vision", "--yes")):
        printed = relaunch(*command)
        assert printed.exit_code == 0
        assert secret not in printed.stdout + printed.stderr
        assert "generated" not in printed.stdout + printed.stderr


def test_a_replaced_secret_is_accepted_for_hours(relaunch, session):
    old = relaunch("webhook", "add", "acme", "--json").document["secret"]

    document = relaunch("webhook", "rotate", "acme", "--json").document

    new = document["secret"]
    assert new != old
    assert document["previous_accepted_until"] == (session.clock.now() + 12 * HOURS).isoformat()
    assert accepts(session, "acme", new)
    assert accepts(session, "acme", old)
    (listed,) = [each for each in relaunch("webhook", "list", "--json").document["scopes"] if each["scope"] == "acme"]
    assert listed["previous_accepted_until"] == document["previous_accepted_until"]
    session.clock.advance(12 * HOURS)
    assert not accepts(session, "acme", old)
    assert accepts(session, "acme", new)
    assert flat(relaunch("webhook", "list").stdout).count(" - ") == 2


def test_a_leaked_secret_and_the_one_before_it_end_at_once(relaunch, session):
    first = relaunch("webhook", "add", "acme", "--json").document["secret"]
    second = relaunch("webhook", "rotate", "acme", "--json").document["secret"]

    result = relaunch("webhook", "rotate", "acme", "--leaked", columns=200)

    assert "The old one is accepted no more within 60 seconds" in result.stderr
    third = scopes_of(session)["acme"]["secret"]
    assert [accepts(session, "acme", each) for each in (first, second, third)] == [False, False, True]


def test_the_default_secret_is_rotated_without_a_scope(relaunch, session):
    document = relaunch("webhook", "rotate", "--json").document

    assert (document["scope"], document["url"]) == ("/", "https://hook.example/")
    assert accepts(session, "/", document["secret"])
    assert accepts(session, "/", "generated")


def test_a_second_rotation_does_not_end_a_secret_that_github_may_still_use(relaunch, session):
    relaunch("webhook", "rotate")
    stored = session.webhook.load()

    result = relaunch("webhook", "rotate")

    assert result.exit_code == 2
    assert "wait until then, or end both with --leaked" in flat(result.stderr)
    assert session.webhook.load() is stored


def test_two_administrators_at_once_lose_nothing(relaunch, session):
    session.webhook.before_write = [
        lambda: relaunch("webhook", "add", "acme/speech"),
        lambda: relaunch("webhook", "add", "acme/text"),
    ]

    assert relaunch("webhook", "add", "acme/vision").exit_code == 0

    assert sorted(scopes_of(session)) == ["/", "acme/speech", "acme/text", "acme/vision"]


def test_of_two_administrators_who_replace_the_same_secret_the_second_is_told(relaunch, session):
    session.webhook.before_write = [lambda: relaunch("webhook", "rotate")]

    result = relaunch("webhook", "rotate")

    assert result.exit_code == 2
    assert "was replaced lately" in result.stderr
    assert scopes_of(session)["/"]["previous"] == "generated"


def test_a_version_that_always_changes_is_an_error(relaunch, session):
    session.webhook.replace = lambda _stored, _text: False

    result = relaunch("webhook", "add", "acme")

    assert result.exit_code == 4
    assert "nothing was changed" in result.stderr
    assert "made current again" in result.stderr


def test_a_removed_scope_is_signed_for_by_the_next_one(relaunch, session):
    secret = relaunch("webhook", "add", "acme", "--json").document["secret"]

    assert relaunch("webhook", "remove", "acme", answer="n\n").exit_code == 130
    assert relaunch("webhook", "remove", "acme").exit_code == 2
    assert accepts(session, "acme", secret)
    assert "was removed" in relaunch("webhook", "remove", "acme", answer="y\n").stdout

    assert not accepts(session, "acme", secret)
    assert list(scopes_of(session)) == ["/"]


@pytest.mark.parametrize(
    ("arguments", "exit_code", "problem"),
    [
        pytest.param(("add", "a/b/c"), 2, "'a/b/c' is no scope", id="no-scope"),
        pytest.param(("add", "/"), 2, "has a secret already: replace it with `relaunch webhook rotate /`", id="there"),
        pytest.param(("rotate", "acme"), 3, "acme has no secret of its own; those that have one: /", id="rotated"),
        pytest.param(("remove", "acme", "--yes"), 3, "acme has no secret of its own", id="removed"),
        pytest.param(("remove", "/", "--yes"), 2, "/ has the last secret", id="last"),
    ],
)
def test_a_change_that_is_not_possible_is_explained_and_changes_nothing(
    relaunch, session, arguments, exit_code, problem
):
    result = relaunch("webhook", *arguments)

    assert result.exit_code == exit_code
    assert problem in flat(result.stderr)
    assert len(session.webhook.versions) == 1


def test_a_malformed_secret_is_named_and_not_shown(relaunch, session):
    session.webhook.store('{"scopes": {"acme": "hunter2"}}')

    for command in (("list",), ("add", "acme/vision"), ("rotate", "acme"), ("remove", "acme", "--yes")):
        result = relaunch("webhook", *command)
        assert result.exit_code == 2
        assert "scope acme of the webhook's secrets must be an object" in flat(result.stderr)
        assert "hunter2" not in result.stdout + result.stderr


def test_more_scopes_than_fit_are_refused(relaunch, session):
    scopes = {f"acme/{number}": {"secret": "s" * 64} for number in range(700)}
    session.webhook.store(json.dumps({"scopes": scopes}))

    result = relaunch("webhook", "add", "acme/vision")

    assert result.exit_code == 2
    assert "more than fit into 65536 bytes" in flat(result.stderr)


def test_the_printed_time_is_that_of_the_function():
    assert webhook._HELD_SECONDS == REFRESH_SECONDS
