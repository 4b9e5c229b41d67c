"""Another store that has the API of S3 is called as it wants to be called."""

from typing import Any

import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config

from relaunch.adapters.aws.s3_compatible import StoreKeys, open_s3_compatible


class Body:
    """The body of an answer, as urllib3 gives it."""

    def stream(self) -> list[bytes]:
        return [b"<Error><Code>NoSuchBucket</Code></Error>"]


def test_the_client_signs_for_the_buckets_own_host_and_sends_no_checksums() -> None:
    sent: list[Any] = []

    def answer(request: Any, **_: Any) -> AWSResponse:
        sent.append(request)
        return AWSResponse(request.url, 404, {}, Body())

    keys = StoreKeys("STS.id", "secret-of-role", "token-of-role")
    config = Config(retries={"total_max_attempts": 1})
    client = open_s3_compatible("https://s3.oss-cn-beijing.aliyuncs.com", "cn-beijing", keys, config)
    client.meta.events.register("before-send.s3", answer)
    with pytest.raises(client.exceptions.NoSuchBucket):
        client.list_objects_v2(Bucket="acme", Prefix="resnet/")

    (request,) = sent
    assert request.url.startswith("https://acme.s3.oss-cn-beijing.aliyuncs.com/?list-type=2&prefix=resnet%2F")
    assert b"Credential=STS.id/" in request.headers["Authorization"]
    assert b"/cn-beijing/s3/aws4_request" in request.headers["Authorization"]
    assert request.headers["X-Amz-Security-Token"] == b"token-of-role"
    assert not [name for name in request.headers if "checksum" in name.lower()]
