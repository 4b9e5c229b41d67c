"""A client of boto3 whose requests get no answer."""

from typing import Any

import boto3
from botocore.awsrequest import AWSPreparedRequest
from botocore.config import Config


class UnreachableAws:
    """A service that answers nothing: each request fails with `error`; `bodies` are those that were sent."""

    def __init__(self, service: str, error: Exception, *, attempts: int = 1) -> None:
        make: Any = boto3.client
        self.client = make(
            service,
            region_name="us-east-1",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
            endpoint_url="http://127.0.0.1:9",
            config=Config(retries={"mode": "standard", "total_max_attempts": attempts}),
        )
        self.client.meta.events.register("before-send", self._send)
        self.bodies: list[bytes] = []
        self._error = error

    def _send(self, request: AWSPreparedRequest, **_: Any) -> None:
        body: Any = request.body
        self.bodies.append(body.encode() if isinstance(body, str) else body)
        raise self._error
