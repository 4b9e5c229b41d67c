"""Requests of the client, and what it makes of the answers of real servers (1.36.2 and 1.20.2)."""

import json
from datetime import UTC, datetime

import httpx
import pytest

from relaunch.adapters.kubernetes.api.client import KubernetesClient
from relaunch.adapters.kubernetes.api.errors import (
    AlreadyExistsError,
    ApiRefusedError,
    ConflictError,
    ForbiddenError,
    GoneError,
    NotFoundError,
    TooManyRequestsError,
    UnauthorizedError,
)
from relaunch.ports import PermanentError, TransientError

JOBS = "https://192.0.2.1:6443/apis/batch/v1/namespaces/training/jobs"
MANIFEST = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "cuda-sample"},
    "spec": {
        "template": {
            "spec": {
                "containers": [
                    {
                        "name": "main",
                        "image": "registry.example/train:1",
                        "resources": {"limits": {"aliyun.com/gpu-mem": 2, "aliyun.com/gpu-core.percentage": 30}},
                    }
                ],
                "restartPolicy": "Never",
            }
        }
    },
}
STORED = {
    "kind": "Job",
    "apiVersion": "batch/v1",
    "metadata": {
        "name": "cuda-sample",
        "namespace": "training",
        "uid": "f275c410-5a4b-4f19-a11e-af089dca69fa",
        "resourceVersion": "221",
        "creationTimestamp": "2026-11-03T12:00:00Z",
        "labels": None,
        "managedFields": [{"manager": "relaunch"}],
    },
    "spec": {"parallelism": 1, "backoffLimit": 0, "template": {"metadata": {"creationTimestamp": None}, "spec": {}}},
    "status": {"active": 1, "conditions": [{"type": "Complete", "status": "True"}]},
}


def test_creates_a_job_with_quantities_as_text(client: KubernetesClient, server) -> None:
    server.answer(201, STORED)

    job = client.create_job(MANIFEST)

    assert (server.last.method, str(server.last.url)) == ("POST", f"{JOBS}?fieldValidation=Strict")
    sent = json.loads(server.last.content)
    container = sent["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"]["limits"] == {"aliyun.com/gpu-mem": "2", "aliyun.com/gpu-core.percentage": "30"}
    assert server.last.headers["Authorization"] == "Bearer token-1"
    assert (job.metadata.uid, job.metadata.labels, job.status.active) == (STORED["metadata"]["uid"], {}, 1)
    assert job.metadata.creation_timestamp == datetime(2026, 11, 3, 12, tzinfo=UTC)
    complete, failed = job.find_condition("Complete"), job.find_condition("Failed")
    assert complete is not None
    assert complete.is_true
    assert failed is None


def test_what_an_old_server_dropped_is_missing_in_the_job_it_stored(client: KubernetesClient, server) -> None:
    server.answer(201, STORED)

    job = client.create_job(MANIFEST)

    assert (job.spec.backoff_limit, job.spec.pod_failure_policy, job.spec.suspend) == (0, None, None)


@pytest.mark.parametrize(
    ("code", "reason", "message", "error"),
    [
        (409, "AlreadyExists", 'jobs.batch "cuda-sample" already exists', AlreadyExistsError),
        (403, "Forbidden", 'jobs.batch is forbidden: User "launcher" cannot create resource "jobs"', ForbiddenError),
        (404, "NotFound", 'namespaces "training" not found', NotFoundError),
        (400, "BadRequest", "strict decoding error: unknown field", ApiRefusedError),
        (422, "Invalid", 'limits[aliyun.com/gpu-mem]: Invalid value: "500m": must be an integer', ApiRefusedError),
        (413, "RequestEntityTooLarge", "limit is 3145728", ApiRefusedError),
    ],
)
def test_what_the_server_refuses_is_permanent_in_its_words(client, server, code, reason, message, error) -> None:
    server.refuse(code, reason, message)

    with pytest.raises(PermanentError) as caught:
        client.create_job(MANIFEST)

    assert type(caught.value) is error
    assert (caught.value.status, caught.value.reason) == (code, reason)
    assert f"creating Job cuda-sample: {message}" in str(caught.value)


@pytest.mark.parametrize(
    ("code", "reason", "error"),
    [
        (500, "InternalError", TransientError),
        (503, "ServiceUnavailable", TransientError),
        (504, "Timeout", TransientError),
        (408, "", TransientError),
        (409, "Conflict", ConflictError),
        (410, "Expired", GoneError),
    ],
)
def test_what_may_succeed_later_is_transient(client: KubernetesClient, server, code, reason, error) -> None:
    server.refuse(code, reason, "try again")

    with pytest.raises(TransientError) as caught:
        client.create_job(MANIFEST)

    assert type(caught.value) is error


@pytest.mark.parametrize(
    ("headers", "details", "seconds"),
    [({"Retry-After": "7"}, {}, 7.0), ({}, {"retryAfterSeconds": 3}, 3.0), ({"Retry-After": "soon"}, {}, None)],
)
def test_a_throttled_request_says_how_long_to_wait(client, server, headers, details, seconds) -> None:
    server.answer(429, {"message": "too many requests", "details": details}, **headers)

    with pytest.raises(TooManyRequestsError) as caught:
        client.get_job("cuda-sample")

    assert caught.value.retry_after_seconds == seconds


@pytest.mark.parametrize(
    "error",
    [
        httpx.ConnectTimeout("timed out"),
        httpx.ReadTimeout("timed out"),
        httpx.ConnectError("refused"),
        httpx.RemoteProtocolError("closed"),
    ],
)
def test_no_answer_is_transient_and_nothing_is_sent_twice(client: KubernetesClient, server, error) -> None:
    server.fail(error)

    with pytest.raises(TransientError, match=r"creating Job cuda-sample: no answer from https://192\.0\.2\.1:6443"):
        client.create_job(MANIFEST)

    assert len(server.requests) == 1


def test_a_creation_that_timed_out_after_it_succeeded_is_found_by_its_name(client: KubernetesClient, server) -> None:
    server.fail(httpx.ReadTimeout("timed out"))
    server.refuse(409, "AlreadyExists", 'jobs.batch "cuda-sample" already exists')
    server.answer(200, STORED)

    with pytest.raises(TransientError):
        client.create_job(MANIFEST)
    with pytest.raises(AlreadyExistsError):
        client.create_job(MANIFEST)
    found = client.get_job("cuda-sample")

    assert found is not None
    assert found.metadata.uid == STORED["metadata"]["uid"]


def test_refused_credentials_are_fetched_once_more(client: KubernetesClient, server) -> None:
    server.refuse(401, "Unauthorized", "Unauthorized")
    server.answer(200, STORED)

    client.get_job("cuda-sample")

    assert [each.headers["Authorization"] for each in server.requests] == ["Bearer token-1", "Bearer token-2"]


def test_credentials_that_are_refused_twice_are_a_permanent_error(client: KubernetesClient, server) -> None:
    server.refuse(401, "Unauthorized", "Unauthorized")
    server.refuse(401, "Unauthorized", "Unauthorized")

    with pytest.raises(UnauthorizedError, match="reading Job x: Unauthorized") as caught:
        client.get_job("x")

    assert server.fetched == 2
    assert "token-" not in str(caught.value)


def test_a_job_that_does_not_exist_is_none_and_deleting_it_no_error(client: KubernetesClient, server) -> None:
    server.refuse(404, "NotFound", 'jobs.batch "x" not found')
    server.refuse(404, "NotFound", 'jobs.batch "x" not found')

    assert client.get_job("x") is None
    client.delete_job("x")


def test_deletes_a_job_with_its_pods(client: KubernetesClient, server) -> None:
    server.answer(200, {"kind": "Status", "status": "Success"})

    client.delete_job("y/../z")

    options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
    assert json.loads(server.last.content) == options
    assert server.last.url.raw_path == b"/apis/batch/v1/namespaces/training/jobs/y%2F..%2Fz"


def test_changes_a_job_by_a_merge_patch(client: KubernetesClient, server) -> None:
    server.answer(200, STORED)

    client.patch_job("cuda-sample", {"spec": {"activeDeadlineSeconds": 1}})

    assert (server.last.method, str(server.last.url)) == ("PATCH", f"{JOBS}/cuda-sample")
    assert server.last.headers["Content-Type"] == "application/merge-patch+json"
    assert json.loads(server.last.content) == {"spec": {"activeDeadlineSeconds": 1}}


@pytest.mark.parametrize("body", ["<html>login</html>", "[]", "{}", '{"major": "one", "minor": ""}'])
def test_what_is_no_kubernetes_api_is_a_transient_error(client: KubernetesClient, server, body) -> None:
    server.answer(200, body)

    with pytest.raises(TransientError, match="reading the server's version"):
        client.version()


def test_an_object_without_its_fields_is_a_transient_error_that_quotes_nothing(client, server) -> None:
    server.answer(200, {"metadata": {"labels": {"secret": ["value-7"]}}})

    with pytest.raises(TransientError, match=r"reading Job x: the answer is no Job: metadata\.labels") as caught:
        client.get_job("x")

    assert "value-7" not in str(caught.value)


def test_a_plain_text_refusal_is_quoted(client: KubernetesClient, server) -> None:
    server.answer(502, "bad gateway\n")

    with pytest.raises(TransientError, match=r"reading Job x: bad gateway \(HTTP 502\)"):
        client.get_job("x")
