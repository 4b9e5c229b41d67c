"""What an error of AWS means for the message at hand: try again, or give up.

Sources: the "Common Errors" and "Error handling" pages of the API references of DynamoDB, SQS, S3, ECS, ECR, EC2 and
Service Quotas.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    IncompleteReadError,
)
from botocore.exceptions import (
    ConnectionError as BotoConnectionError,
)

from relaunch.ports import PermanentError, TransientError

AwsError = (ClientError, BotoCoreError)

_TRANSIENT_CODES = frozenset(
    {
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "OperationAborted",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "ReplicatedWriteConflictException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServerException",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "SlowDown",
        "TransactionConflictException",
        "TransactionInProgressException",
        "Unavailable",
        # The function's own credentials are renewed while the message waits.
        "ExpiredToken",
        "ExpiredTokenException",
    }
)


def error_code(error: Exception) -> str:
    """Return AWS's code of a ClientError, for any other error the name of its class."""
    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code", ""))
    return type(error).__name__


def is_throttled(error: Exception) -> bool:
    """Tell whether AWS wants fewer calls for now."""
    code = error_code(error)
    return "Throttl" in code or code in {
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "SlowDown",
        "TooManyRequestsException",
    }


def is_transient(error: Exception) -> bool:
    """Tell whether the same call may succeed later."""
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return is_throttled(error) or error_code(error) in _TRANSIENT_CODES or status >= 500
    return isinstance(error, HTTPClientError | BotoConnectionError | IncompleteReadError | CredentialRetrievalError)


def to_port_error(error: Exception, doing: str) -> TransientError | PermanentError:
    """Return the port's error for an error of AWS; `doing` says what was tried (`saving job x`)."""
    kind = TransientError if is_transient(error) else PermanentError
    return kind(f"{doing}: {error}")


@contextmanager
def aws_errors(doing: str) -> Iterator[None]:
    """Raise errors of AWS as the port's; `doing` says what is tried.

    Raises:
        TransientError: throttled, unreachable, or a fault of the service; the call may have taken effect.
        PermanentError: anything else: trying again cannot help.
    """
    try:
        yield
    except AwsError as error:
        raise to_port_error(error, doing) from error
