import json
from datetime import UTC, datetime
from typing import Any

import pytest

from fakes.action_services import JOB_API_URL, FakeServices, FakeTime, lost
from relaunch_action.errors import ActionError, UnavailableError
from relaunch_action.http_requests import Response
from relaunch_action.job_api import JobApi, RefusedError
from relaunch_action.retries import ATTEMPTS
from relaunch_action.signature import Credentials

NOW = datetime(2026, 11, 3, 12, 30, 42, tzinfo=UTC)
JOB = {"job_id": "resnet-1", "state": "RUNNING", "is_final": False}


def make_client(services: FakeServices) -> JobApi:
    patience = FakeTime().patience()
    return JobApi(JOB_API_URL, "us-east-1", lambda: Credentials("A", "s", "t"), services.send, patience, lambda: NOW)


def answer(status: int, body: Any) -> Response:
    return Response(status, body if isinstance(body, bytes) else json.dumps(body).encode())


def test_a_submission_that_is_repeated_finds_its_job() -> None:
    client = make_client(FakeServices())

    first, again = (client.submit("resnet", {"learning_rate": "0.1"}, "key") for _ in range(2))

    assert (first.is_new, again.is_new) == (True, False)
    assert first.job.job_id == again.job.job_id
    assert first.job.revision_arn.endswith(":task-definition/trainer:7")
    assert first.note.startswith("started job")


@pytest.mark.parametrize(
    "failure",
    [
        *lost(1),
        Response(503, b'{"error": {"code": "Unavailable", "message": "x"}}'),
        Response(502, b""),
        Response(429, b""),
    ],
)
@pytest.mark.parametrize("is_late", [False, True])
def test_what_is_not_answered_is_sent_again_and_starts_one_job(failure: Response | Exception, is_late: bool) -> None:
    services = FakeServices()
    (services.late_answers if is_late else services.answers).extend([failure, failure])

    submission = make_client(services).submit("resnet", {}, "key")

    assert services.stack.started == [submission.job.job_id]
    assert submission.is_new is not is_late
    assert len(services.asked) == 3
    assert services.asked[0] == services.asked[2]


def test_an_outage_is_told_after_some_attempts() -> None:
    services = FakeServices()
    services.answers.extend(lost(ATTEMPTS))

    with pytest.raises(UnavailableError, match="job_api did not answer: timed out"):
        make_client(services).show("resnet-1")

    assert len(services.asked) == ATTEMPTS


@pytest.mark.parametrize(
    ("definition", "key", "code", "words"),
    [
        ("resnt", "k", "UnknownDefinition", "did you mean resnet"),
        ("Not a name", "k", "InvalidRequest", "definition"),
        ("resnet", "k" * 201, "InvalidRequest", "idempotency_key"),
        ("resnet", " \t", "InvalidRequest", "idempotency_key"),
    ],
)
def test_a_refusal_is_told_in_job_apis_words_and_not_repeated(definition: str, key: str, code: str, words: str) -> None:
    services = FakeServices()

    with pytest.raises(RefusedError) as refused:
        make_client(services).submit(definition, {}, key)

    assert refused.value.code == code
    assert words in str(refused.value)
    assert len(services.asked) == 1


def test_too_many_waiting_jobs_are_a_refusal_though_their_status_is_that_of_throttling() -> None:
    services = FakeServices()
    services.answers = [answer(429, {"error": {"code": "WaitingLimitReached", "message": "20 jobs wait"}})]

    with pytest.raises(RefusedError, match="WaitingLimitReached: 20 jobs wait"):
        make_client(services).submit("resnet", {}, "key")


@pytest.mark.parametrize("name", ["Message", "message"])
def test_a_caller_that_lambda_does_not_let_in_is_told_what_to_grant(name: str) -> None:
    services = FakeServices()
    services.answers = [answer(403, {name: "The security token included in the request is expired"})]

    with pytest.raises(ActionError, match=r"InvokeFunctionUrl.*security token included in the request is expired"):
        make_client(services).show("resnet-1")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b"<html>"),
        (200, []),
        (200, {}),
        (200, b"[" * 99_999),
        (200, {"job": 5}),
        (200, {"job": {**JOB, "is_final": "no"}}),
        (200, {"job": {**JOB, "job_id": ""}}),
        (200, {"job": {**JOB, "state": None}}),
        (302, b""),
        (404, b"not found"),
        (202, {"job": JOB}),
    ],
)
def test_what_is_no_answer_of_job_api_says_what_to_look_at(status: int, body: Any) -> None:
    services = FakeServices()
    services.answers = [answer(status, body)]

    with pytest.raises(ActionError, match="the input url has to be the stack's output JobApiUrl"):
        make_client(services).show("resnet-1")


def test_a_plan_that_is_none_says_so_too() -> None:
    services = FakeServices()
    services.answers = [answer(200, {"plan": []})]

    with pytest.raises(ActionError, match="the stack as new as this version of the action"):
        make_client(services).plan("resnet", {})


def test_a_state_that_nobody_knew_yet_is_shown_as_it_is() -> None:
    services = FakeServices()
    services.answers = [
        answer(200, {"job": {**JOB, "state": "DREAMING", "new": True, "attempt": "x", "failures": None}})
    ]

    job = make_client(services).show("resnet-1")

    assert job.describe() == "job resnet-1: DREAMING"
    assert not job.has_succeeded


def test_a_job_is_described_in_one_line() -> None:
    services = FakeServices()
    told = {"attempt": 2, "offering": "g5.xlarge spot us-east-1a", "interruptions": 2, "failures": 1, "reason": "why"}
    services.answers = [answer(200, {"job": {**JOB, **told, "cost_usd": 0.5}})]

    job = make_client(services).show("resnet-1")

    line = "job resnet-1: RUNNING, attempt 2 on g5.xlarge spot us-east-1a, 2 interruptions, 1 failure (why)"
    assert (job.describe(), job.cost) == (line, "0.5")
