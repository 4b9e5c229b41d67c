"""A client of boto3 whose service answers what the test says: real requests, real parsing, no network.

Answers have to be of the service's own shape, as with botocore's Stubber; beside answers and errors the connection
itself can fail, before or after the service has done what was asked.
"""

import json
from collections import defaultdict, deque
from datetime import datetime
from io import BytesIO
from typing import Any

import boto3
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.exceptions import ReadTimeoutError
from botocore.validate import ParamValidator

NO_RETRIES = Config(retries={"mode": "standard", "total_max_attempts": 1})


class ScriptedAws:
    """A service of the JSON protocol; `requests` keeps (operation, parameters) of everything that was sent."""

    def __init__(self, service: str, config: Config = NO_RETRIES) -> None:
        make: Any = boto3.client
        self.client = make(
            service,
            region_name="us-east-1",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
            endpoint_url="http://127.0.0.1:9",
            config=config,
        )
        self.client.meta.events.register("before-send", self._send)
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self._answers: dict[str, deque[AWSResponse | Exception]] = defaultdict(deque)

    def answer(self, operation: str, **members: Any) -> None:
        """Answer the next unanswered call of an operation (`RunTask`) with these members."""
        shape = self.client.meta.service_model.operation_model(operation).output_shape
        report = ParamValidator().validate(members, shape)
        assert not report.has_errors(), report.generate_report()
        self._answers[operation].append(_response(200, members))

    def refuse(self, operation: str, code: str, message: str = "", status: int = 400, **members: Any) -> None:
        """Answer with an error."""
        self._answers[operation].append(_response(status, {"__type": code, "message": message, **members}))

    def fail(self, operation: str, error: Exception) -> None:
        """Let the connection fail."""
        self._answers[operation].append(error)

    def sent(self, operation: str) -> list[dict[str, Any]]:
        """Return the parameters of the calls of one operation, oldest first."""
        return [parameters for name, parameters in self.requests if name == operation]

    def _send(self, request: Any, **_: Any) -> AWSResponse:
        operation = str(request.headers["X-Amz-Target"], "ascii").rpartition(".")[2]
        self.requests.append((operation, json.loads(request.body)))
        answers = self._answers[operation]
        assert answers, f"the test has no answer for {operation}"
        answer = answers.popleft()
        if isinstance(answer, Exception):
            raise answer
        return answer


class _Body(BytesIO):
    def stream(self, **_: Any) -> Any:
        yield self.read()


def _response(status: int, members: dict[str, Any]) -> AWSResponse:
    body = json.dumps(members, default=datetime.timestamp).encode()
    headers: Any = {"x-amzn-RequestId": "test", "content-type": "application/x-amz-json-1.1"}
    return AWSResponse("http://127.0.0.1:9", status, headers, _Body(body))


def throttle(aws: ScriptedAws, operation: str) -> None:
    """Let the next call be throttled."""
    aws.refuse(operation, "ThrottlingException", "Rate exceeded")


def time_out(aws: ScriptedAws, operation: str) -> None:
    """Let the next call have no answer."""
    aws.fail(operation, ReadTimeoutError(endpoint_url="http://127.0.0.1:9"))


def fault(aws: ScriptedAws, operation: str) -> None:
    """Let the next call be answered with an error of the service."""
    aws.refuse(operation, "ServerException", "Service Unavailable", 500)
