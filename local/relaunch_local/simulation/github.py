"""GitHub's webhooks and their deliveries, as its REST API lists and redelivers them; it repeats none by itself."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from relaunch.core.triggers.failed_deliveries import DeliveryAttempt
from relaunch.ports import PermanentError
from relaunch.ports.deliveries import AttemptPage

_KEPT = timedelta(days=3)


class GithubWebhooks:
    """Implements WebhookApi. `send` makes another attempt of a delivery, by webhook and guid."""

    def __init__(self, now: Callable[[], datetime], send: Callable[[str, str], None], page: int = 100) -> None:
        self._now = now
        self._send = send
        self._page = page
        self._number = 0
        self.webhooks: defaultdict[str, list[str]] = defaultdict(list)
        """The webhooks of `repos/acme/vision` or `orgs/acme`."""
        self.attempts: defaultdict[str, list[DeliveryAttempt]] = defaultdict(list)
        """The attempts of a webhook, oldest first."""

    def add_webhook(self, owner: str, number: int) -> str:
        """Add a webhook that delivers to the stack; return its path."""
        webhook = f"{owner}/hooks/{number}"
        self.webhooks[owner].append(webhook)
        return webhook

    def note_attempt(self, webhook: str, guid: str, status_code: int) -> DeliveryAttempt:
        """Note an attempt that was answered now, with 0 if it was not."""
        self._number += 1
        attempt = DeliveryAttempt(self._number, guid, self._now(), status_code)
        self.attempts[webhook].append(attempt)
        return attempt

    def find_webhooks(self, owner: str) -> Sequence[str]:
        return self.webhooks[owner]

    def list_attempts(self, webhook: str, cursor: str) -> AttemptPage:
        kept = [each for each in reversed(self.attempts[webhook]) if each.delivered_at > self._now() - _KEPT]
        rest = [each for each in kept if not cursor or each.attempt_id <= int(cursor)]
        older = rest[self._page : self._page + 1]
        return AttemptPage(rest[: self._page], str(older[0].attempt_id) if older else "")

    def redeliver(self, webhook: str, attempt_id: int) -> None:
        found = next((each for each in self.attempts[webhook] if each.attempt_id == attempt_id), None)
        if found is None or found.delivered_at <= self._now() - _KEPT:
            raise PermanentError(f"redelivering {attempt_id} of {webhook}: HTTP 422 GitHub keeps it no more")
        self._send(webhook, found.guid)
