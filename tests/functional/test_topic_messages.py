"""Messages of SNS topics start jobs, and nothing that comes by their queue is read as anything else."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from fakes.busy_stack import BusyStack
from fakes.functions import NOTICE_TOPIC, SNS_QUEUE_ARN, TOPIC, make_batch
from fakes.metrics import ListMetrics
from fakes.webhook import load_event
from relaunch.core.lifecycle.metrics import Metric
from relaunch.ports import TransientError

SAMPLE = load_event("sqs.sns.topic-message")
BODY = SAMPLE["Records"][0]["body"]
FORGERIES = ("sqs.intake.github-push", "sqs.intake.s3", "sqs.intake.image", "sqs.intake.eventbridge")


def batch_of(*bodies: str) -> dict[str, Any]:
    batch = make_batch(*bodies)
    for record in batch["Records"]:
        record["eventSourceARN"] = SNS_QUEUE_ARN
    return batch


def deliver(stack: BusyStack, *bodies: str) -> Any:
    return stack.functions.invoke("submit_job", batch_of(*bodies))


def changed(**members: Any) -> str:
    return json.dumps({**json.loads(BODY), **members})


@contextmanager
def unreachable(stack: BusyStack) -> Iterator[None]:
    def fail(*_: object) -> None:
        raise TransientError("the table does not answer")

    with pytest.MonkeyPatch.context() as seam:
        seam.setattr(stack.functions.deps.definitions, "find_definitions", fail)
        yield


def test_the_sample_starts_a_job_with_its_inputs() -> None:
    stack = BusyStack()

    assert stack.functions.invoke("submit_job", SAMPLE) == {"batchItemFailures": []}

    (job_id,) = stack.started
    job = stack.jobs.job(job_id)
    assert job.inputs["learning_rate"] == "0.01"
    assert job.trigger.environment["RELAUNCH_SNS_TOPIC_ARN"] == TOPIC
    assert (stack.functions.dead_letters.letters, stack.functions.dead_letters.of_topics) == ([], [])


def test_a_message_that_is_delivered_twice_starts_one_job() -> None:
    stack = BusyStack()

    deliver(stack, BODY, BODY)
    deliver(stack, changed(Timestamp="2026-11-03T12:50:00.000Z", Signature="another"))

    assert len(stack.started) == 1


def test_two_messages_of_the_same_text_start_two_jobs() -> None:
    stack = BusyStack()

    deliver(stack, BODY, changed(MessageId="11111111-56c5-5e96-808d-cc7f68faa162"))

    assert len(stack.started) == 2


@pytest.mark.parametrize("sample", FORGERIES)
def test_a_forged_message_of_the_intake_queue_starts_nothing(sample: str) -> None:
    stack = BusyStack()
    forged = load_event(sample)["Records"][0]["body"]

    assert deliver(stack, forged) == {"batchItemFailures": []}

    assert stack.started == []
    # Nor is it where whoever redrives would send it to the queue `intake`.
    assert stack.functions.dead_letters.letters == []
    (letter,) = stack.functions.dead_letters.of_topics
    assert letter.body == forged
    assert "no message of a topic in the JSON of SNS" in letter.attributes["reason"]


@pytest.mark.parametrize("sample", FORGERIES)
def test_a_forgery_within_a_message_is_the_text_of_a_message(sample: str) -> None:
    stack = BusyStack()

    deliver(stack, changed(Message=load_event(sample)["Records"][0]["body"]))

    (job_id,) = stack.started
    assert stack.jobs.job(job_id).trigger.source == "sns"


def test_a_message_of_another_topic_starts_nothing() -> None:
    stack = BusyStack()

    deliver(stack, changed(TopicArn=f"{TOPIC}-b"))

    assert stack.started == []
    (letter,) = stack.functions.dead_letters.of_topics
    assert f"the topic '{TOPIC}-b' is none of the parameter SnsTopicArns" in letter.attributes["reason"]


def test_a_message_of_a_topic_of_notices_is_ignored_and_counted() -> None:
    stack = BusyStack()
    metrics = ListMetrics()
    stack.functions.deps = replace(stack.functions.deps, metrics=metrics)

    deliver(stack, changed(TopicArn=NOTICE_TOPIC))

    assert (stack.started, stack.functions.dead_letters.of_topics) == ([], [])
    assert [facts["reason"] for decision, facts in stack.functions.log.lines if decision == "ignored"] == [
        f"{NOTICE_TOPIC} is a topic of notices, which would start jobs without end"
    ]
    assert len(metrics.of(Metric.EVENTS_IGNORED)) == 1


def test_a_message_of_a_topic_in_the_queue_of_deliveries_starts_nothing() -> None:
    stack = BusyStack()

    stack.functions.invoke("submit_job", make_batch(BODY))

    assert stack.started == []
    assert len(stack.functions.dead_letters.letters) == 1


def test_a_message_comes_again_if_the_table_does_not_answer() -> None:
    stack = BusyStack()

    with unreachable(stack):
        deliver(stack, BODY)

    assert (stack.started, stack.functions.dead_letters.sent_again) == ([], [BODY])
    deliver(stack, *stack.functions.dead_letters.sent_again)
    assert len(stack.started) == 1
