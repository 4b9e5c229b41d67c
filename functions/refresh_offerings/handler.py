"""Called by a schedule once a day: brings instance types, zones and prices up to date."""

from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.bootstrap import measured, refresh_world
from relaunch.usecases.refresh_offerings import refresh_offerings


@measured
def handle(_event: object, _context: LambdaContext) -> dict[str, str]:
    """Refresh what can be had and say what became of each part; an exception is worth another try."""
    return refresh_offerings(refresh_world())
