"""Refreshes types, zones, prices, spot placement scores and quotas every hour; sweeps GitHub's failed deliveries.

Both are scheduled, ask services that may be slow, and nobody waits for them.
"""

from collections.abc import Mapping

from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.bootstrap import refresh_dependencies, with_metrics
from relaunch.entrypoints.deliveries import SWEEP, sweep
from relaunch.usecases.refresh_offerings import refresh_offerings


@with_metrics
def handle(event: object, context: LambdaContext) -> Mapping[str, object]:
    """Refresh the parts that are due, or sweep, and return what became of it; an exception is retried."""
    if event == SWEEP:
        # Imported here because most stacks have no token.
        from relaunch.delivery_bootstrap import delivery_dependencies  # noqa: PLC0415

        return sweep(delivery_dependencies(), context.get_remaining_time_in_millis)
    return refresh_offerings(refresh_dependencies())
