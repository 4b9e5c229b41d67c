"""job_api by its function URL: callers that have keys and jobs of their own."""

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jsonschema
import pytest

from fakes.busy_stack import JOB_ID, BusyStack
from fakes.webhook import load_event
from relaunch.adapters.messages.job_api import published_schema
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.triggers.events import DirectRequest
from relaunch.ports import TransientError
from relaunch.usecases.submit_job import submit_request

ANSWER = {**published_schema(), "$ref": "#/$defs/Answer"}
CI = "arn:aws:sts::111122223333:assumed-role/ci-vision/run-1"
CI_AGAIN = "arn:aws:sts::111122223333:assumed-role/ci-vision/run-2"
ADA = "arn:aws:iam::111122223333:user/ada"
SUBMIT = {"action": "submit", "definition": "resnet", "inputs": {"dataset": "secret-of-ci"}, "idempotency_key": "k"}


def event(request: object, arn: str | None = CI, **changes: Any) -> dict[str, Any]:
    sample = load_event("function-url.job-api")
    sample["requestContext"]["authorizer"] = {"iam": {"userArn": arn}} if arn is not None else None
    return {**sample, "body": json.dumps(request), **changes}


def call(stack: BusyStack, request: object, arn: str | None = CI, **changes: Any) -> tuple[int, dict[str, Any]]:
    response = stack.functions.invoke("job_api", event(request, arn, **changes))
    assert response["headers"] == {"content-type": "application/json"}
    answer = json.loads(response["body"])
    jsonschema.Draft202012Validator(ANSWER, format_checker=jsonschema.FormatChecker()).validate(answer)
    return response["statusCode"], answer


def about(action: str, answer: Mapping[str, Any]) -> dict[str, Any]:
    return {"action": action, "job_id": answer["job"]["job_id"]}


def test_the_documented_event_starts_a_job_of_its_caller() -> None:
    stack = BusyStack()

    response = stack.functions.invoke("job_api", load_event("function-url.job-api"))

    assert response["statusCode"] == 201
    (job_id,) = stack.started
    assert json.loads(response["body"])["job"]["job_id"] == job_id
    assert stack.jobs.job(job_id).trigger.caller == "arn:aws:sts::111122223333:assumed-role/ci-vision"


def test_a_callers_key_returns_its_job_also_in_another_session_of_its_role() -> None:
    stack = BusyStack()

    (created, first), (found, again) = call(stack, SUBMIT), call(stack, SUBMIT, CI_AGAIN)

    assert (created, found) == (201, 200)
    assert first["job"]["job_id"] == again["job"]["job_id"]


def test_the_same_key_of_another_caller_is_another_job_and_tells_nothing() -> None:
    stack = BusyStack()
    theirs = {**SUBMIT, "inputs": {"dataset": "other"}}

    (_, first), (status, second) = call(stack, SUBMIT), call(stack, theirs, ADA)
    invoked = stack.functions.invoke("job_api", theirs)

    assert status == 201
    assert len({each["job"]["job_id"] for each in (first, second, invoked)}) == 3


def test_other_inputs_under_a_known_key_are_refused_without_their_values() -> None:
    stack = BusyStack()
    call(stack, SUBMIT)

    status, answer = call(stack, {**SUBMIT, "inputs": {"dataset": "mine"}})

    assert (status, answer["error"]["code"]) == (409, "IdempotentParameterMismatch")
    assert "dataset" in answer["error"]["message"]
    assert "secret-of-ci" not in answer["error"]["message"]


@pytest.mark.parametrize("action", ["show", "cancel"])
def test_another_callers_job_is_answered_as_if_it_did_not_exist(action: str) -> None:
    stack = BusyStack()
    _, first = call(stack, SUBMIT)

    refused = call(stack, about(action, first), ADA)
    invoked = stack.functions.invoke("job_api", about(action, first))
    missing = call(stack, {"action": action, "job_id": "resnet-0"}, ADA)

    assert refused[0] == missing[0] == 404
    assert refused[1] == invoked
    assert refused[1]["error"]["message"].replace(first["job"]["job_id"], "resnet-0") == missing[1]["error"]["message"]
    assert stack.jobs.job(first["job"]["job_id"]).state == "WAITING"
    assert call(stack, about(action, first), CI_AGAIN)[0] == 200


@pytest.mark.parametrize("action", ["show", "cancel"])
def test_a_job_that_nobody_asked_for_is_for_invoke_alone(action: str) -> None:
    stack = BusyStack()
    request = {"action": action, "job_id": JOB_ID}

    assert call(stack, request)[0] == 404
    assert stack.functions.invoke("job_api", request)["job"]["job_id"] == JOB_ID


@pytest.mark.parametrize(
    ("changes", "status", "code", "words"),
    [
        pytest.param({"body": "{"}, 400, "MalformedBody", "send the request as JSON", id="no-json"),
        pytest.param({"body": None}, 400, "MalformedBody", "send the request as JSON", id="no-body"),
        pytest.param({"body": 5}, 400, "MalformedBody", "send the request as JSON", id="number"),
        pytest.param({"body": "[" * 99_999}, 400, "MalformedBody", "send the request as JSON", id="deep"),
        pytest.param({"body": "%", "isBase64Encoded": True}, 400, "MalformedBody", "JSON", id="no-base64"),
        pytest.param({"body": '{"action": "start"}'}, 400, "InvalidRequest", "'submit', 'show'", id="action"),
        pytest.param(
            {"body": '{"action":"submit","definition":"resnt"}'}, 404, "UnknownDefinition", "resnet", id="name"
        ),
        pytest.param(
            {"requestContext": {"http": {"method": "GET"}, "authorizer": {"iam": {"userArn": ADA}}}},
            405,
            "MethodNotAllowed",
            "send a POST",
            id="method",
        ),
        pytest.param({"requestContext": {"http": {"method": "POST"}}}, 401, "UnknownCaller", "AWS_IAM", id="open-url"),
        pytest.param(
            {"requestContext": {"http": {"method": "POST"}, "authorizer": {"iam": {"userArn": ""}}}},
            401,
            "UnknownCaller",
            "AWS_IAM",
            id="no-arn",
        ),
    ],
)
def test_a_refusal_has_its_status_and_says_what_to_do(
    changes: dict[str, Any], status: int, code: str, words: str
) -> None:
    stack = BusyStack()

    answered, answer = call(stack, SUBMIT, **changes)

    assert (answered, answer["error"]["code"]) == (status, code)
    assert words in answer["error"]["message"]
    assert stack.started == []


def test_a_body_in_base64_is_read() -> None:
    body = base64.b64encode(json.dumps(SUBMIT).encode()).decode()

    assert call(BusyStack(), None, body=body, isBase64Encoded=True)[0] == 201


def test_too_many_waiting_jobs_are_429_and_the_key_of_a_waiting_one_still_finds_it() -> None:
    stack = BusyStack()
    stack.functions.deps = replace(stack.functions.deps, limits=StackLimits(max_waiting_jobs=1))
    assert call(stack, SUBMIT)[0] == 201

    status, answer = call(stack, {**SUBMIT, "idempotency_key": "another"})

    assert (status, answer["error"]["code"]) == (429, "WaitingLimitReached")
    assert len(stack.started) == 1
    assert call(stack, SUBMIT)[0] == 200


def test_the_waiting_jobs_of_one_caller_keep_no_other_one_from_starting_jobs() -> None:
    stack = BusyStack()
    stack.functions.deps = replace(stack.functions.deps, limits=StackLimits(max_waiting_jobs=8))
    flood = [call(stack, {**SUBMIT, "idempotency_key": f"flood-{each}"}) for each in range(4)]

    assert [status for status, _ in flood] == [201, 201, 429, 429]
    assert "too many of your jobs wait: 2" in flood[-1][1]["error"]["message"]
    other = call(stack, {**SUBMIT, "idempotency_key": "b"}, arn=ADA)
    assert (other[0], len(stack.started)) == (201, 3)
    assert call(stack, {**SUBMIT, "idempotency_key": "flood-0"})[0] == 200


LISTED = "arn:aws:iam::111122223333:role/relaunch/ci-vision"


def guard(stack: BusyStack, *callers: str) -> None:
    """Register the definition again, for these callers."""
    definitions = stack.functions.deps.definitions
    definition = definitions.load_definition("resnet")
    assert definition is not None
    definitions.save_definition(replace(definition, callers=callers))


@pytest.mark.parametrize("action", ["submit", "plan"])
def test_a_caller_that_a_definition_does_not_list_is_refused_and_not_shown_the_list(action: str) -> None:
    stack = BusyStack()
    guard(stack, LISTED)
    request = {"action": action, "definition": "resnet", "inputs": {"dataset": "x"}}

    status, answer = call(stack, request, ADA)
    invoked = stack.functions.invoke("job_api", request)

    assert (status, answer["error"]["code"], invoked["error"]["code"]) == (403, "CallerNotListed", "CallerNotListed")
    assert f"{ADA} may not start jobs of resnet" in answer["error"]["message"]
    assert "`relaunch apply`" in answer["error"]["message"]
    assert "ci-vision" not in answer["error"]["message"]
    assert stack.started == []
    assert call(stack, request)[0] in {200, 201}


def test_invoke_is_listed_by_its_word() -> None:
    stack = BusyStack()
    guard(stack, "invoke")

    assert stack.functions.invoke("job_api", SUBMIT)["is_new"]
    assert call(stack, SUBMIT)[0] == 403


def test_a_caller_that_is_listed_no_more_starts_nothing_and_still_sees_and_cancels_its_jobs() -> None:
    stack = BusyStack()
    _, submitted = call(stack, SUBMIT)
    guard(stack, "invoke")

    assert call(stack, SUBMIT)[0] == 403
    assert call(stack, about("show", submitted))[0] == 200
    assert call(stack, about("cancel", submitted))[0] == 200
    assert call(stack, about("retry", submitted))[0] == 403
    assert len(stack.started) == 1


def test_who_submits_by_the_command_is_not_asked_for() -> None:
    stack = BusyStack()
    guard(stack, LISTED)

    assert submit_request(DirectRequest("cli:1", "resnet", {}, ADA), stack.functions.deps).is_new


def test_however_many_requests_callers_send_events_start_their_jobs() -> None:
    stack = BusyStack()
    stack.functions.deps = replace(stack.functions.deps, limits=StackLimits(max_waiting_jobs=6))

    answers = [
        call(stack, {**SUBMIT, "idempotency_key": f"flood-{number}"}, (CI, ADA)[number % 2]) for number in range(8)
    ]
    stack.functions.deliver("submit_job", json.dumps(load_event("s3.notification")))

    assert [status for status, _ in answers] == [201] * 3 + [429] * 5
    assert "may fill 500 of the first and 3 of the second limit, what is left is kept for events" in str(answers[-1])
    assert len(stack.started) == 4


def test_an_outage_is_503_and_the_same_key_finds_what_it_had_done_already() -> None:
    stack = BusyStack()
    stack.jobs.fail_next(TransientError("DynamoDB does not answer"), after_effect=True)

    status, answer = call(stack, SUBMIT)

    assert (status, answer["error"]["code"]) == (503, "Unavailable")
    assert stack.functions.failures == ["DynamoDB does not answer"]
    assert call(stack, SUBMIT)[0] == 200
    assert len(stack.started) == 1


def test_the_command_and_the_url_are_one_caller() -> None:
    stack = BusyStack()
    caller = "arn:aws:sts::111122223333:assumed-role/ci-vision"
    submitted = submit_request(DirectRequest("cli:1", "resnet", {}, caller), stack.functions.deps)
    assert submitted.job is not None

    assert call(stack, {"action": "show", "job_id": submitted.job.job_id})[0] == 200


def test_a_caller_retries_a_job_of_its_own_that_has_ended_and_no_others() -> None:
    stack = BusyStack()
    _, submitted = call(stack, SUBMIT)
    again = {**about("retry", submitted), "idempotency_key": "again"}

    too_early = call(stack, again)
    call(stack, about("cancel", submitted))
    stranger = call(stack, again, ADA)
    (created, first), (found, second) = call(stack, again), call(stack, again, CI_AGAIN)

    assert (too_early[0], too_early[1]["error"]["code"]) == (409, "CannotRetry")
    assert "wait until it has ended, or cancel it" in too_early[1]["error"]["message"]
    assert (stranger[0], stranger[1]["error"]["code"]) == (404, "UnknownJob")
    assert (created, first["is_new"], found, second["is_new"]) == (201, True, 200, False)
    assert first["job"]["job_id"] == second["job"]["job_id"] != submitted["job"]["job_id"]
    retried = stack.jobs.job(first["job"]["job_id"])
    assert retried.inputs["dataset"] == "secret-of-ci"
    assert retried.trigger.summary.startswith(f"retry of {submitted['job']['job_id']}, asked for by arn:")


def test_a_retry_without_a_key_is_a_job_of_each_call() -> None:
    stack = BusyStack()
    _, submitted = call(stack, SUBMIT)
    call(stack, about("cancel", submitted))

    (_, first), (_, second) = (call(stack, about("retry", submitted)) for _ in range(2))

    assert first["job"]["job_id"] != second["job"]["job_id"]


@pytest.mark.parametrize("chosen", [{"step": -1}, {"step": "300"}, {"attempt": 0}, {"checkpoint": "s3://x/"}])
def test_a_checkpoint_that_cannot_be_is_refused(chosen: Mapping[str, Any]) -> None:
    status, answer = call(BusyStack(), {"action": "retry", "job_id": JOB_ID, **chosen})

    assert (status, answer["error"]["code"]) == (400, "InvalidRequest")
