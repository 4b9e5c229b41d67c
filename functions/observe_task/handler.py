"""Handles state changes of ECS tasks and container instances of the queue `task-changes`."""

from typing import Any

from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.bootstrap import function, with_metrics
from relaunch.entrypoints.consumers import consumer

_consume = consumer("observe_task")


@with_metrics
def handle(event: dict[str, Any], context: LambdaContext) -> PartialItemFailureResponse:
    """Handle a batch of state changes."""
    return _consume(event, context, function())
