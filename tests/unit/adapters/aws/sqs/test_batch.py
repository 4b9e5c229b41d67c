"""Batches from SQS: messages that succeed, are retried, or are sent to the dead-letter queue."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest
from aws_lambda_powertools.utilities.typing import LambdaContext
from botocore.exceptions import ClientError

from fakes.builders import NOW
from fakes.sources import ListLog
from relaunch.adapters.aws.sqs.batch import handle_batch
from relaunch.adapters.aws.sqs.dead_letter_queue import DeadLetterSender
from relaunch.ports import PermanentError, TransientError

LAST_TRY = 5


class SentMessages:
    """SQS, as far as SendMessage and ChangeMessageVisibility go."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.visible_after: list[int] = []
        self.queue_urls: set[str] = set()

    def change_message_visibility(self, **parameters: Any) -> None:
        assert parameters["ReceiptHandle"] == "r"
        self.queue_urls.add(parameters["QueueUrl"])
        self.visible_after.append(parameters["VisibilityTimeout"])

    def send_message(self, **parameters: Any) -> dict[str, str]:
        given = {name: each["StringValue"] for name, each in parameters["MessageAttributes"].items()}
        self.sent.append({"queue": parameters["QueueUrl"], "body": parameters["MessageBody"], **given})
        return {"MessageId": "1"}


class Consumer:
    """A function's end of a queue."""

    def __init__(self, last_try: int = LAST_TRY) -> None:
        self.sqs, self.log, self.failures = SentMessages(), ListLog(), 0
        self.dead_letters = DeadLetterSender(self.sqs, "dead", self.log, last_try)  # type: ignore[arg-type]

    def handle(self, handle_body: Callable[[str], object], *records: dict[str, Any]) -> list[str]:
        """Return the ids of the messages that are to come again."""
        context = cast("LambdaContext", None)
        answer = handle_batch({"Records": list(records)}, context, handle_body, self.dead_letters, self._count_failure)
        return [str(each["itemIdentifier"]) for each in answer["batchItemFailures"]]

    def _count_failure(self) -> None:
        self.failures += 1


@pytest.fixture
def consumer() -> Consumer:
    return Consumer()


def record(message_id: str = "1", receive_count: int = 1, **fields: Any) -> dict[str, Any]:
    return {
        "messageId": message_id,
        "receiptHandle": "r",
        "body": f"body {message_id}",
        "attributes": {
            "ApproximateReceiveCount": str(receive_count),
            "SentTimestamp": _milliseconds(NOW - timedelta(seconds=90)),
            "ApproximateFirstReceiveTimestamp": _milliseconds(NOW - timedelta(seconds=60)),
        },
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:111122223333:relaunch-intake",
        **fields,
    }


def _milliseconds(at: Any) -> str:
    return str(int(at.timestamp() * 1000))


def raising(*errors: Exception | None) -> Callable[[str], object]:
    """Return what raises these for the messages of a batch, in order."""
    left = list(errors)

    def handle_body(_body: str) -> object:
        error = left.pop(0)
        if error is not None:
            raise error
        return None

    return handle_body


def test_a_message_that_fails_for_now_comes_again_and_the_others_do_not(consumer: Consumer) -> None:
    again = consumer.handle(
        raising(None, TransientError("throttled"), PermanentError("no JSON")), *(record(each) for each in "123")
    )

    assert again == ["2"]
    assert consumer.sqs.sent == [
        {"queue": "dead", "body": "body 3", "reason": "no JSON", "first_seen": "2026-03-14T09:25:53+00:00"}
    ]
    assert consumer.log.decisions == ["failed", "dead-lettered"]


def test_a_message_whose_last_try_fails_is_given_up_with_what_failed(consumer: Consumer) -> None:
    assert consumer.handle(raising(TransientError("throttled")), record(receive_count=LAST_TRY - 1)) == ["1"]
    assert consumer.handle(raising(TransientError("throttled")), record(receive_count=LAST_TRY)) == []

    (letter,) = consumer.sqs.sent
    assert letter["reason"] == "given up after 5 tries: TransientError: throttled"


def test_a_bug_is_logged_with_its_trace_and_the_message_comes_again(consumer: Consumer) -> None:
    assert consumer.handle(raising(KeyError("detail")), record()) == ["1"]

    ((_, facts),) = consumer.log.lines
    assert facts["reason"] == "KeyError: 'detail'"
    assert "handle_body" in str(facts["traceback"])


def test_a_transient_error_is_logged_without_a_traceback(consumer: Consumer) -> None:
    consumer.handle(raising(TransientError("throttled")), record(receive_count=2))

    ((decision, facts),) = consumer.log.lines
    assert (decision, facts["receive_count"], facts["traceback"]) == ("failed", 2, None)


def test_where_the_last_try_is_not_known_sqs_counts_alone() -> None:
    assert Consumer(last_try=0).handle(raising(TransientError("throttled")), record(receive_count=99)) == ["1"]


def test_message_that_cannot_be_sent_to_the_dead_letter_queue_is_retried(consumer: Consumer) -> None:
    def refuse(**_: Any) -> dict[str, str]:
        raise TransientError("throttled")

    consumer.sqs.send_message = refuse  # type: ignore[method-assign]

    assert consumer.handle(raising(PermanentError("no JSON")), record()) == ["1"]
    assert consumer.log.decisions == []


def test_a_redriven_message_keeps_since_when_it_fails(consumer: Consumer) -> None:
    earlier = {"first_seen": {"stringValue": "2026-01-01T00:00:00+00:00", "dataType": "String"}}

    consumer.handle(raising(PermanentError("no JSON")), record(messageAttributes=earlier))

    assert consumer.sqs.sent[0]["first_seen"] == "2026-01-01T00:00:00+00:00"


def test_messages_that_fail_are_counted_and_those_that_can_never_succeed_are_not(consumer: Consumer) -> None:
    consumer.handle(raising(None, TransientError("throttled"), PermanentError("no")), *(record(each) for each in "123"))

    assert consumer.failures == 1


def test_a_message_without_times_is_handled_all_the_same() -> None:
    assert Consumer().handle(raising(None), record(attributes={})) == []


@pytest.mark.parametrize(
    ("receive_count", "least", "most"), [pytest.param(1, 5, 30, id="first"), pytest.param(2, 30, 60, id="second")]
)
def test_what_fails_for_now_is_soon_visible_again_not_all_at_once(consumer, receive_count, least, most) -> None:
    every = [record(str(each), receive_count) for each in range(100)]
    consumer.handle(raising(*[TransientError("throttled")] * 100), *every)

    after = consumer.sqs.visible_after
    assert len(after) == 100
    assert least <= min(after) < max(after) < most
    assert len(set(after)) > 15
    assert consumer.sqs.queue_urls == {"https://sqs.us-east-1.amazonaws.com/111122223333/relaunch-intake"}


@pytest.mark.parametrize(
    ("error", "receive_count"),
    [
        pytest.param(TransientError("throttled"), 3, id="a-third-failure"),
        pytest.param(TransientError("throttled"), LAST_TRY, id="the-last-failure"),
        pytest.param(KeyError("detail"), 1, id="a-bug"),
        pytest.param(PermanentError("no JSON"), 1, id="a-permanent-error"),
        pytest.param(None, 1, id="no-error"),
    ],
)
def test_anything_else_keeps_the_time_out_of_its_queue(consumer: Consumer, error, receive_count: int) -> None:
    consumer.handle(raising(error), record(receive_count=receive_count))

    assert consumer.sqs.visible_after == []


@pytest.mark.parametrize("code", ["InvalidParameterValue", "ThrottlingException", "AccessDenied"])
def test_a_message_whose_time_out_cannot_be_changed_comes_again_all_the_same(consumer: Consumer, code: str) -> None:
    def refuse(**_: Any) -> None:
        raise ClientError({"Error": {"Code": code}}, "ChangeMessageVisibility")

    consumer.sqs.change_message_visibility = refuse  # type: ignore[method-assign]

    assert consumer.handle(raising(TransientError("throttled")), record()) == ["1"]
