"""Refreshes types, zones, prices, scores and quotas every hour, sweeps failed deliveries of GitHub every half hour."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.bootstrap import refresh_dependencies, with_metrics
from relaunch.delivery_bootstrap import delivery_dependencies
from relaunch.entrypoints.refresh import answer_schedule


@with_metrics
def handle(event: object, context: LambdaContext) -> Any:
    """Refresh the parts that are due, or sweep, and return what became of it; an exception is retried."""
    return answer_schedule(event, refresh_dependencies, delivery_dependencies, context.get_remaining_time_in_millis)
