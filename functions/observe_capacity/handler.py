"""Handles EC2 warnings and instance state changes of the queue `warnings`."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.bootstrap import function, with_metrics
from relaunch.entrypoints.consumers import BatchResponse, consumer

_consume = consumer("observe_capacity")


@with_metrics
def handle(event: dict[str, Any], context: LambdaContext) -> BatchResponse:
    """Handle a batch of warnings and state changes."""
    return _consume(event, context, function())
