"""Refreshes types, zones, prices, spot placement scores and quotas; invoked every hour by a schedule."""

from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.bootstrap import refresh_dependencies, with_metrics
from relaunch.usecases.refresh_offerings import refresh_offerings


@with_metrics
def handle(_event: object, _context: LambdaContext) -> dict[str, str]:
    """Refresh the parts that are due and return their outcomes; an exception is retried."""
    return refresh_offerings(refresh_dependencies())
