"""`relaunch webhook`."""

import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from relaunch.adapters.github.secret_changes import (
    SecretChangeError,
    UnknownScopeError,
    add_scope,
    read_scopes,
    remove_scope,
    rotate_scope,
    write_document,
)
from relaunch.adapters.github.webhook_secrets import MalformedSecretError, ScopeSecret, is_document, read_scope
from relaunch_cli import exit_codes
from relaunch_cli.confirmation import confirm
from relaunch_cli.errors import CommandError
from relaunch_cli.lookup import connect
from relaunch_cli.options import DEFAULT_STACK, Json, Stack
from relaunch_cli.views.screen import print_json, print_note, print_result, print_text
from relaunch_cli.views.webhook import ScopeRow, render_scopes, render_secret

if TYPE_CHECKING:
    from relaunch_cli.aws.connected import Connection
    from relaunch_cli.aws.webhook_secret import StoredSecret, WebhookSecretStore

_ATTEMPTS = 5
_HELD_SECONDS = 60  # what a container has read is used for so long (adapters.github.signature.REFRESH_SECONDS)
_Change = Callable[["dict[str, ScopeSecret]"], None]
_Scope = Annotated[str, typer.Argument(metavar="SCOPE", help="OWNER, OWNER/REPO, or / for the default secret.")]


def list_(context: typer.Context, *, as_json: Json = False, stack: Stack = DEFAULT_STACK) -> None:
    """List the scopes that have a secret, and until when a previous one is accepted; no secret is shown."""
    connection = connect(context, stack)
    store = connection.webhook
    now = connection.deps.clock.now()
    scopes = _load_scopes(store, store.load(), now)
    rows = [_make_row(store, scope, scopes[scope], now) for scope in sorted(scopes)]
    if as_json:
        print_json({"scopes": [row.to_json() for row in rows]})
    else:
        print_result(render_scopes(rows, now))


def add(
    context: typer.Context,
    scope: Annotated[str, typer.Argument(metavar="OWNER[/REPO]", help="The owner or repository on GitHub.")],
    *,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Give a repository, or all repositories of an owner, a secret of their own, and print it once.

    From then on no other secret signs for them.
    """
    connection = connect(context, stack)
    scope = _read_scope(scope)
    secret = _make_secret()
    row = _change(connection, scope, lambda scopes: add_scope(scopes, scope, secret))
    _print_secret(
        row,
        secret,
        f"Set the URL and the secret in GitHub now, at the webhook of {scope} or of its GitHub App. Within "
        f"{_HELD_SECONDS} seconds deliveries of {scope} that are signed with another secret fail with 403; GitHub "
        "keeps them for three days, to be redelivered from the webhook's page.",
        as_json=as_json,
    )


def rotate(
    context: typer.Context,
    scope: _Scope = "/",
    *,
    is_leaked: Annotated[
        bool, typer.Option("--leaked", help="End the old secret, and the one before it, at once.")
    ] = False,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Replace a secret and print the new one once.

    The old one is accepted for hours more (the stack's WebhookPreviousSecretHours), unless it has leaked.
    """
    connection = connect(context, stack)
    scope = _read_scope(scope)
    secret = _make_secret()
    now = connection.deps.clock.now().timestamp()
    seconds = connection.webhook.previous_seconds
    row = _change(
        connection, scope, lambda scopes: rotate_scope(scopes, scope, secret, now, seconds, is_leaked=is_leaked)
    )
    until = f"accepted until {row.previous_until:%Y-%m-%d %H:%M} UTC" if row.previous_until else "accepted no more"
    held = "" if row.previous_until else f" within {_HELD_SECONDS} seconds; docs/webhook-secrets.md says what is next"
    _print_secret(row, secret, f"Set the secret in GitHub now. The old one is {until}{held}.", as_json=as_json)


def remove(
    context: typer.Context,
    scope: _Scope,
    *,
    is_sure: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    as_json: Json = False,
    stack: Stack = DEFAULT_STACK,
) -> None:
    """Remove the secret of a scope, for which the secret of its owner or the default one signs from then on."""
    connection = connect(context, stack)
    scope = _read_scope(scope)
    if not is_sure:
        confirm(f"Remove the secret of {scope}? Deliveries to its URL fail from then on.")
    row = _change(connection, scope, lambda scopes: remove_scope(scopes, scope))
    if as_json:
        print_json({"removed": row.to_json()})
    else:
        print_text(f"the secret of {scope} was removed; it is accepted for up to {_HELD_SECONDS} seconds more")


def _change(connection: "Connection", scope: str, change: _Change) -> "ScopeRow":
    """Read, change and store the secrets until nobody else stores others in between; return what is stored."""
    store = connection.webhook
    for _ in range(_ATTEMPTS):
        stored = store.load()
        now = connection.deps.clock.now()
        scopes = _load_scopes(store, stored, now)
        try:
            change(scopes)
            text = write_document(scopes)
        except UnknownScopeError as error:
            raise CommandError(str(error), "`relaunch webhook list` lists them", exit_codes.NOT_FOUND) from error
        except SecretChangeError as error:
            raise CommandError(str(error)) from error
        if store.replace(stored, text):
            return _make_row(store, scope, scopes.get(scope, ScopeSecret("")), now)
    raise CommandError(
        f"nothing was changed: the stored version was replaced by another one {_ATTEMPTS} times in between",
        "try again; if an older version was made current again, store its text once more with "
        "`aws secretsmanager put-secret-value`",
        exit_codes.UNAVAILABLE,
    )


def _load_scopes(store: "WebhookSecretStore", stored: "StoredSecret", now: datetime) -> "dict[str, ScopeSecret]":
    stored_at = stored.stored_at.timestamp()
    is_recent = now.timestamp() < stored_at + store.previous_seconds
    previous = store.load_previous() if is_recent and not is_document(stored.text) else ""
    try:
        return read_scopes(stored.text, previous, stored_at)
    except MalformedSecretError as error:
        hint = "correct it with `aws secretsmanager put-secret-value`; docs/webhook-secrets.md has its form"
        raise CommandError(str(error), hint) from error


def _make_row(store: "WebhookSecretStore", scope: str, secret: "ScopeSecret", now: datetime) -> "ScopeRow":
    url = store.url + scope.strip("/")
    if not secret.has_previous(now.timestamp(), store.previous_seconds):
        return ScopeRow(scope, url)
    return ScopeRow(scope, url, datetime.fromtimestamp(secret.replaced_at + store.previous_seconds, UTC))


def _read_scope(text: str) -> str:
    scope = read_scope(text)
    if scope is None:
        raise CommandError(f"{text!r} is no scope", "write OWNER, OWNER/REPO, or / for the default secret")
    return scope


def _make_secret() -> str:
    return secrets.token_hex(32)


def _print_secret(row: "ScopeRow", secret: str, next_step: str, *, as_json: bool) -> None:
    if as_json:
        print_json({**row.to_json(), "secret": secret})
        return
    print_result(render_secret(row, secret))
    print_note(f"{next_step} The secret is not shown again.")


group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Manage the secrets of the GitHub webhook.")
group.command("list")(list_)
group.command()(add)
group.command()(rotate)
group.command()(remove)
