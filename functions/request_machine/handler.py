"""Requests the machines of the queue `machines` from EC2 Fleet."""

from typing import Any

from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.bootstrap import function, with_metrics
from relaunch.entrypoints.batches import handle_batch
from relaunch.entrypoints.machines import handle_message


@with_metrics
def handle(event: dict[str, Any], context: LambdaContext) -> PartialItemFailureResponse:
    """Handle a batch of requests of machines."""
    return handle_batch("machines", handle_message, event, context, function())
