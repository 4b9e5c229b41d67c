"""Batches of messages, each handled by the entry point of its queue."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.adapters.aws.sqs import batch
from relaunch.adapters.aws.sqs.batch import BatchResponse
from relaunch.core.lifecycle.metrics import Metric, MetricDatum
from relaunch.entrypoints.function import FunctionDependencies
from relaunch.ports import Dependencies


def handle_batch(
    queue: str,
    handle_message: Callable[[str, Dependencies], object],
    event: dict[str, Any],
    context: LambdaContext,
    function: FunctionDependencies,
) -> BatchResponse:
    """Handle every message of a batch, and count failures by queue.

    Raises:
        PermanentError: the event is not a batch of messages.
    """
    deps = function.deps

    def count_failure(failing_for: timedelta) -> None:
        retry_time = MetricDatum(Metric.MESSAGE_RETRY_TIME, failing_for.total_seconds())
        deps.metrics.record(MetricDatum(Metric.MESSAGES_FAILED, label=queue), retry_time)

    consumer = batch.Consumer(
        lambda body: handle_message(body, deps),
        count_failure,
        lambda message_id: deps.events.begin_last_try(message_id, deps.clock.now()),
        deps.clock.now,
    )
    return batch.handle_batch(event, context, consumer, batch.Queues(function.source, function.dead_letters))


def is_of_queue(event: object, queue_arn: str) -> bool:
    """Return whether a batch, or one message of it, is of a queue; a batch of Lambda is of one queue."""
    records = event.get("Records") if isinstance(event, Mapping) else None
    if not queue_arn or not isinstance(records, list):
        return False
    return any(isinstance(each, Mapping) and each.get("eventSourceARN") == queue_arn for each in records)
