"""The queue `sns`: messages of SNS topics, which may start jobs and do nothing else.

Whoever may publish on a topic writes what is in its messages. They therefore have a queue and a dead-letter queue of
their own, and what comes from there is never read as a message of the queue `intake`.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.adapters.aws.sqs.batch import BatchResponse
from relaunch.adapters.messages.topic_messages import WatchedTopics, parse_topic_message
from relaunch.core.lifecycle.metrics import Metric, MetricDatum
from relaunch.core.triggers.matching import IgnoredEvent
from relaunch.entrypoints.batches import handle_batch, is_of_queue
from relaunch.entrypoints.function import FunctionDependencies
from relaunch.ports import Dependencies
from relaunch.usecases.submit_job import submit_event

# As those of uploads: a value of its own would be one metric more on the dashboard than is free.
_COUNTED_AS = "intake"


def handle_message(watched: WatchedTopics, body: str, deps: Dependencies) -> None:
    """Submit the jobs that a message of a topic starts.

    Raises:
        PermanentError: it is no message of one of the topics, or a job cannot be created.
    """
    event = parse_topic_message(body, watched)
    if isinstance(event, IgnoredEvent):
        deps.log.decided("ignored", reason=event.reason)
        deps.metrics.record(MetricDatum(Metric.EVENTS_IGNORED))
        return
    submit_event(event, deps)


def consume_batch(
    consume_other: Callable[[dict[str, Any], LambdaContext, FunctionDependencies], BatchResponse],
    event: dict[str, Any],
    context: LambdaContext,
    function: FunctionDependencies,
) -> BatchResponse:
    """Handle a batch of the queue of topics, whose dead-letter queue is its own; `consume_other` has any other batch.

    Raises:
        PermanentError: the event is not a batch of messages.
    """
    topics = function.topics
    if topics is None or not is_of_queue(event, topics.queue_arn):
        return consume_other(event, context, function)
    handler = partial(handle_message, topics.watched)
    return handle_batch(_COUNTED_AS, handler, event, context, replace(function, dead_letters=topics.dead_letters))
