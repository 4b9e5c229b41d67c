"""Structured logs, and metrics in the CloudWatch embedded metric format (EMF)."""

from collections import defaultdict

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider

from relaunch.core.lifecycle.metrics import NAMESPACE, MetricDatum

# Keys of powertools' Logger and of LogRecord, which cannot be extra fields.
_RESERVED = frozenset({"message", "level", "location", "timestamp", "service", "name", "args"})


class PowertoolsLog:
    """Implements DecisionLog with powertools' Logger."""

    def __init__(self) -> None:
        self._logger = Logger()

    def decided(self, decision: str, **facts: object) -> None:
        extra = {name: value for name, value in facts.items() if value is not None and name not in _RESERVED}
        self._logger.info(decision, extra=extra)


class EmfMetrics:
    """Implements Metrics: writes them to standard output at the end of an invocation, one line per set of dimensions.

    CloudWatch extracts the metrics from the log ("Specification: Embedded metric format"). powertools' class Metrics
    would add the function name as a dimension, so that an alarm could not cover several functions.
    """

    def __init__(self) -> None:
        self._recorded: list[MetricDatum] = []

    def record(self, *metrics: MetricDatum) -> None:
        self._recorded += metrics

    def flush(self) -> None:
        """Write the metrics recorded since the last flush."""
        recorded, self._recorded = self._recorded, []
        by_dimensions: defaultdict[tuple[tuple[str, str], ...], list[MetricDatum]] = defaultdict(list)
        for metric in recorded:
            by_dimensions[tuple(metric.dimensions.items())].append(metric)
        for dimensions, metrics in by_dimensions.items():
            # With an empty service powertools adds no dimension.
            provider = AmazonCloudWatchEMFProvider(namespace=NAMESPACE, service="")
            for name, value in dimensions:
                provider.add_dimension(name, value)
            for metric in metrics:
                provider.add_metric(metric.metric, metric.unit, round(metric.value, 3))
            provider.flush_metrics()
