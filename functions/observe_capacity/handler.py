"""Handles EC2 warnings and instance state changes of the queue `warnings`."""

from typing import Any

from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.bootstrap import function, with_metrics
from relaunch.entrypoints.batches import handle_batch
from relaunch.entrypoints.warnings import handle_message


@with_metrics
def handle(event: dict[str, Any], context: LambdaContext) -> PartialItemFailureResponse:
    """Handle a batch of warnings and state changes."""
    return handle_batch("warnings", handle_message, event, context, function())
