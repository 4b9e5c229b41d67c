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
from relaunch.adapters.aws.sqs.batch import Consumer, Queues, handle_batch
from relaunch.adapters.aws.sqs.dead_letter_queue import DeadLetterSender
from relaunch.adapters.aws.sqs.source_queue import SourceQueue
from relaunch.ports import NotGrantedError, NotYetError, PermanentError, StaleWriteError, TransientError

LAST_TRY = 5


class SentMessages:
    """SQS, as far as SendMessage, ChangeMessageVisibilityBatch and DeleteMessage go; `sent` are dead letters."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []
        self.sent_again: list[dict[str, Any]] = []
        self.queue_urls: set[str] = set()
        self.calls: list[str] = []

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
        sent = {"queue": parameters["QueueUrl"], "body": parameters["MessageBody"], **given}
        if "DelaySeconds" in parameters:
            self.sent_again.append({**sent, "seconds": parameters["DelaySeconds"]})
        else:
            self.sent.append(sent)
        return {"MessageId": "1"}

    @property
    def back(self) -> list[str]:
        """The messages that were sent again."""
        return [each["body"].removeprefix("body ") for each in self.sent_again]


class Function:
    """A function's end of a queue."""

    def __init__(self, last_try: int = LAST_TRY) -> None:
        self.sqs, self.log, self.failures = SentMessages(), ListLog(), list[timedelta]()
        self.last_tries: list[str] = []
        sqs = cast("Any", self.sqs)
        self.queues = Queues(SourceQueue(sqs), DeadLetterSender(sqs, "dead", self.log, last_try))
        self.context = FakeContext(milliseconds=29_900)

    def handle(self, handle_body: Callable[[str], object], *records: dict[str, Any]) -> list[str]:
        """Return the ids of the messages that come back by themselves."""
        context = cast("LambdaContext", self.context)
        consumer = Consumer(handle_body, self.failures.append, self._begin_last_try, lambda: NOW)
        answer = handle_batch({"Records": list(records)}, context, consumer, self.queues)
        return [str(each["itemIdentifier"]) for each in answer["batchItemFailures"]]

    def _begin_last_try(self, message_id: str) -> bool:
        self.last_tries.append(message_id)
        return self.last_tries.count(message_id) == 1


@pytest.fixture
def consumer() -> Function:
    return Function()


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


def test_a_bug_is_logged_with_its_trace_and_the_message_comes_again(consumer: Function) -> None:
    assert consumer.handle(raising(KeyError("detail")), record()) == ["1"]

    ((_, facts),) = consumer.log.lines
    assert facts["reason"] == "KeyError: 'detail'"
    assert "handle_body" in str(facts["traceback"])


def test_message_that_cannot_be_sent_to_the_dead_letter_queue_is_retried(consumer: Function) -> None:
    def refuse(**_: Any) -> dict[str, str]:
        raise TransientError("throttled")

    consumer.sqs.send_message = refuse  # type: ignore[method-assign]

    assert consumer.handle(raising(PermanentError("no JSON")), record()) == ["1"]
    assert consumer.log.decisions == []


def test_a_redriven_message_keeps_since_when_it_fails(consumer: Function) -> None:
    earlier = {"first_seen": {"stringValue": "2026-01-01T00:00:00+00:00", "dataType": "String"}}

    consumer.handle(raising(PermanentError("no JSON")), record(messageAttributes=earlier))

    assert consumer.sqs.sent[0]["first_seen"] == "2026-01-01T00:00:00+00:00"


def test_a_message_without_times_is_handled_all_the_same() -> None:
    assert Function().handle(raising(None), record(attributes={})) == []


def handled_by(consumer: Function, *records: dict[str, Any], seconds_each: int = 0) -> tuple[list[str], list[str]]:
    """Return the messages in the order in which they were tried, and those that come again."""
    tried: list[str] = []

    def handle_body(body: str) -> None:
        tried.append(body.removeprefix("body "))
        consumer.context.milliseconds -= seconds_each * 1000

    return tried, consumer.handle(handle_body, *records)


def test_a_batch_of_new_messages_is_handled_as_it_came_and_deleted_by_lambda(consumer: Function) -> None:
    assert handled_by(consumer, record("b"), record("a")) == (["b", "a"], [])
    assert consumer.sqs.calls == []


def test_each_message_beside_a_suspect_is_deleted_at_once_and_the_suspect_comes_last(consumer: Function) -> None:
    tried, again = handled_by(consumer, record("a", 2), record("b"), record("c"))

    assert (tried, again) == (["b", "c", "a"], [])
    assert consumer.sqs.calls == ["delete b", "delete c", "delete a"]
    assert consumer.sqs.queue_urls == {"https://sqs.us-east-1.amazonaws.com/111122223333/relaunch-intake"}


def test_suspects_are_set_apart_before_any_message_is_tried(consumer: Function) -> None:
    handled_by(consumer, record("a", 3), record("b", 2), record("c", 2), record("d"))

    apart, *deleted = consumer.sqs.calls
    assert deleted == ["delete d", "delete c", "delete b", "delete a"]
    times = ast.literal_eval(apart.removeprefix("apart "))
    assert list(times) == ["c", "b", "a"]
    # Six times the half minute of the function, and ten seconds for each, with jitter.
    assert [(seconds - 180) // 10 for seconds in times.values()] == [0, 1, 2]


def test_a_message_on_its_last_try_is_handled_first(consumer: Function) -> None:
    assert handled_by(consumer, record("a"), record("b", LAST_TRY)) == (["b", "a"], [])


def test_a_message_that_is_given_up_is_deleted_too(consumer: Function) -> None:
    consumer.handle(raising(PermanentError("no JSON"), None), record("a", 2), record("b"))

    assert consumer.sqs.calls == ["delete b", "delete a"]


def test_a_permanent_error_without_words_gives_its_message_up(consumer: Function) -> None:
    assert consumer.handle(raising(PermanentError()), record()) == []
    assert consumer.sqs.sent[0]["reason"] == "PermanentError"


def attributes(**given: str) -> dict[str, Any]:
    """Return the message attributes of a message that was sent again."""
    return {name: {"stringValue": value, "dataType": "String"} for name, value in given.items()}


FIRST_SEEN = "2026-03-14T09:25:53+00:00"


@pytest.mark.parametrize("error", [TransientError("throttled"), NotGrantedError("no permission yet")])
def test_what_fails_for_now_is_sent_again_and_deleted_and_the_others_are_not(consumer: Function, error) -> None:
    again = consumer.handle(raising(None, error, PermanentError("no JSON")), *(record(each) for each in "123"))

    assert again == []
    assert consumer.sqs.sent == [{"queue": "dead", "body": "body 3", "reason": "no JSON", "first_seen": FIRST_SEEN}]
    ((sent),) = consumer.sqs.sent_again
    assert 5 <= sent.pop("seconds") < 30
    assert sent == {
        "queue": "https://sqs.us-east-1.amazonaws.com/111122223333/relaunch-intake",
        "body": "body 2",
        "first_seen": FIRST_SEEN,
        "failing_since": NOW.isoformat(),
        "tries_before": "0",
    }
    assert consumer.sqs.calls == ["delete 2"]
    assert consumer.log.decisions == ["failed", "dead-lettered"]


def test_a_temporary_error_is_no_try_and_what_a_function_died_of_is(consumer: Function) -> None:
    consumer.handle(
        raising(*[TransientError("throttled")] * 3),
        record("a", 4),
        record("b", 1, messageAttributes=attributes(tries_before="3", failing_since=NOW.isoformat())),
        record("c", 2, messageAttributes=attributes(tries_before="3", failing_since=NOW.isoformat())),
    )

    # Each has three tries that ended with their functions, or four.
    assert {each["body"]: each["tries_before"] for each in consumer.sqs.sent_again} == {
        "body a": "3",
        "body b": "3",
        "body c": "4",
    }


@pytest.mark.parametrize(
    ("minutes", "least", "most"), [(0, 5, 30), (1, 35, 60), (8, 245, 270), (300, 300, 325), (600, 870, 895)]
)
def test_the_longer_it_fails_the_later_it_comes_back_and_not_all_at_once(consumer, minutes, least, most) -> None:
    since = attributes(failing_since=(NOW - timedelta(minutes=minutes)).isoformat())
    every = [record(str(each), messageAttributes=since) for each in range(100)]
    consumer.handle(raising(*[TransientError("throttled")] * 100), *every)

    after = [each["seconds"] for each in consumer.sqs.sent_again]
    assert len(after) == 100
    assert least <= min(after) < max(after) < most
    assert len(set(after)) > 15


@pytest.mark.parametrize("minutes", [1, 300, 600])
def test_a_race_that_was_lost_after_a_long_outage_is_run_again_within_a_minute(consumer: Function, minutes) -> None:
    since = attributes(failing_since=(NOW - timedelta(minutes=minutes)).isoformat())

    consumer.handle(raising(StaleWriteError("another was faster")), record(messageAttributes=since))

    (sent,) = consumer.sqs.sent_again
    assert 35 <= sent["seconds"] < 60
    assert sent["failing_since"] == since["failing_since"]["stringValue"]


def test_what_fails_for_more_than_four_days_is_given_up_with_what_failed(consumer: Function) -> None:
    since = attributes(failing_since=(NOW - timedelta(days=4, seconds=1)).isoformat())

    assert consumer.handle(raising(TransientError("throttled")), record(messageAttributes=since)) == []

    assert consumer.sqs.sent[0]["reason"] == "given up after 4 days, 0:00:01 of temporary errors: throttled"
    assert consumer.sqs.sent_again == []


@pytest.mark.parametrize("given", ["yesterday", ""])
def test_attributes_that_nobody_of_ours_wrote_are_none(consumer: Function, given: str) -> None:
    odd = attributes(failing_since=given, tries_before=given)

    consumer.handle(raising(TransientError("throttled")), record(messageAttributes=odd))

    (sent,) = consumer.sqs.sent_again
    assert (sent["failing_since"], sent["tries_before"]) == (NOW.isoformat(), "0")


@pytest.mark.parametrize("action", ["send_message"])
@pytest.mark.parametrize("error", [TransientError("throttled"), NotYetError(18)])
def test_what_cannot_be_sent_again_comes_back_by_itself_and_is_not_deleted(consumer, action, error) -> None:
    def refuse(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "ThrottlingException"}}, "SendMessage")

    setattr(consumer.sqs, action, refuse)

    assert consumer.handle(raising(error), record()) == ["1"]
    assert consumer.sqs.calls == []


def test_what_a_bug_failed_keeps_the_time_out_of_its_queue_and_is_given_up_at_its_last_try(consumer: Function) -> None:
    assert consumer.handle(raising(KeyError("detail")), record(receive_count=LAST_TRY - 1)) == ["1"]
    assert consumer.sqs.sent_again == []
    assert consumer.handle(raising(KeyError("detail")), record(receive_count=LAST_TRY)) == []

    (letter,) = consumer.sqs.sent
    assert letter["reason"] == "given up after 5 tries: KeyError: 'detail'"


def test_tries_before_it_was_sent_again_count(consumer: Function) -> None:
    earlier = attributes(tries_before=str(LAST_TRY - 1))

    assert consumer.handle(raising(KeyError("detail")), record(messageAttributes=earlier)) == []
    assert consumer.sqs.sent[0]["reason"] == "given up after 5 tries: KeyError: 'detail'"


def test_a_last_try_that_was_begun_before_is_not_begun_again(consumer: Function) -> None:
    tried = list[str]()
    # The function died of the first one.
    consumer.last_tries.append("1")

    assert consumer.handle(tried.append, record(receive_count=LAST_TRY + 1)) == []

    assert tried == []
    assert consumer.sqs.sent[0]["reason"] == "given up: its functions ended without an answer 5 times"


def test_what_no_function_began_for_hours_has_its_last_try_all_the_same(consumer: Function) -> None:
    assert consumer.handle(raising(None), record(receive_count=60)) == []
    assert (consumer.last_tries, consumer.sqs.sent) == (["1"], [])


def test_a_last_try_waits_for_the_table_that_knows_whether_it_was_begun(consumer: Function) -> None:
    def fail(_message_id: str) -> bool:
        raise TransientError("the table does not answer")

    consumer._begin_last_try = fail  # type: ignore[method-assign]

    assert consumer.handle(raising(), record(receive_count=LAST_TRY)) == []
    assert consumer.sqs.sent_again[0]["tries_before"] == str(LAST_TRY - 1)


def test_where_the_last_try_is_not_known_sqs_counts_alone() -> None:
    function = Function(last_try=0)

    assert function.handle(raising(KeyError("detail")), record(receive_count=99)) == ["1"]
    assert function.last_tries == []


def test_messages_that_fail_are_counted_with_since_when_and_those_that_can_never_succeed_are_not(consumer) -> None:
    since = attributes(failing_since=(NOW - timedelta(minutes=7)).isoformat())
    errors = (None, TransientError("throttled"), PermanentError("no"), KeyError("detail"))
    consumer.handle(raising(*errors), record("1"), record("2", messageAttributes=since), record("3"), record("4"))

    assert consumer.failures == [timedelta(minutes=7), timedelta(0)]


@pytest.mark.parametrize("error", [TransientError("throttled"), NotGrantedError("no permission yet")])
def test_what_comes_back_by_itself_is_logged_without_a_traceback(consumer: Function, error: Exception) -> None:
    consumer.handle(raising(error), record(receive_count=2))

    ((decision, facts),) = consumer.log.lines
    assert (decision, facts["receive_count"], facts["traceback"]) == ("failed", 2, None)


@pytest.mark.parametrize("receive_count", [1, 3, LAST_TRY])
def test_what_came_early_is_sent_again_for_when_it_is_due_and_is_no_failure(consumer: Function, receive_count) -> None:
    assert consumer.handle(raising(NotYetError(18)), record(receive_count=receive_count)) == []

    (sent,) = consumer.sqs.sent_again
    assert (sent["seconds"], sent["tries_before"]) == (18, str(receive_count - 1))
    assert "failing_since" not in sent
    assert (consumer.failures, consumer.sqs.sent, consumer.log.decisions) == ([], [], [])


def test_messages_that_there_may_be_no_time_for_come_back_soon_untried(consumer: Function) -> None:
    tried, again = handled_by(consumer, *(record(each) for each in "abcde"), seconds_each=9)

    assert (tried, again) == (["a", "b"], [])
    assert consumer.sqs.back == ["c", "d", "e"]
    assert [each["seconds"] for each in consumer.sqs.sent_again] == [7, 8, 9]
    assert {each["tries_before"] for each in consumer.sqs.sent_again} == {"0"}
    assert (consumer.failures, consumer.log.decisions) == ([], [])


def test_a_function_with_little_time_tries_one_message(consumer: Function) -> None:
    consumer.context.milliseconds = 5_000
    tried, again = handled_by(consumer, record("a"), record("b", LAST_TRY), record("c", LAST_TRY), record("d", 2))

    assert (tried, again) == (["b"], [])
    assert consumer.sqs.back == ["c", "a", "d"]


@pytest.mark.parametrize("action", ["delete_message", "change_message_visibility_batch"])
def test_a_call_that_sqs_does_not_answer_changes_nothing_of_the_outcome(consumer: Function, action: str) -> None:
    def time_out(**_: Any) -> None:
        raise ReadTimeoutError(endpoint_url="sqs")

    setattr(consumer.sqs, action, time_out)
    consumer.context.milliseconds = 20_000

    tried, again = handled_by(consumer, record("a", 2), record("b", 2), record("c"), seconds_each=9)

    assert (tried, again, consumer.sqs.back) == (["c"], [], ["b", "a"])
