"""The webhook of a repository on GitHub: found, and made or completed, by the command gh.

A repository's webhook is sent neither workflow_dispatch nor repository_dispatch: only GitHub Apps receive these
("Webhook events and payloads").
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from relaunch_cli import exit_codes
from relaunch_cli.errors import CommandError
from relaunch_cli.repository_setup.findings import Webhook

FOR_APPS_ONLY = frozenset({"workflow_dispatch", "repository_dispatch"})
_SECONDS = 30
_IDEMPOTENT_HINT = "run `relaunch init` again: it finds what was made"


class Gh:
    """Calls GitHub's REST API by gh, with the credentials of whoever is signed in."""

    @property
    def is_there(self) -> bool:
        """Whether gh is installed."""
        return shutil.which("gh") is not None

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Call the API; return what it answers.

        Raises:
            CommandError: gh is not signed in, may not do this, or GitHub does not answer.
        """
        # The body has the secret: it goes by standard input, because arguments are seen by everybody on the machine.
        command = ["gh", "api", "--method", method, path, *(["--input", "-"] if body is not None else [])]
        try:
            done = subprocess.run(  # noqa: S603 - no shell
                command,
                input=json.dumps(body) if body is not None else "",
                capture_output=True,
                encoding="utf-8",
                errors="backslashreplace",
                check=False,
                timeout=_SECONDS,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            why = f"gh did not end within {_SECONDS} seconds" if isinstance(error, subprocess.TimeoutExpired) else error
            raise CommandError(f"GitHub does not answer: {why}", _IDEMPOTENT_HINT, exit_codes.REFUSED) from error
        if done.returncode != 0:
            reason = done.stderr.strip().splitlines()
            raise CommandError(
                f"GitHub refuses {method} {path}: {reason[-1] if reason else 'gh failed'}",
                "sign in as an administrator of the repository: gh auth login --scopes admin:repo_hook",
                exit_codes.REFUSED,
            )
        try:
            return json.loads(done.stdout)
        except ValueError as error:
            raise CommandError(f"gh answers no JSON to {method} {path}", "update gh") from error


def find_webhook(repository: str, base_url: str, events: Iterable[str], gh: Gh) -> Webhook | None:
    """Find the webhook that sends events of a repository to a URL, or below it; None if no event needs one.

    Raises:
        CommandError: GitHub refuses, or does not answer.
    """
    wanted = tuple(sorted(set(events) - FOR_APPS_ONLY))
    if not wanted:
        return None
    url = f"{base_url.rstrip('/')}/{repository}"
    if not gh.is_there:
        hint = (
            f"make it by hand, as `relaunch webhook add {repository}` says, or install gh and run `relaunch init` again"
        )
        return Webhook(repository, url, wanted, obstacle=f"gh is not installed: {hint}")
    try:
        answer = gh.call("GET", f"repos/{repository}/hooks?per_page=100")
    except CommandError as error:
        # Who may not see it may still set up the rest.
        return Webhook(repository, url, wanted, obstacle=f"{error.message}: {error.hint}")
    for hook in _hooks(answer):
        if hook.get("active", True) and str(hook.get("config", {}).get("url", "")).startswith(base_url.rstrip("/")):
            events_of_hook = hook.get("events", [])
            missing = () if "*" in events_of_hook else tuple(each for each in wanted if each not in events_of_hook)
            return Webhook(repository, url, missing, int(hook["id"]))
    return Webhook(repository, url, wanted)


def make_webhook(webhook: Webhook, secret: Callable[[], str], gh: Gh) -> None:
    """Make the webhook, or add the events that it lacks; `secret` returns the secret of the repository's scope.

    Raises:
        CommandError: GitHub refuses, or does not answer.
    """
    hooks = f"repos/{webhook.repository}/hooks"
    if webhook.id is not None:
        gh.call("PATCH", f"{hooks}/{webhook.id}", {"add_events": list(webhook.missing)})
        return
    config = {"url": webhook.url, "content_type": "json", "insecure_ssl": "0", "secret": secret()}
    gh.call("POST", hooks, {"name": "web", "active": True, "events": list(webhook.missing), "config": config})


def _hooks(answer: Any) -> Sequence[Mapping[str, Any]]:
    return [each for each in answer if isinstance(each, dict)] if isinstance(answer, list) else []
