"""The time, the log and the metrics."""

from datetime import datetime
from typing import Protocol

from relaunch.core.lifecycle.metrics import MetricDatum


class Clock(Protocol):
    """The time."""

    def now(self) -> datetime:
        """Return the present time, aware, in UTC."""
        ...


class DecisionLog(Protocol):
    """One structured line per decision."""

    def decided(self, decision: str, **facts: object) -> None:
        """Write a line; `job_id`, `attempt_number`, `reason`… are facts."""
        ...


class Metrics(Protocol):
    """Counts and times, for CloudWatch."""

    def record(self, *metrics: MetricDatum) -> None:
        """Record values of metrics; nothing fails because of it."""
        ...


class NullMetrics:
    """Implements Measures where nobody reads them: in the command, and in tests."""

    def record(self, *metrics: MetricDatum) -> None:
        """Record nothing."""
