"""The functions that consume queues: one queue each, whose entry point is the module of its name."""

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.adapters.aws.sqs import batch
from relaunch.entrypoints.batches import handle_batch, is_of_queue
from relaunch.entrypoints.function import FunctionDependencies
from relaunch.ports import Dependencies

BatchResponse = batch.BatchResponse
"""What a function answers to a batch."""

CONSUMERS: Mapping[str, str] = {
    "submit_job": "intake",
    "launch_attempt": "attempts",
    "request_machine": "machines",
    "observe_capacity": "warnings",
    "observe_task": "task-changes",
    "send_notices": "notices",
}
"""The queue of each function."""


def handler_of(queue: str) -> Callable[[str, Dependencies], object]:
    """Return what handles a message of a queue; no other entry point is imported, for short cold starts."""
    handler: Callable[[str, Dependencies], object]
    handler = import_module(f"relaunch.entrypoints.{queue.replace('-', '_')}").handle_message
    return handler


Consume = Callable[[dict[str, Any], LambdaContext, FunctionDependencies], BatchResponse]
"""Handles a batch of messages."""


def consumer(function: str) -> Consume:
    """Return what handles a batch of the queue of a function; submit_job has others: of uploads, and of topics."""
    queue = CONSUMERS[function]
    consume = partial(handle_batch, queue, handler_of(queue))
    if function != "submit_job":
        return consume
    # Imported here because other functions do not need it.
    from relaunch.entrypoints.intake import handle_upload  # noqa: PLC0415
    from relaunch.entrypoints.sns import consume_batch  # noqa: PLC0415

    consume_uploads = partial(handle_batch, queue, handle_upload)

    def consume_other(event: dict[str, Any], context: LambdaContext, function: FunctionDependencies) -> BatchResponse:
        is_upload = is_of_queue(event, function.uploads_queue_arn)
        return (consume_uploads if is_upload else consume)(event, context, function)

    return partial(consume_batch, consume_other)
