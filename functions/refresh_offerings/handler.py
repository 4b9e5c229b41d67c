"""Called by a schedule every hour: brings types, zones, prices, odds and quotas up to date."""

from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.bootstrap import refresh_dependencies, with_metrics
from relaunch.usecases.refresh_offerings import refresh_offerings


@with_metrics
def handle(_event: object, _context: LambdaContext) -> dict[str, str]:
    """Refresh what is due and can be had, and say what became of each part; an exception is worth another try."""
    return refresh_offerings(refresh_dependencies())
