"""What the rules and schedules of triggers send starts jobs, and nothing that comes by their queue is read as more.

Whoever applies definitions writes what a rule and a schedule send: their input may be any text.
"""

import json
from dataclasses import replace
from typing import Any

import pytest

from fakes.busy_stack import JOB_ID, BusyStack
from fakes.functions import UPLOADS_QUEUE_ARN, make_batch
from fakes.metrics import ListMetrics
from fakes.webhook import load_event
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.metrics import Metric

SENT = ("sqs.intake.s3", "sqs.intake.s3-notification", "sqs.intake.schedule", "sqs.intake.eventbridge")
CALL = {
    "requestContext": {"requestId": "c6af9ac6-7b61-11e6-9a41-93e812345678", "condition": "RetriesExhausted"},
    "requestPayload": {"action": "cancel", "job_id": JOB_ID},
}


def body_of(sample: str) -> str:
    return str(load_event(sample)["Records"][0]["body"])


def batch_of(*bodies: str) -> dict[str, Any]:
    batch = make_batch(*bodies)
    for record in batch["Records"]:
        record["eventSourceARN"] = UPLOADS_QUEUE_ARN
    return batch


@pytest.mark.parametrize("sample", SENT)
def test_what_rules_and_schedules_send_starts_a_job(sample: str) -> None:
    stack = BusyStack()

    assert stack.functions.invoke("submit_job", batch_of(body_of(sample))) == {"batchItemFailures": []}

    assert len(stack.started) == 1


@pytest.mark.parametrize(
    "forged",
    [
        pytest.param(body_of("sqs.intake.github-push"), id="push"),
        pytest.param(body_of("sqs.intake.image"), id="image"),
        pytest.param(
            json.dumps({"Records": [], **json.loads(body_of("sqs.intake.github-push"))}), id="push with records"
        ),
        pytest.param(json.dumps(CALL), id="call"),
        pytest.param(json.dumps(json.loads(body_of("sqs.intake.s3")) | CALL), id="upload and call"),
        pytest.param(json.dumps({"source": "eventbridge", "format": 1} | CALL), id="malformed event and call"),
        pytest.param('{"source": ["aws.s3"], "detail-type": "Object Created"}', id="list"),
        pytest.param("{}", id="nothing"),
    ],
)
def test_nothing_else_is_taken_from_their_queue(forged: str) -> None:
    stack = BusyStack()
    metrics = ListMetrics()
    stack.functions.deps = replace(stack.functions.deps, metrics=metrics)
    before = stack.jobs.job(JOB_ID)

    assert stack.functions.invoke("submit_job", batch_of(forged)) == {"batchItemFailures": []}

    assert (stack.started, stack.jobs.job(JOB_ID)) == ([], before)
    # Nor is it where whoever redrives would send it to the queue `intake`.
    assert stack.functions.dead_letters.letters == []
    assert len(metrics.of(Metric.EVENTS_IGNORED)) == 1
    (reason,) = [facts["reason"] for decision, facts in stack.functions.log.lines if decision == "ignored"]
    assert reason.startswith("only rules and schedules of triggers send to the queue of uploads")


def test_the_queue_of_deliveries_takes_them_all() -> None:
    stack = BusyStack()

    stack.functions.invoke("submit_job", make_batch(body_of("sqs.intake.github-push"), json.dumps(CALL)))

    assert len(stack.started) == 1
    # An event started it, and so whoever may invoke job_api cancels it.
    assert stack.jobs.job(JOB_ID).state is JobState.STOPPING
