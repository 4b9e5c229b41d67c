"""Requests the machines of the queue `machines` from EC2 Fleet."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.bootstrap import function, with_metrics
from relaunch.entrypoints.consumers import BatchResponse, consumer

_consume = consumer("request_machine")


@with_metrics
def handle(event: dict[str, Any], context: LambdaContext) -> BatchResponse:
    """Handle a batch of requests of machines."""
    return _consume(event, context, function())
