"""What the functions tell: one structured line per decision, and metrics in CloudWatch's embedded metric format."""

from collections import defaultdict

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics.provider.cloudwatch_emf.cloudwatch import AmazonCloudWatchEMFProvider

from relaunch.core.lifecycle.metrics import NAMESPACE, MetricDatum

# Powertools' own keys cannot be given as extra fields.
_RESERVED = frozenset({"message", "level", "location", "timestamp", "service", "name", "args"})


class PowertoolsLog:
    """Implements DecisionLog over powertools' Logger; nothing secret and no environment ever gets in here."""

    def __init__(self) -> None:
        self._logger = Logger()

    def decided(self, decision: str, **facts: object) -> None:
        extra = {name: value for name, value in facts.items() if value is not None and name not in _RESERVED}
        self._logger.info(decision, extra=extra)


class EmfMetrics:
    """Implements Measures: writes them to standard output at the end of an invocation, in one line per dimension.

    CloudWatch makes metrics of such lines of a function's log ("Specification: Embedded metric format"). powertools'
    own class Metrics would add the function's name as a dimension, and a metric that several functions count could
    then have no alarm.
    """

    def __init__(self) -> None:
        self._recorded: list[MetricDatum] = []

    def record(self, *metrics: MetricDatum) -> None:
        self._recorded += metrics

    def flush(self) -> None:
        """Write what was recorded since the last time."""
        recorded, self._recorded = self._recorded, []
        by_dimensions: defaultdict[tuple[tuple[str, str], ...], list[MetricDatum]] = defaultdict(list)
        for measure in recorded:
            by_dimensions[tuple(measure.dimensions.items())].append(measure)
        for dimensions, metrics in by_dimensions.items():
            # Without a service powertools adds no dimension of its own.
            provider = AmazonCloudWatchEMFProvider(namespace=NAMESPACE, service="")
            for name, value in dimensions:
                provider.add_dimension(name, value)
            for measure in metrics:
                provider.add_metric(measure.metric, measure.unit, round(measure.value, 3))
            provider.flush_metrics()


class SilentLog:
    """Implements DecisionLog for the command, whose own output says what was done."""

    def decided(self, decision: str, **facts: object) -> None:
        """Say nothing."""
