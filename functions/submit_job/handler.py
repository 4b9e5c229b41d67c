"""Creates the jobs for the events of the queue `intake`, and for messages of SNS topics."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.bootstrap import function, with_metrics
from relaunch.entrypoints.consumers import BatchResponse, consumer

_consume = consumer("submit_job")


@with_metrics
def handle(event: dict[str, Any], context: LambdaContext) -> BatchResponse:
    """Handle a batch of GitHub deliveries, uploads and image pushes, or of messages of SNS topics."""
    return _consume(event, context, function())
