"""Creates the jobs for the events of the queue `intake`."""

from typing import Any

from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.bootstrap import function, with_metrics
from relaunch.entrypoints.batches import handle_batch
from relaunch.entrypoints.intake import handle_message


@with_metrics
def handle(event: dict[str, Any], context: LambdaContext) -> PartialItemFailureResponse:
    """Handle a batch of GitHub deliveries, uploads and image pushes."""
    return handle_batch("intake", handle_message, event, context, function())
