"""Asynchronous calls of job_api that failed come back through the intake queue."""

import json
from typing import Any

import pytest

from fakes.busy_stack import BusyStack
from relaunch.ports import NotGrantedError, TransientError

SUBMIT = {"action": "submit", "definition": "resnet"}


def record_of(request: object, request_id: str = "e4b46cbf-3c1a") -> str:
    """Return what Lambda sends to the on-failure destination of job_api ("Capturing records", AWS Lambda)."""
    return json.dumps(
        {
            "version": "1.0",
            "timestamp": "2026-03-14T09:20:00.000Z",
            "requestContext": {
                "requestId": request_id,
                "functionArn": "arn:aws:lambda:us-east-1:111122223333:function:relaunch-JobApi:$LATEST",
                "condition": "RetriesExhausted",
                "approximateInvokeCount": 3,
            },
            "requestPayload": request,
            "responseContext": {"statusCode": 200, "executedVersion": "$LATEST", "functionError": "Unhandled"},
            "responsePayload": {"errorMessage": "no answer", "errorType": "TransientError"},
        }
    )


def test_a_call_that_failed_for_a_while_starts_its_job_once() -> None:
    stack = BusyStack()

    assert stack.functions.deliver("submit_job", record_of(SUBMIT)) == []
    assert stack.functions.deliver("submit_job", record_of(SUBMIT)) == []
    assert len(stack.started) == 1

    stack.functions.deliver("submit_job", record_of(SUBMIT, "another call"))
    assert len(stack.started) == 2


def test_a_call_that_fails_still_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = BusyStack()

    def no_answer(*_arguments: Any) -> None:
        raise TransientError("no answer")

    monkeypatch.setattr(stack.functions.deps.definitions, "load_definition", no_answer)
    body = record_of(SUBMIT)

    assert stack.functions.deliver("submit_job", body) == [body]


def test_what_a_call_is_refused_is_in_the_log() -> None:
    stack = BusyStack()

    assert stack.functions.deliver("submit_job", record_of({"action": "explode"})) == []

    ((_, facts),) = [line for line in stack.functions.log.lines if line[0] == "answered"]
    assert facts["error"]["code"] == "InvalidRequest"
    assert stack.started == []


def test_a_permission_that_job_api_lacks_is_no_answer_to_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    stack = BusyStack()

    def deny(*_arguments: Any) -> None:
        raise NotGrantedError("AccessDeniedException: no permission")

    monkeypatch.setattr(stack.functions.deps.definitions, "load_definition", deny)

    with pytest.raises(TransientError, match="no permission"):
        stack.functions.invoke("job_api", SUBMIT)
