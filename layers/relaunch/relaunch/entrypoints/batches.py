"""Batches of messages, each handled by the entry point of its queue."""

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
    """Handle every message of a batch, and count failures by queue.

    Raises:
        PermanentError: the event is not a batch of messages.
    """
    deps = function.deps

    def count_failure() -> None:
        deps.metrics.record(MetricDatum(Metric.MESSAGES_FAILED, label=queue))

    queues = batch.Queues(function.source, function.dead_letters)
    return batch.handle_batch(event, context, lambda body: handle_message(body, deps), queues, count_failure)
