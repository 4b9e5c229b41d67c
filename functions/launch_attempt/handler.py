"""Launches the jobs of the queue `attempts`."""

from typing import Any

from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.bootstrap import function, with_metrics
from relaunch.entrypoints.attempts import handle_message
from relaunch.entrypoints.batches import handle_batch


@with_metrics
def handle(event: dict[str, Any], context: LambdaContext) -> PartialItemFailureResponse:
    """Handle a batch of launch requests."""
    return handle_batch("attempts", handle_message, event, context, function())
