"""Changes of the webhook's secrets: scopes are added, their secrets replaced, and removed."""

import json
from datetime import UTC, datetime

from relaunch.adapters.github.webhook_secrets import DEFAULT_SCOPE, ScopeSecret, is_document, parse_document

MAX_BYTES = 65_536
"""The limit of a secret ("AWS Secrets Manager quotas")."""


class SecretChangeError(ValueError):
    """The change is not possible; nothing was changed."""


class UnknownScopeError(SecretChangeError):
    """The scope has no secret."""


def read_scopes(text: str, previous: str, stored_at: float) -> dict[str, ScopeSecret]:
    """Return the secrets of all scopes: a text is the secret of the default scope, `previous` the one before it.

    Raises:
        MalformedSecretError: the text is a malformed document.
    """
    text = text.strip("\r\n")
    previous = previous.strip("\r\n")
    if is_document(text):
        return parse_document(text)
    return {DEFAULT_SCOPE: ScopeSecret(text, "" if is_document(previous) else previous, stored_at)} if text else {}


def add_scope(scopes: dict[str, ScopeSecret], scope: str, secret: str) -> None:
    """Give a scope its first secret.

    Raises:
        SecretChangeError: it has one.
    """
    if scope in scopes:
        raise SecretChangeError(f"{scope} has a secret already: replace it with `relaunch webhook rotate {scope}`")
    scopes[scope] = ScopeSecret(secret)


def rotate_scope(
    scopes: dict[str, ScopeSecret], scope: str, secret: str, now: float, previous_seconds: float, *, is_leaked: bool
) -> None:
    """Replace the secret of a scope; a leaked one ends at once, another is accepted for `previous_seconds` more.

    Raises:
        UnknownScopeError: the scope has no secret.
        SecretChangeError: the previous secret, which GitHub may still use, is accepted, and would end.
    """
    old = _find(scopes, scope)
    if is_leaked:
        scopes[scope] = ScopeSecret(secret)
        return
    if old.has_previous(now, previous_seconds):
        until = datetime.fromtimestamp(old.replaced_at + previous_seconds, UTC)
        raise SecretChangeError(
            f"the secret of {scope} was replaced lately, and the one before it, which GitHub may still use, is "
            f"accepted until {until:%Y-%m-%d %H:%M} UTC: wait until then, or end both with --leaked"
        )
    scopes[scope] = ScopeSecret(secret, old.secret, now)


def remove_scope(scopes: dict[str, ScopeSecret], scope: str) -> None:
    """Remove the secret of a scope, for which the secret of its owner or the default one signs from then on.

    Raises:
        UnknownScopeError: the scope has no secret.
        SecretChangeError: it is the last one.
    """
    _find(scopes, scope)
    if len(scopes) == 1:
        raise SecretChangeError(
            f"{scope} has the last secret, without which every delivery fails: replace it with "
            f"`relaunch webhook rotate {scope} --leaked`, or delete the webhook in GitHub"
        )
    del scopes[scope]


def write_document(scopes: dict[str, ScopeSecret]) -> str:
    """Return the JSON to store.

    Raises:
        SecretChangeError: it is larger than Secrets Manager takes.
    """
    entries = {scope: _write_entry(secret) for scope, secret in sorted(scopes.items())}
    text = json.dumps({"scopes": entries}, indent=1)
    if len(text) > MAX_BYTES:
        raise SecretChangeError(
            f"{len(scopes)} scopes are more than fit into {MAX_BYTES} bytes: give owners a secret, not repositories"
        )
    return text


def _write_entry(secret: ScopeSecret) -> dict[str, str]:
    if not secret.previous:
        return {"secret": secret.secret}
    replaced_at = datetime.fromtimestamp(secret.replaced_at, UTC).isoformat(timespec="seconds")
    return {"secret": secret.secret, "previous": secret.previous, "replaced_at": replaced_at}


def _find(scopes: dict[str, ScopeSecret], scope: str) -> ScopeSecret:
    try:
        return scopes[scope]
    except KeyError:
        known = ", ".join(sorted(scopes)) or "none"
        raise UnknownScopeError(f"{scope} has no secret of its own; those that have one: {known}") from None
