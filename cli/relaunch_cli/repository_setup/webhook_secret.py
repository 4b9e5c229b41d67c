"""The webhook's secret of one repository."""

import secrets
from datetime import datetime
from typing import Any

from relaunch.adapters.github.secret_changes import SecretChangeError, add_scope, read_scopes, write_document
from relaunch.adapters.github.webhook_secrets import MalformedSecretError, is_document
from relaunch_cli import exit_codes
from relaunch_cli.errors import CommandError

_ATTEMPTS = 5


def secret_of(repository: str, store: Any, now: datetime) -> str:
    """Return the secret of a repository's scope; it gets one if it has none. `store` is a WebhookSecretStore.

    Raises:
        CommandError: what is stored is malformed, full, or changed again and again.
        ClientError, BotoCoreError: a call failed.
    """
    for _ in range(_ATTEMPTS):
        stored = store.load()
        is_recent = now.timestamp() < stored.stored_at.timestamp() + store.previous_seconds
        previous = store.load_previous() if is_recent and not is_document(stored.text) else ""
        try:
            scopes = read_scopes(stored.text, previous, stored.stored_at.timestamp())
            if repository in scopes:
                return scopes[repository].secret
            add_scope(scopes, repository, secrets.token_hex(32))
            text = write_document(scopes)
        except (MalformedSecretError, SecretChangeError) as error:
            raise CommandError(str(error), "docs/webhook-secrets.md has its form") from error
        if store.replace(stored, text):
            return scopes[repository].secret
    raise CommandError(
        f"the webhook's secret was replaced {_ATTEMPTS} times in between", "try again", exit_codes.UNAVAILABLE
    )
