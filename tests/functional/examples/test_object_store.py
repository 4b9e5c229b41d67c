"""The stores of relaunch_training in S3 and OSS: how these are called, and what comes of their errors."""

import base64
import hashlib
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    CredentialRetrievalError,
    EndpointConnectionError,
    HTTPClientError,
    IncompleteReadError,
    MetadataRetrievalError,
    ReadTimeoutError,
    ResponseStreamingError,
)

from fakes.aws import aws_in_process
from functional.examples.killing_s3 import S3World
from functional.examples.saving import Answered
from relaunch_training import Checkpoints, CheckpointUnusableError, S3Store, SaveFailedError, open_store, s3_client

MD5 = "Content-MD5"


@contextmanager
def slow_s3() -> Iterator[tuple[str, list[str]]]:
    """An S3 that takes what it is sent in small pieces, and answers nothing; and the requests that were begun."""
    tries: list[str] = []

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            tries.append(self.rfile.readline().decode().strip())
            while self.rfile.readline().strip():
                pass
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            with suppress(ConnectionError):
                while self.connection.recv(1024):
                    pass

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", tries
        server.shutdown()


def test_oss_is_called_at_the_buckets_own_host_without_checksums(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []
    signed: list[str] = []

    def answer(request: Any, **_: Any) -> AWSResponse:
        sent.append(request)
        return AWSResponse(request.url, 200, {}, Answered())

    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "https://s3.oss-cn-beijing.aliyuncs.com")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "cn-beijing")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    s3_client.cache_clear()
    store = open_store("oss://acme/train/job-1/")
    assert isinstance(store, S3Store)
    events = s3_client("oss").meta.events
    events.register("before-send.s3", answer)
    # As botocore before 1.36.
    events.register_first("before-sign.s3.DeleteObjects", lambda request, **_: request.headers.add_header(MD5, "-"))
    events.register_last("before-sign.s3", lambda request, **_: signed.extend(request.headers.get_all(MD5, [])))

    store.put("attempt-1/step-0000001/weights", b"123", lambda: None)
    store.delete(["attempt-1/step-0000001/weights"])
    s3_client.cache_clear()

    request, deletion = sent
    url = "https://acme.s3.oss-cn-beijing.aliyuncs.com/train/job-1/attempt-1/step-0000001/weights"
    assert (request.method, request.url) == ("PUT", url)
    assert not [name for name in (*request.headers, *deletion.headers) if "checksum" in name.lower()]
    # "DeleteMultipleObjects", OSS documentation: it has to have this one.
    assert signed == [base64.b64encode(hashlib.md5(deletion.body).digest()).decode()]  # noqa: S324


def test_an_upload_ends_soon_after_the_time_is_over_and_leaves_no_object(
    s3_world: S3World, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    body = b"x" * (20 << 20)

    def check_time() -> None:
        calls.append(1)
        if len(calls) > 3:
            raise SaveFailedError("the time is over")

    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _seconds: None)
    with pytest.raises(SaveFailedError, match="the time is over"):
        open_store("s3://checkpoints/large").put("state", body, check_time)
    assert s3_world.keys() == []

    open_store("s3://checkpoints/large").put("state", body, lambda: None)
    fetched = BytesIO()
    open_store("s3://checkpoints/large").fetch("state", fetched)
    assert fetched.getvalue() == body


def test_an_upload_whose_time_is_over_is_not_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    checks: list[int] = []

    def check_time() -> None:
        checks.append(1)
        if len(checks) > 3:
            raise SaveFailedError("the time is over")

    monkeypatch.setattr("botocore.endpoint.time.sleep", waits.append)
    with aws_in_process(), slow_s3() as (url, tries):
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        s3_client.cache_clear()
        with pytest.raises(SaveFailedError, match="the time is over"):
            open_store("s3://checkpoints/large").put("state", b"x" * (4 << 20), check_time)
    s3_client.cache_clear()

    assert tries == ["PUT /checkpoints/large/state HTTP/1.1"]
    assert waits == []


@pytest.mark.parametrize(
    ("status", "code", "expected", "times"),
    [
        (503, "SlowDown", SaveFailedError, 5),
        (500, "InternalError", SaveFailedError, 5),
        (400, "RequestTimeout", SaveFailedError, 5),
        (400, "ThrottlingException", SaveFailedError, 5),
        (429, "TooManyRequests", SaveFailedError, 5),
        (400, "ExpiredToken", SaveFailedError, 1),
        (403, "RequestTimeTooSkewed", SaveFailedError, 1),
        (403, "AccessDenied", ClientError, 1),
    ],
)
def test_a_store_that_is_down_may_be_up_later_and_one_that_refuses_is_an_error(
    monkeypatch: pytest.MonkeyPatch, status: int, code: str, expected: type[Exception], times: int
) -> None:
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _seconds: None)
    with aws_in_process():
        s3_client.cache_clear()
        tries: list[str] = []

        def answer(request: Any, **_: Any) -> AWSResponse:
            tries.append(request.url)
            return AWSResponse(request.url, status, {}, Answered(f"<Error><Code>{code}</Code></Error>".encode()))

        s3_client("s3:").meta.events.register_first("before-send.s3", answer)
        with pytest.raises(expected, match=code):
            open_store("s3://checkpoints/large").put("state", b"1", lambda: None)
    s3_client.cache_clear()
    assert len(tries) == times


@pytest.mark.parametrize(
    ("key", "expected"), [("there", ClientError), ("missing", CheckpointUnusableError)], ids=["denied", "missing"]
)
def test_what_is_missing_is_told_from_what_is_denied_by_a_listing(key: str, expected: type[Exception]) -> None:
    with aws_in_process():
        s3_client.cache_clear()
        client = s3_client("s3:")
        client.create_bucket(Bucket="checkpoints")
        client.put_object(Bucket="checkpoints", Key="job/there", Body=b"1")

        def deny(request: Any, **_: Any) -> AWSResponse | None:
            return AWSResponse(request.url, 403, {}, Answered()) if request.method == "HEAD" else None

        client.meta.events.register_first("before-send.s3", deny)
        with pytest.raises(expected):
            open_store("s3://checkpoints/job").fetch(key, BytesIO())
    s3_client.cache_clear()


@pytest.mark.parametrize(
    "error",
    [
        EndpointConnectionError(endpoint_url="http://s3"),
        ConnectionClosedError(endpoint_url="http://s3"),
        ReadTimeoutError(endpoint_url="http://s3"),
        ResponseStreamingError(error="reset"),
        HTTPClientError(error="reset"),
        IncompleteReadError(actual_bytes=1, expected_bytes=2),
        CredentialRetrievalError(provider="container-role", error_msg="timed out"),
        MetadataRetrievalError(error_msg="timed out"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_store_or_credentials_out_of_reach_may_be_in_reach_later(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _seconds: None)
    with aws_in_process():
        s3_client.cache_clear()

        def refuse(**_: Any) -> None:
            raise error

        s3_client("s3:").meta.events.register_first("before-send.s3", refuse)
        with pytest.raises(SaveFailedError, match=re.escape(str(error))):
            open_store("s3://checkpoints/large").put("state", b"1", lambda: None)
    s3_client.cache_clear()


def test_a_store_that_closes_each_connection_ends_no_training(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _seconds: None)
    with aws_in_process(), socket.create_server(("127.0.0.1", 0)) as server:
        # The thread ends with the process.
        Thread(target=lambda: [server.accept()[0].close() for _ in range(1_000)], daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.getsockname()[1]}")
        s3_client.cache_clear()
        checkpoints = Checkpoints("s3://checkpoints/job-1/attempt-1/")

        assert checkpoints.save(5, {"state": b"1" * 100}) is None
        assert checkpoints.prune(1) == 0
    s3_client.cache_clear()

    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("relaunch: the checkpoint of step 5 is not saved: s3://checkpoints/job-1/attempt-1/step-00")
    assert second.startswith("relaunch: old checkpoints are not deleted: ")
