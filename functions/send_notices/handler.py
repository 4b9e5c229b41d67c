"""Sends notices of jobs to people and services, after the events of the queue `notices`."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.bootstrap import function, with_metrics
from relaunch.entrypoints.consumers import BatchResponse, consumer

_consume = consumer("send_notices")


@with_metrics
def handle(event: dict[str, Any], context: LambdaContext) -> BatchResponse:
    """Handle a batch of events of jobs."""
    return _consume(event, context, function())
