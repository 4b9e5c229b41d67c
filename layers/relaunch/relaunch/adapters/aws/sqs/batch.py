"""Handles batches from SQS: a failed message is retried, or sent to the dead-letter queue with the reason.

See "Using Lambda with Amazon SQS" (AWS Lambda Developer Guide) for the event and the partial batch response; samples
are in events/sqs.*.json.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from relaunch.adapters.aws.sqs.dead_letter_queue import DeadLetterSender
from relaunch.core.lifecycle.metrics import Metric, MetricDatum, age_metric
from relaunch.ports import Clock, Metrics, PermanentError


class QueueMeter:
    """Measures the messages of one queue: how old they are, how many fail, how many are given up."""

    def __init__(self, queue: str, metrics: Metrics, clock: Clock) -> None:
        self._queue = queue
        self._metrics = metrics
        self._clock = clock

    def received(self, record: SQSRecord) -> None:
        """A message came."""
        milliseconds = record.attributes.get("SentTimestamp")
        if milliseconds:
            sent_at = datetime.fromtimestamp(int(milliseconds) / 1000, UTC)
            self._metrics.record(age_metric(self._queue, sent_at, self._clock.now()))

    def failed(self) -> None:
        """A try failed."""
        self._metrics.record(MetricDatum(Metric.MESSAGES_FAILED, label=self._queue))

    def buried(self) -> None:
        """A message went to the dead-letter queue."""
        self._metrics.record(MetricDatum(Metric.DEAD_LETTERED, label=self._queue))


def handle_batch(
    event: dict[str, Any],
    context: LambdaContext,
    handle_body: Callable[[str], object],
    dead_letters: DeadLetterSender,
    meter: QueueMeter | None = None,
) -> PartialItemFailureResponse:
    """Handle all messages of a batch; those to be retried are in the partial batch response.

    Raises:
        PermanentError: the event is not a batch of messages from SQS.
    """
    _require_batch(event)

    def handle_record(record: SQSRecord) -> object:
        if meter:
            meter.received(record)
        try:
            return handle_body(record.body)
        except PermanentError as error:
            reason = str(error)
        except Exception as error:
            if meter:
                meter.failed()
            reason = dead_letters.note_failure(record, error)
            if not reason:
                raise
        dead_letters.send(record, reason)
        if meter:
            meter.buried()
        return None

    # If all messages failed, raising would also retry those that were sent to the dead-letter queue.
    processor = BatchProcessor(EventType.SQS, raise_on_entire_batch_failure=False)
    return process_partial_response(event=event, record_handler=handle_record, processor=processor, context=context)


def _require_batch(event: object) -> None:
    records = event.get("Records") if isinstance(event, dict) else None
    if not records or not isinstance(records, list) or not all(map(_is_message, records)):
        raise PermanentError("the event is no batch of messages from SQS, which have messageId, body and attributes")


def _is_message(record: object) -> bool:
    if not isinstance(record, dict) or not isinstance(record.get("attributes"), dict):
        return False
    return isinstance(record.get("messageId"), str) and isinstance(record.get("body"), str)
