"""The deliveries of GitHub's webhooks, and what the sweep of those that failed has reached.

Not imported by relaunch.ports, for the cold starts of functions that do not sweep.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from relaunch.core.records import dataclass
from relaunch.ports.errors import NotGrantedError
from relaunch.ports.observability import NullMetrics

if TYPE_CHECKING:
    from relaunch.core.triggers.failed_deliveries import DeliveryAttempt, SweepProgress
    from relaunch.ports.observability import Clock, DecisionLog, Metrics
    from relaunch.ports.stores import DefinitionStore


class TokenRefusedError(NotGrantedError):
    """GitHub does not accept the token, or there is none to be read: no call can succeed."""


@dataclass(frozen=True, slots=True)
class AttemptPage:
    """Attempts to deliver, newest first, and the cursor of the page with older ones; empty on the last page."""

    attempts: Sequence[DeliveryAttempt]
    older: str


class WebhookApi(Protocol):
    """GitHub's REST API of webhooks. A webhook is named by its path in the API: `repos/acme/vision/hooks/42`.

    All calls raise TransientError when GitHub limits the rate, has an error or does not answer: a redelivery may have
    been made. They raise TokenRefusedError, NotGrantedError if the token does not reach what is asked for or there is
    no such thing, and PermanentError for any other refusal.
    """

    def find_webhooks(self, owner: str) -> Sequence[str]:
        """Return the active webhooks of `repos/acme/vision` or `orgs/acme` that deliver to this stack."""

    def list_attempts(self, webhook: str, cursor: str) -> AttemptPage:
        """Return a page of the attempts of the last days; the newest ones for an empty cursor."""
        ...

    def redeliver(self, webhook: str, attempt_id: int) -> None:
        """Ask for another attempt of the same delivery, which keeps its guid; GitHub makes it within seconds."""
        ...


@dataclass(frozen=True, slots=True)
class SweepReport:
    """The last pass over all webhooks, for `relaunch doctor`.

    `problems` are what somebody has to correct. `unswept` are the repositories for which no webhook was found.
    `interruption` is why the pass ended early, empty if it did not.
    """

    at: datetime
    redelivered: int = 0
    problems: tuple[str, ...] = ()
    unswept: tuple[str, ...] = ()
    interruption: str = ""


class DeliveryStore(Protocol):
    """What sweeps of failed deliveries have reached."""

    def load_progress(self, webhook: str) -> SweepProgress | None:
        """Load the progress of a webhook; None if it was never swept, or not for days."""

    def save_progress(self, webhook: str, progress: SweepProgress) -> None:
        """Save the progress of a webhook in place of the last one, for days."""
        ...

    def load_report(self) -> SweepReport | None:
        """Load the report of the last pass; None before the first one."""

    def save_report(self, report: SweepReport) -> None:
        """Save the report of a pass in place of the last one."""
        ...


@dataclass(frozen=True, kw_only=True)
class DeliveryDependencies:
    """Dependencies of the sweep of failed deliveries."""

    definitions: DefinitionStore
    deliveries: DeliveryStore
    webhooks: WebhookApi
    clock: Clock
    log: DecisionLog
    metrics: Metrics = field(default_factory=NullMetrics)
