import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.json_values import JSON
from relaunch.adapters.github.webhook_secrets import (
    MalformedSecretError,
    find_signing_scope,
    parse_document,
    read_scope,
)

SECRET = "hunter2-hunter2-hunter2"
ENTRY = {"secret": SECRET}


@pytest.mark.parametrize(
    ("path", "scope"),
    [
        ("", "/"),
        ("/", "/"),
        ("//", "/"),
        ("/acme", "acme"),
        ("/Acme/", "acme"),
        ("/acme/vision", "acme/vision"),
        ("/Acme/Vision.js_1-x", "acme/vision.js_1-x"),
        ("/acme/vision/hooks", None),
        ("/acme//vision", None),
        ("/favicon.ico", None),
        ("/acme_corp/vision", "acme_corp/vision"),
        ("/acme/%2e", None),
        ("/acme/vision\n", None),
        ("/ácme", None),
        ("/\u212aernel", None),
        ("/acme/", "acme"),
        ("/acme vision", None),
        (f"/{'a' * 39}/{'b' * 100}", f"{'a' * 39}/{'b' * 100}"),
        (f"/{'a' * 39}/{'b' * 101}", None),
        (f"/{'a' * 8000}", None),
    ],
)
def test_the_path_names_the_scope(path: str, scope: str | None) -> None:
    assert read_scope(path) == scope


def repository(name: Any) -> dict[str, Any]:
    return {"repository": {"full_name": name}}


@pytest.mark.parametrize(
    ("payload", "scope"),
    [
        (repository("acme/vision"), "acme/vision"),
        (repository("Acme/Vision"), "acme/vision"),
        (repository("acme/speech"), "acme"),
        (repository("acme/vision/x"), "acme"),
        (repository("mallory/vision"), "/"),
        (repository("acme-labs/vision"), "/"),
        ({**repository("mallory/x"), "organization": {"login": "acme"}}, "/"),
        ({"organization": {"login": "ACME"}}, "acme"),
        ({**repository(None), "organization": {"login": "acme"}}, "acme"),
        (repository(7), "/"),
        ({"repository": "acme/vision"}, "/"),
        ({}, "/"),
    ],
)
def test_the_most_specific_scope_with_a_secret_signs(payload: dict[str, Any], scope: str) -> None:
    assert find_signing_scope({"/", "acme", "acme/vision"}, payload) == scope


def test_without_a_default_only_named_scopes_sign() -> None:
    assert find_signing_scope({"acme/vision"}, repository("acme/vision")) == "acme/vision"
    assert find_signing_scope({"acme/vision"}, repository("acme/speech")) is None
    assert find_signing_scope({"acme/vision"}, {}) is None


def test_a_document_is_read() -> None:
    replaced = {"secret": "new", "previous": "old", "replaced_at": "2026-11-03T12:30:42Z"}
    parsed = parse_document(json.dumps({"scopes": {"/": ENTRY, "Acme/Vision": replaced}}))

    assert sorted(parsed) == ["/", "acme/vision"]
    assert (parsed["/"].secret, parsed["/"].previous) == (SECRET, "")
    assert not parsed["/"].has_previous(0.0, 1e12)
    vision = parsed["acme/vision"]
    assert (vision.secret, vision.previous, vision.replaced_at) == ("new", "old", 1793709042.0)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param('{"scopes": {"/": {"secret": "' + SECRET, "at line 1, column 29", id="cut-off"),
        pytest.param("{" * 100_000, "is none", id="nested"),
        pytest.param("{}", "must have an object `scopes`", id="no-scopes"),
        pytest.param('{"scopes": []}', "must have an object `scopes`", id="scopes-are-a-list"),
        pytest.param(json.dumps({"scopes": {}, SECRET: 1}), "and no other key", id="other-key"),
        pytest.param(json.dumps({"scopes": {SECRET + "!": ENTRY}}), "name of scope 1 .* neither", id="no-scope"),
        pytest.param(json.dumps({"scopes": {"a/b": ENTRY, "A/B": ENTRY}}), "name of scope 2 .* twice", id="twice"),
        pytest.param(json.dumps({"scopes": {"acme": SECRET}}), "scope acme .* must be an object", id="text"),
        pytest.param(json.dumps({"scopes": {"acme": {}}}), "scope acme .* must be an object", id="no-secret"),
        pytest.param(
            json.dumps({"scopes": {"acme": {**ENTRY, "previuos": SECRET}}}), "must be an object with", id="typo"
        ),
        pytest.param(
            json.dumps({"scopes": {"acme": {**ENTRY, "previous": SECRET}}}), "must be an object with", id="no-time"
        ),
        pytest.param(json.dumps({"scopes": {"acme": {"secret": ""}}}), "empty or no text", id="empty"),
        pytest.param(json.dumps({"scopes": {"acme": {"secret": 7}}}), "empty or no text", id="number"),
        *(
            pytest.param(
                json.dumps({"scopes": {"acme": {**ENTRY, "previous": "x", "replaced_at": at}}}),
                "replaced_at of scope acme",
                id=at,
            )
            for at in ("yesterday", "2026-11-03T12:30:42", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00")
        ),
    ],
)
def test_a_malformed_document_is_named_without_a_secret(text: str, problem: str) -> None:
    with pytest.raises(MalformedSecretError, match=problem) as error:
        parse_document(text)
    assert SECRET not in str(error.value)
    assert error.value.__cause__ is None


@given(st.builds(json.dumps, st.dictionaries(st.sampled_from(["scopes", "x"]), JSON)) | st.text().map("{{{}".format))
def test_any_text_is_a_document_or_malformed(text: str) -> None:
    try:
        parsed = parse_document(text)
    except MalformedSecretError:
        return
    assert all(each.secret for each in parsed.values())
