"""Batches from SQS: messages that succeed, are retried, or are sent to the dead-letter queue."""

import ast
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest
from aws_lambda_powertools.utilities.typing import LambdaContext
from botocore.exceptions import ClientError, ReadTimeoutError

from fakes.builders import NOW
from fakes.functions import FakeContext
from fakes.sources import ListLog
from relaunch.adapters.aws.sqs.batch import Queues, handle_batch
from relaunch.adapters.aws.sqs.dead_letter_queue import DeadLetterSender
from relaunch.adapters.aws.sqs.source_queue import SourceQueue
from relaunch.ports import NotYetError, PermanentError, TransientError

LAST_TRY = 5


class SentMessages:
    """SQS, as far as SendMessage, ChangeMessageVisibility and DeleteMessage go."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.visible_after: list[int] = []
        self.queue_urls: set[str] = set()
        self.calls: list[str] = []

    def change_message_visibility(self, **parameters: Any) -> None:
        assert parameters["ReceiptHandle"].startswith("r")
        self.queue_urls.add(parameters["QueueUrl"])
        self.visible_after.append(parameters["VisibilityTimeout"])

    def change_message_visibility_batch(self, **parameters: Any) -> None:
        self.queue_urls.add(parameters["QueueUrl"])
        assert [each["Id"] for each in parameters["Entries"]] == [str(n) for n in range(len(parameters["Entries"]))]
        seconds = {each["ReceiptHandle"].removeprefix("r"): each["VisibilityTimeout"] for each in parameters["Entries"]}
        self.calls.append(f"apart {seconds}")

    def delete_message(self, **parameters: Any) -> None:
        self.queue_urls.add(parameters["QueueUrl"])
        self.calls.append(f"delete {parameters['ReceiptHandle'].removeprefix('r')}")

    def send_message(self, **parameters: Any) -> dict[str, str]:
        given = {name: each["StringValue"] for name, each in parameters["MessageAttributes"].items()}
        self.sent.append({"queue": parameters["QueueUrl"], "body": parameters["MessageBody"], **given})
        return {"MessageId": "1"}


class Consumer:
    """A function's end of a queue."""

    def __init__(self, last_try: int = LAST_TRY) -> None:
        self.sqs, self.log, self.failures = SentMessages(), ListLog(), 0
        sqs = cast("Any", self.sqs)
        self.queues = Queues(SourceQueue(sqs), DeadLetterSender(sqs, "dead", self.log, last_try))
        self.context = FakeContext(milliseconds=29_900)

    def handle(self, handle_body: Callable[[str], object], *records: dict[str, Any]) -> list[str]:
        """Return the ids of the messages that are to come again."""
        context = cast("LambdaContext", self.context)
        answer = handle_batch({"Records": list(records)}, context, handle_body, self.queues, self._count_failure)
        return [str(each["itemIdentifier"]) for each in answer["batchItemFailures"]]

    def _count_failure(self) -> None:
        self.failures += 1


@pytest.fixture
def consumer() -> Consumer:
    return Consumer()


def record(message_id: str = "1", receive_count: int = 1, **fields: Any) -> dict[str, Any]:
    return {
        "messageId": message_id,
        "receiptHandle": f"r{message_id}",
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


@pytest.mark.parametrize("receive_count", [1, 3, LAST_TRY])
def test_what_came_early_is_visible_again_when_it_is_due_and_is_no_failure(consumer: Consumer, receive_count) -> None:
    def come_back(_body: str) -> None:
        raise NotYetError(18)

    assert consumer.handle(come_back, record(receive_count=receive_count)) == ["1"]

    assert consumer.sqs.visible_after == [18]
    assert (consumer.failures, consumer.sqs.sent, consumer.log.decisions) == (0, [], [])


@pytest.mark.parametrize("code", ["InvalidParameterValue", "ThrottlingException", "AccessDenied"])
def test_a_message_whose_time_out_cannot_be_changed_comes_again_all_the_same(consumer: Consumer, code: str) -> None:
    def refuse(**_: Any) -> None:
        raise ClientError({"Error": {"Code": code}}, "ChangeMessageVisibility")

    consumer.sqs.change_message_visibility = refuse  # type: ignore[method-assign]

    assert consumer.handle(raising(TransientError("throttled")), record()) == ["1"]


def handled_by(consumer: Consumer, *records: dict[str, Any], seconds_each: int = 0) -> tuple[list[str], list[str]]:
    """Return the messages in the order in which they were tried, and those that come again."""
    tried: list[str] = []

    def handle_body(body: str) -> None:
        tried.append(body.removeprefix("body "))
        consumer.context.milliseconds -= seconds_each * 1000

    return tried, consumer.handle(handle_body, *records)


def test_a_batch_of_new_messages_is_handled_as_it_came_and_deleted_by_lambda(consumer: Consumer) -> None:
    assert handled_by(consumer, record("b"), record("a")) == (["b", "a"], [])
    assert consumer.sqs.calls == []


def test_each_message_beside_a_suspect_is_deleted_at_once_and_the_suspect_comes_last(consumer: Consumer) -> None:
    tried, again = handled_by(consumer, record("a", 2), record("b"), record("c"))

    assert (tried, again) == (["b", "c", "a"], [])
    assert consumer.sqs.calls == ["delete b", "delete c", "delete a"]
    assert consumer.sqs.queue_urls == {"https://sqs.us-east-1.amazonaws.com/111122223333/relaunch-intake"}


def test_suspects_are_set_apart_before_any_message_is_tried(consumer: Consumer) -> None:
    handled_by(consumer, record("a", 3), record("b", 2), record("c", 2), record("d"))

    apart, *deleted = consumer.sqs.calls
    assert deleted == ["delete d", "delete c", "delete b", "delete a"]
    times = ast.literal_eval(apart.removeprefix("apart "))
    assert list(times) == ["c", "b", "a"]
    # Six times the half minute of the function, and ten seconds for each, with jitter.
    assert [(seconds - 180) // 10 for seconds in times.values()] == [0, 1, 2]


def test_a_message_on_its_last_try_is_handled_first(consumer: Consumer) -> None:
    assert handled_by(consumer, record("a"), record("b", LAST_TRY)) == (["b", "a"], [])


def test_messages_that_there_may_be_no_time_for_come_back_soon_untried(consumer: Consumer) -> None:
    tried, again = handled_by(consumer, *(record(each) for each in "abcde"), seconds_each=9)

    assert (tried, again) == (["a", "b"], ["c", "d", "e"])
    assert consumer.sqs.calls == ["apart {'c': 5, 'd': 6, 'e': 7}"]
    assert (consumer.failures, consumer.log.decisions) == (0, [])


def test_a_function_with_little_time_tries_one_message_and_each_that_has_no_other_try(consumer: Consumer) -> None:
    consumer.context.milliseconds = 5_000
    tried, again = handled_by(consumer, record("a"), record("b", LAST_TRY), record("c", LAST_TRY), record("d", 2))

    assert (tried, again) == (["b", "c"], ["a", "d"])


def test_a_message_that_is_given_up_is_deleted_too(consumer: Consumer) -> None:
    consumer.handle(raising(PermanentError("no JSON"), None), record("a", 2), record("b"))

    assert consumer.sqs.calls == ["delete b", "delete a"]


def test_a_permanent_error_without_words_gives_its_message_up(consumer: Consumer) -> None:
    assert consumer.handle(raising(PermanentError()), record()) == []
    assert consumer.sqs.sent[0]["reason"] == "PermanentError"


def test_a_message_that_failed_is_not_deleted(consumer: Consumer) -> None:
    assert consumer.handle(raising(TransientError("throttled")), record("a", 2)) == ["a"]
    assert consumer.sqs.calls == []


@pytest.mark.parametrize("action", ["delete_message", "change_message_visibility_batch"])
def test_a_call_that_sqs_does_not_answer_changes_nothing_of_the_outcome(consumer: Consumer, action: str) -> None:
    def time_out(**_: Any) -> None:
        raise ReadTimeoutError(endpoint_url="sqs")

    setattr(consumer.sqs, action, time_out)
    consumer.context.milliseconds = 20_000

    tried, again = handled_by(consumer, record("a", 2), record("b", 2), record("c"), seconds_each=9)

    assert (tried, again) == (["c"], ["b", "a"])
