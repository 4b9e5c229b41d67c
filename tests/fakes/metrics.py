"""Metrics in a list."""

from relaunch.core.lifecycle.metrics import Measure, Metric


class ListMeasures:
    """Implements Measures: `recorded` lists measures in order."""

    def __init__(self) -> None:
        self.recorded: list[Measure] = []

    def record(self, *measures: Measure) -> None:
        self.recorded += measures

    def of(self, metric: Metric) -> list[Measure]:
        """Return what was recorded of one metric."""
        return [measure for measure in self.recorded if measure.metric is metric]

    def values(self, metric: Metric) -> list[float]:
        """Return the values of one metric."""
        return [measure.value for measure in self.of(metric)]
