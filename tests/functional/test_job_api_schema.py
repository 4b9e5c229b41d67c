"""job_api against its published schema: an HTTP face, which only this test has, lets schemathesis speak to it.

What keeps the schema is answered or refused for what it says; what does not is refused as InvalidRequest; every answer
keeps the schema of answers.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema
import pytest
import schemathesis
from hypothesis import given
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode

from fakes.busy_stack import JOB_ID, BusyStack
from fakes.functions import FakeContext
from fakes.repository import REPOSITORY
from fakes.webhook import load_event
from relaunch.adapters.messages.job_api import published_schema
from relaunch.ports import TransientError

PUBLISHED = REPOSITORY / "docs" / "job_api.schema.json"
ANSWER = {**published_schema(), "$ref": "#/$defs/Answer"}


def openapi() -> dict[str, Any]:
    """Describe job_api as if it spoke HTTP, by its published schema."""
    text = PUBLISHED.read_text(encoding="utf-8").replace("#/$defs/", "#/components/schemas/")
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Request"}}}
    answer = {"description": "", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Answer"}}}}
    operation = {
        "requestBody": {"required": True, "content": content},
        "responses": {"200": answer, "400": answer, "404": answer},
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "job_api", "version": "1"},
        "paths": {"/job_api": {"post": operation}},
        "components": {"schemas": json.loads(text)["$defs"]},
    }


def status_of(answer: dict[str, Any]) -> str:
    if "error" not in answer:
        return "200 OK"
    return "400 Bad Request" if answer["error"]["code"] == "InvalidRequest" else "404 Not Found"


def read(body: bytes) -> Any:
    """Read what was sent; what is no JSON Lambda itself refuses, and here it is a text like any other."""
    try:
        return json.loads(body)
    except ValueError:
        return body.decode("latin-1")


def serve(environment: dict[str, Any], start_response: Callable[..., Any]) -> Iterator[bytes]:
    """Answer one request over HTTP (WSGI); each finds a stack of its own."""
    answer: Any = openapi()
    status = "200 OK"
    if environment["REQUEST_METHOD"] == "POST":
        body = environment["wsgi.input"].read(int(environment.get("CONTENT_LENGTH") or 0))
        answer = BusyStack().functions.invoke("job_api", read(body))
        status = status_of(answer)
    start_response(status, [("content-type", "application/json")])
    yield json.dumps(answer).encode()


def cases(mode: GenerationMode) -> st.SearchStrategy[Case[Any]]:
    operation = schemathesis.openapi.from_wsgi("/openapi.json", serve)["/job_api"]["POST"]
    return operation.as_strategy(generation_mode=mode)


@given(case=cases(GenerationMode.POSITIVE))
def test_a_request_that_keeps_the_schema_is_never_called_invalid(case: Case[Any]) -> None:
    response = case.call()

    assert response.status_code in {200, 404}, response.content
    case.validate_response(response)


@given(case=cases(GenerationMode.NEGATIVE))
def test_a_request_that_breaks_the_schema_is_refused_in_words(case: Case[Any]) -> None:
    response = case.call()

    assert response.status_code == 400, response.content
    case.validate_response(response)


def test_the_published_schema_is_current() -> None:
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == published_schema()


@pytest.mark.parametrize("action", ["submit", "show", "cancel"])
def test_samples_keep_the_schema_and_are_answered_by_it(action: str) -> None:
    request = load_event(f"job_api.{action}")
    jsonschema.Draft202012Validator(published_schema()).validate(request)

    answer = BusyStack().functions.invoke("job_api", request)

    jsonschema.Draft202012Validator(ANSWER, format_checker=jsonschema.FormatChecker()).validate(answer)
    assert answer["job"]["definition"] == "resnet"
    assert (answer["job"]["job_id"] == JOB_ID) == (action != "submit")
    assert answer.get("is_new", False) == (action == "submit")


@pytest.mark.parametrize(
    ("request_", "code", "words"),
    [
        pytest.param({"action": "start"}, "InvalidRequest", "'submit', 'show', 'cancel'", id="action"),
        pytest.param({"action": "show"}, "InvalidRequest", "show.job_id: Field required", id="missing"),
        pytest.param({"action": "show", "job_id": "a/b"}, "InvalidRequest", "show.job_id", id="form-of-an-id"),
        pytest.param({"action": "submit", "definition": "resnet", "input": {}}, "InvalidRequest", "input", id="typo"),
        pytest.param({"action": "submit", "definition": "resnt"}, "UnknownDefinition", "resnet", id="definition"),
        pytest.param({"action": "show", "job_id": "resnet-0"}, "UnknownJob", "resnet-0", id="job"),
        pytest.param({"action": "cancel", "job_id": "resnet-0"}, "UnknownJob", "resnet-0", id="job-to-cancel"),
        pytest.param("submit", "InvalidRequest", "Input should be a valid dictionary", id="text"),
        pytest.param(None, "InvalidRequest", "Input should be a valid dictionary", id="nothing"),
    ],
)
def test_a_refusal_says_what_is_wrong(request_: Any, code: str, words: str) -> None:
    answer = BusyStack().functions.invoke("job_api", request_)

    jsonschema.Draft202012Validator(ANSWER).validate(answer)
    assert answer["error"]["code"] == code
    assert words in answer["error"]["message"]


def test_the_same_call_repeated_by_lambda_starts_one_job() -> None:
    stack, context = BusyStack(), FakeContext()
    request = {"action": "submit", "definition": "resnet"}

    first, again = (stack.functions.invoke("job_api", request, context) for _ in range(2))
    other = stack.functions.invoke("job_api", request)

    assert (first["is_new"], again["is_new"], other["is_new"]) == (True, False, True)
    assert first["job"]["job_id"] == again["job"]["job_id"] != other["job"]["job_id"]


def test_an_outage_is_no_refusal_but_worth_another_call() -> None:
    stack = BusyStack()
    stack.jobs.fail_next(TransientError("DynamoDB does not answer"), after_effect=True)
    context = FakeContext()
    request = {"action": "submit", "definition": "resnet"}

    with pytest.raises(TransientError):
        stack.functions.invoke("job_api", request, context)

    assert stack.functions.invoke("job_api", request, context)["job"]["state"] == "WAITING"
    assert len(stack.started) == 1
