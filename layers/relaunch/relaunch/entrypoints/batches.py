"""A batch of messages of a queue, each handled by the entry point of that queue."""

from collections.abc import Callable
from typing import Any

from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.adapters.aws.sqs import batch
from relaunch.core.lifecycle.metrics import Metric, MetricDatum
from relaunch.entrypoints.function import FunctionDependencies
from relaunch.ports import Dependencies


def handle_batch(
    queue: str,
    handle_message: Callable[[str, Dependencies], object],
    event: dict[str, Any],
    context: LambdaContext,
    function: FunctionDependencies,
) -> PartialItemFailureResponse:
    """Handle every message of a batch, counting those that fail under the name of the queue.

    Raises:
        PermanentError: the event is no batch of messages.
    """
    deps = function.deps

    def count_failure() -> None:
        deps.metrics.record(MetricDatum(Metric.MESSAGES_FAILED, label=queue))

    return batch.handle_batch(
        event, context, lambda body: handle_message(body, deps), function.dead_letters, count_failure
    )
