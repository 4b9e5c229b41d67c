"""Takes ECS's task state changes from the queue `task-changes`."""

from typing import Any

from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.adapters.aws.ecs.events import parse_ecs_event
from relaunch.adapters.aws.sqs.batch import handle_batch
from relaunch.adapters.messages.body import load_message
from relaunch.bootstrap import function, with_metrics
from relaunch.usecases.observe_task import observe_task


@with_metrics
def handle(event: dict[str, Any], context: LambdaContext) -> PartialItemFailureResponse:
    """Handle a batch of state changes."""
    return handle_batch(event, context, _observe, function().dead_letters, function().meter("task-changes"))


def _observe(body: str) -> None:
    observation = parse_ecs_event(load_message(body))
    if observation is not None:
        observe_task(observation, function().deps)
