"""The secrets of the webhook by scope, as they are stored in one secret of Secrets Manager.

A scope is `/` (the default), an owner or `owner/repository`, in lower case; the path of the webhook's URL names it, so
that the secret is known before the body is read. Of the scopes that a repository lies in, the most specific one that
has a secret is the only one whose secret may sign for it. What is stored is a text, the secret of the default scope, or
JSON: {"scopes": {"acme/vision": {"secret": "…", "previous": "…", "replaced_at": "2026-11-03T12:30:42Z"}}}.
Imports are kept to a minimum for the cold start of github_webhook.
"""

import json
from collections.abc import Collection, Mapping
from datetime import datetime

DEFAULT_SCOPE = "/"
_OWNER = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")  # the logins of managed users have a `_`
_NAME = _OWNER | {"."}
# GitHub's owners have up to 39 characters, and repositories 100. A scope is logged before a signature is checked.
_MAX_SCOPE_LENGTH = 140
_FIRST_YEAR = 1970
_LAST_YEAR = 9999
_REPLACED = frozenset(("secret", "previous", "replaced_at"))


class MalformedSecretError(Exception):
    """The stored secret cannot be read; the message says why and contains nothing of it but names of scopes."""


class ScopeSecret:
    """The secret of a scope; `previous` is accepted for a while after `replaced_at`, in seconds since 1970.

    `previous` is empty if there is none.
    """

    __slots__ = ("previous", "replaced_at", "secret")

    def __init__(self, secret: str, previous: str = "", replaced_at: float = 0.0) -> None:
        self.secret = secret
        self.previous = previous
        self.replaced_at = replaced_at

    def has_previous(self, now: float, previous_seconds: float) -> bool:
        """Return whether the previous secret is still accepted."""
        return bool(self.previous) and now < self.replaced_at + previous_seconds


def read_scope(path: str) -> str | None:
    """Return the scope that the path of a URL names, None if it names none."""
    scope = path.strip("/").lower() if path.isascii() else path
    if not scope:
        return DEFAULT_SCOPE
    owner, slash, name = scope.partition("/")
    is_scope = owner and _OWNER.issuperset(owner) and (not slash or (name and _NAME.issuperset(name)))
    return scope if is_scope and len(scope) <= _MAX_SCOPE_LENGTH else None


def find_signing_scope(scopes: Collection[str], payload: Mapping[str, object]) -> str | None:
    """Return the scope whose secret signs for the repository, else the organization, that a payload names.

    A payload that names neither is signed with the secret of the default scope.
    """
    repository = find_repository(payload)
    owner = repository.partition("/")[0]
    return next((scope for scope in (repository, owner, DEFAULT_SCOPE) if scope in scopes), None)


def find_repository(payload: Mapping[str, object]) -> str:
    """Return the repository that a payload names, the owner if it names an organization only, else an empty string."""
    for member, field in (("repository", "full_name"), ("organization", "login")):
        named = payload.get(member)
        name = named.get(field) if isinstance(named, Mapping) else None
        if isinstance(name, str):
            return name.lower()
    return ""


def is_document(text: str) -> bool:
    """Return whether a stored text is JSON; any other text is the secret of the default scope."""
    return text.lstrip().startswith("{")


def parse_document(text: str) -> dict[str, ScopeSecret]:
    """Parse a stored JSON document.

    Raises:
        MalformedSecretError: it is not as the module says.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f" at line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        raise MalformedSecretError(f"the webhook's secret begins like JSON and is none{where}") from None
    scopes = document.get("scopes")
    if not isinstance(scopes, dict) or len(document) != 1:
        raise MalformedSecretError("the JSON of the webhook's secret must have an object `scopes`, and no other key")
    parsed: dict[str, ScopeSecret] = {}
    for number, (name, entry) in enumerate(scopes.items(), 1):
        scope = read_scope(name)
        if scope is None or scope in parsed:
            # What stands in the place of a name may be a secret.
            problem = "there twice" if scope else "neither /, nor an owner, nor owner/repository"
            raise MalformedSecretError(f"the name of scope {number} of the webhook's secrets is {problem}")
        parsed[scope] = _parse_entry(scope, entry)
    return parsed


def _parse_entry(scope: str, entry: object) -> ScopeSecret:
    if not isinstance(entry, dict) or entry.keys() not in ({"secret"}, _REPLACED):
        raise MalformedSecretError(
            f"scope {scope} of the webhook's secrets must be an object with `secret`, or with `secret`, `previous` and "
            "`replaced_at`"
        )
    if not all(isinstance(value, str) and value for value in entry.values()):
        raise MalformedSecretError(f"scope {scope} of the webhook's secrets has a value that is empty or no text")
    return ScopeSecret(entry["secret"], entry.get("previous", ""), _parse_time(scope, entry.get("replaced_at")))


def _parse_time(scope: str, text: str | None) -> float:
    if text is None:
        return 0.0
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    # Nothing was replaced before there was a webhook; the first and last years have no time in every time zone.
    if at is None or at.tzinfo is None or not _FIRST_YEAR <= at.year < _LAST_YEAR:
        raise MalformedSecretError(f"replaced_at of scope {scope} of the webhook's secrets is no time with a time zone")
    return at.timestamp()
