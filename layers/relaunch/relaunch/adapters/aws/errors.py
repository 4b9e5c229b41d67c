"""Classifies AWS errors as transient or permanent.

Sources: the "Common Errors" and "Error handling" pages of the API references of DynamoDB, SQS, S3, ECS, ECR, EC2,
EventBridge and Service Quotas.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
)
from botocore.exceptions import ConnectionError as BotoConnectionError

from relaunch.ports import NotGrantedError, PermanentError, TransientError

AwsError = (ClientError, BotoCoreError)
_LONGEST_REASON = 200

# Besides those of throttled requests.
_TRANSIENT_CODES = frozenset(
    {
        "ConcurrentModificationException",
        "InternalError",
        "InternalFailure",
        "InternalServerError",
        "OperationAborted",
        "PriorRequestNotComplete",
        "ReplicatedWriteConflictException",
        "RequestTimeout",
        "RequestTimeoutException",
        "ServerException",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "TransactionConflictException",
        "TransactionInProgressException",
        "Unavailable",
        # The function's credentials are renewed until the message is received again.
        "ExpiredToken",
        "ExpiredTokenException",
    }
)
# RegisterTaskDefinition answers so while another call registers a revision of the same family, with the code of
# parameters that it rejects (ClientException). Its page has no message for it; this one is from users' reports.
_CONCURRENT_REGISTRATION = "Too many concurrent attempts to create a new revision"


# Somebody has to grant or mend something first: a permission, a credential, a key of KMS, a bucket, a cluster, or the
# account. Sources: the "Common Errors" pages, and "Error responses" of S3.
_NOT_GRANTED = (
    r"AccessDenied|AllAccessDisabled|AuthFailure|Blocked|ClusterNotFound|IncompleteSignature|InvalidAccessKeyId"
    r"|InvalidClientTokenId|InvalidSignature|KMS\.|KMS[A-Z]|MissingAuthenticationToken|NoSuchBucket|NotAuthorized"
    r"|OptInRequired|SignatureDoesNotMatch|Unauthorized|UnrecognizedClient"
)
# ECS answers so, with the code of parameters that it rejects, while a role does not exist yet or does not trust it, and
# when a subnet or a security group of the stack's settings is gone. The texts are from users' reports.
_NOT_THERE_YET = (
    r"(?i)role is not valid|unable to assume the (service linked )?role|(subnet|security group).{0,80}does not exist"
)


def error_code(error: Exception) -> str:
    """Return the error code of a ClientError, or the class name of any other error."""
    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code", ""))
    return type(error).__name__


def error_message(error: ClientError) -> str:
    """Return the message of AWS, empty if there is none."""
    return str(error.response.get("Error", {}).get("Message", ""))


def is_throttled(error: Exception) -> bool:
    """Return whether the request was throttled."""
    return is_throttling_code(error_code(error))


def is_throttling_code(code: str) -> bool:
    """Return whether an error code says that there were too many requests."""
    return "Throttl" in code or code in {
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "SlowDown",
        "TooManyRequestsException",
    }


def was_repeated(error: ClientError) -> bool:
    """Return whether the SDK had sent the request before: an earlier send may have taken effect without an answer.

    The error is that of the last send alone ("Retries", boto3 documentation: `RetryAttempts`).
    """
    return bool(error.response.get("ResponseMetadata", {}).get("RetryAttempts", 0))


def is_transient(error: Exception) -> bool:
    """Return whether the same request may succeed later."""
    if isinstance(error, ClientError):
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        is_overlapping = _CONCURRENT_REGISTRATION in str(error)
        return is_throttled(error) or is_overlapping or error_code(error) in _TRANSIENT_CODES or status >= 500
    return isinstance(error, HTTPClientError | BotoConnectionError | IncompleteReadError | CredentialRetrievalError)


def is_not_granted(error: Exception) -> bool:
    """Return whether the same request may succeed once somebody has granted or mended something outside it."""
    if not isinstance(error, ClientError):
        return isinstance(error, NoCredentialsError)
    return bool(re.match(_NOT_GRANTED, error_code(error)) or re.search(_NOT_THERE_YET, error_message(error)))


def to_port_error(error: Exception, doing: str) -> TransientError | PermanentError:
    """Return the error of the port for an AWS error; `doing` describes the operation (`saving job x`)."""
    if is_transient(error):
        return TransientError(f"{doing}: {error}")
    kind = NotGrantedError if is_not_granted(error) else PermanentError
    return kind(f"{doing}: {error}")


@contextmanager
def aws_errors(doing: str) -> Iterator[None]:
    """Raise AWS errors as errors of the port; `doing` describes the operation.

    Raises:
        TransientError: throttling, a connection error or a server error; the request may have taken effect.
        NotGrantedError: somebody has to grant or mend something first.
        PermanentError: any other error.
    """
    try:
        yield
    except AwsError as error:
        raise to_port_error(error, doing) from error


@contextmanager
def readable_answer(doing: str) -> Iterator[None]:
    """Raise what an answer of another form than AWS documents leads to as a temporary error.

    It is for readings that the stack can do without until the next time, so that one keeps none of the others away.

    Raises:
        TransientError: a part is missing, or of another type.
    """
    try:
        yield
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError) as error:
        why = f"{type(error).__name__}: {error}"[:_LONGEST_REASON]
        raise TransientError(f"{doing}: AWS answers in a form that this release does not read: {why}") from error
