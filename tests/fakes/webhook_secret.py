"""The stored secrets of a webhook in memory."""

from collections.abc import Callable
from datetime import timedelta

from fakes.builders import NOW
from relaunch_cli.aws.webhook_secret import StoredSecret


class FakeWebhookSecret:
    """Implements WebhookSecretStore; each write first calls the next function of `before_write`."""

    url = "https://hook.example/"
    previous_seconds = 12 * 3600.0

    def __init__(self, text: str = "generated") -> None:
        self.versions = [StoredSecret(text, "version-1", NOW - timedelta(days=30))]
        self.before_write: list[Callable[[], object]] = []

    def load(self) -> StoredSecret:
        return self.versions[-1]

    def load_previous(self) -> str:
        return self.versions[-2].text if len(self.versions) > 1 else ""

    def store(self, text: str) -> None:
        """Store a text, as the console does."""
        self.versions.append(StoredSecret(text, f"version-{len(self.versions) + 1}", NOW))

    def replace(self, stored: StoredSecret, text: str) -> bool:
        if self.before_write:
            self.before_write.pop(0)()
        if stored is not self.versions[-1]:
            return False
        self.store(text)
        return True
