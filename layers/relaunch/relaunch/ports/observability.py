"""The time, the log and the metrics."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from relaunch.core.lifecycle.metrics import MetricDatum


class Clock(Protocol):
    """The time."""

    def now(self) -> datetime:
        """Return the current time, aware, in UTC."""


class DecisionLog(Protocol):
    """A structured log with one line per decision."""

    def decided(self, decision: str, **facts: object) -> None:
        """Write a line with these facts, such as `job_id`, `attempt_number` and `reason`."""


class Metrics(Protocol):
    """Metrics for CloudWatch."""

    def record(self, *metrics: MetricDatum) -> None:
        """Record values of metrics; errors are not raised."""


class SilentLog:
    """Implements DecisionLog without output, for the command."""

    def decided(self, decision: str, **facts: object) -> None:
        """Do nothing."""


class NullMetrics:
    """Implements Metrics for the command and tests, which record none."""

    def record(self, *metrics: MetricDatum) -> None:
        """Record nothing."""
