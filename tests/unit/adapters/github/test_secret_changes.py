import pytest

from relaunch.adapters.github.secret_changes import read_scopes, write_document
from relaunch.adapters.github.webhook_secrets import MalformedSecretError, ScopeSecret, parse_document


def fields_of(scopes):
    return {name: (each.secret, each.previous, each.replaced_at) for name, each in scopes.items()}


def test_what_is_written_is_read_again():
    scopes = {"/": ScopeSecret("a"), "acme/vision": ScopeSecret("new", "old", 1793709042.0)}

    assert fields_of(parse_document(write_document(scopes))) == fields_of(scopes)
    assert fields_of(read_scopes(write_document(scopes), "of the stage", 7.0)) == fields_of(scopes)


@pytest.mark.parametrize(
    ("text", "previous", "scopes"),
    [
        ("text\n", "", {"/": ("text", "", 7.0)}),
        ("text", "before\n", {"/": ("text", "before", 7.0)}),
        ("text", '{"scopes": {}}', {"/": ("text", "", 7.0)}),
        ("", "before", {}),
    ],
)
def test_a_text_is_the_secret_of_the_default_scope(text, previous, scopes):
    assert fields_of(read_scopes(text, previous, 7.0)) == scopes


def test_a_malformed_document_is_no_text():
    with pytest.raises(MalformedSecretError):
        read_scopes("{", "", 7.0)
