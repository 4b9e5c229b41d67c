"""Handles state changes of ECS tasks and container instances of the queue `task-changes`."""

from typing import Any

from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.bootstrap import function, with_metrics
from relaunch.entrypoints.batches import handle_batch
from relaunch.entrypoints.task_changes import handle_message


@with_metrics
def handle(event: dict[str, Any], context: LambdaContext) -> PartialItemFailureResponse:
    """Handle a batch of state changes."""
    return handle_batch("task-changes", handle_message, event, context, function())
