"""What sweeps of failed deliveries have reached, in memory."""

from relaunch.core.triggers.failed_deliveries import SweepProgress
from relaunch.ports.deliveries import SweepReport


class InMemoryDeliveries:
    """Implements DeliveryStore."""

    def __init__(self) -> None:
        self.progress: dict[str, SweepProgress] = {}
        self.report: SweepReport | None = None

    def load_progress(self, webhook: str) -> SweepProgress | None:
        return self.progress.get(webhook)

    def save_progress(self, webhook: str, progress: SweepProgress) -> None:
        self.progress[webhook] = progress

    def load_report(self) -> SweepReport | None:
        return self.report

    def save_report(self, report: SweepReport) -> None:
        self.report = report
