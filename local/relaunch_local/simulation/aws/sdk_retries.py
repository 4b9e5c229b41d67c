"""Whether and when a client sends a call again by itself, by botocore's own code."""

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any, cast

from botocore.awsrequest import AWSResponse
from botocore.compat import HTTPHeaders
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.retries import quota, standard


class SdkRetries:
    """The retries of one client, in botocore's mode "standard".

    Botocore decides which errors are repeated (time-outs, broken connections, 500, 502, 503, 504, throttling), how
    often, after which pause, and when its retry quota keeps a client from it ("Retries", boto3 documentation). Of the
    services that the application calls none has a model of further errors to be retried, but for DynamoDB's of tables
    that are strongly consistent in several regions.
    """

    def __init__(self, service: str, config: Config, random: Callable[[], float]) -> None:
        """Initialize with what the configuration of the client says; `random` returns a number from 0 to 1."""
        settings: Any = config
        adapter = standard.RetryEventAdapter()
        throttling = standard.ThrottlingErrorDetector(adapter)
        conditions = standard.StandardRetryConditions(settings.retries["total_max_attempts"])
        backoff = standard.ExponentialBackoff(random=random, service_name=service, throttling_detector=throttling)
        self.read_timeout = float(settings.read_timeout)
        """How long the client waits for an answer, in seconds."""
        self._operation: Any = SimpleNamespace(
            name="", error_shapes=(), service_model=SimpleNamespace(service_name=service)
        )
        self._quota: Any = standard.RetryQuotaChecker(quota.RetryQuota(), throttling)
        policy = standard.RetryPolicy(conditions, backoff)
        self._handler: Any = standard.RetryHandler(policy, adapter, cast("Any", self._quota))

    def pause_after(self, error: Exception, sends: int, context: dict[str, Any]) -> float | None:
        """Return how many seconds the client waits before it sends a call again, None if it raises the error.

        `sends` is how often it has sent the call, and `context` is kept for the call.
        """
        is_answered = isinstance(error, ClientError)
        pause: float | None = self._handler.needs_retry(
            response=(_http_response(error.response["ResponseMetadata"]["HTTPStatusCode"]), error.response)
            if isinstance(error, ClientError)
            else None,
            attempts=sends,
            operation=self._operation,
            caught_exception=None if is_answered else error,
            request_dict={"context": context},
        )
        if isinstance(error, ClientError):
            error.response["ResponseMetadata"]["RetryAttempts"] = sends - 1
        return pause

    def note_success(self, context: dict[str, Any]) -> None:
        """Give back what the call took of the retry quota."""
        self._quota.release_retry_quota(context, _http_response(200))


@cache
def _http_response(status: int) -> AWSResponse:
    return AWSResponse("", status, HTTPHeaders(), None)
