"""Handles state changes of ECS tasks and container instances of the queue `task-changes`."""

from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.bootstrap import function, with_metrics
from relaunch.entrypoints.consumers import BatchResponse, consumer

_consume = consumer("observe_task")


@with_metrics
def handle(event: dict[str, Any], context: LambdaContext) -> BatchResponse:
    """Handle a batch of state changes."""
    return _consume(event, context, function())
