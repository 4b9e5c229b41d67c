"""Metrics in a list."""

from relaunch.core.lifecycle.metrics import Metric, MetricDatum


class ListMetrics:
    """Implements Measures: `recorded` lists measures in order."""

    def __init__(self) -> None:
        self.recorded: list[MetricDatum] = []

    def record(self, *metrics: MetricDatum) -> None:
        self.recorded += metrics

    def of(self, metric: Metric) -> list[MetricDatum]:
        """Return what was recorded of one metric."""
        return [measure for measure in self.recorded if measure.metric is metric]

    def values(self, metric: Metric) -> list[float]:
        """Return the values of one metric."""
        return [measure.value for measure in self.of(metric)]
