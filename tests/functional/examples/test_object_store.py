"""The store of an OSS URI calls OSS as it wants to be called."""

from typing import Any

import pytest
from botocore.awsrequest import AWSResponse

from train.object_store import S3Store, open_store, s3_client


def test_oss_is_called_at_the_buckets_own_host_without_checksums(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[Any] = []

    def answer(request: Any, **_: Any) -> AWSResponse:
        sent.append(request)
        return AWSResponse(request.url, 200, {}, _Body())

    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "https://s3.oss-cn-beijing.aliyuncs.com")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "cn-beijing")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    s3_client.cache_clear()
    store = open_store("oss://acme/train/job-1/")
    assert isinstance(store, S3Store)
    s3_client(is_oss=True).meta.events.register("before-send.s3", answer)

    store.put("attempt-1/step-0000001/weights", b"123")
    s3_client.cache_clear()

    (request,) = sent
    url = "https://acme.s3.oss-cn-beijing.aliyuncs.com/train/job-1/attempt-1/step-0000001/weights"
    assert (request.method, request.url) == ("PUT", url)
    assert not [name for name in request.headers if "checksum" in name.lower()]


class _Body:
    """An empty body, as urllib3 gives it."""

    def stream(self) -> list[bytes]:
        return [b""]
