"""Errors of the Kubernetes API, as errors of ports.

Sources: "API Concepts" and "Status" of the Kubernetes reference; the answers of real servers 1.20 and 1.36.
"""

from relaunch.adapters.kubernetes.api.models import Status
from relaunch.ports import NotGrantedError, PermanentError, TransientError

_MAX_MESSAGE = 2000


class ApiRefusedError(PermanentError):
    """The server refused the request; `status` is that of HTTP, `reason` the server's word (`Invalid`, `Forbidden`)."""

    def __init__(self, message: str, status: int, reason: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class AlreadyExistsError(ApiRefusedError):
    """An object of this name exists (409 AlreadyExists)."""


class NotFoundError(ApiRefusedError, NotGrantedError):
    """The object, or the namespace, does not exist (404)."""


class ForbiddenError(ApiRefusedError, NotGrantedError):
    """A Role is missing, a quota is used up, or an admission plug-in denied the request (403)."""


class UnauthorizedError(ApiRefusedError, NotGrantedError):
    """The credentials were refused, and those that were fetched after that too (401)."""


class ConflictError(TransientError):
    """The object was changed since it was read: read it and change it again (409 Conflict)."""


class GoneError(TransientError):
    """The list cannot be continued: its `continue` token is too old (410)."""


class TooManyRequestsError(TransientError):
    """The server is throttling (429); `retry_after_seconds` is None if it did not say how long."""

    def __init__(self, message: str, retry_after_seconds: float | None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


def to_port_error(doing: str, code: int, answer: Status, retry_after: str | None) -> TransientError | PermanentError:
    """Return the error for an answer other than 2xx; `doing` describes the request (`creating Job x`)."""
    said = answer.message[:_MAX_MESSAGE] or "no message"
    message = f"{doing}: {said} (HTTP {code}{f' {answer.reason}' if answer.reason else ''})"
    match code:
        case 409 if answer.reason != "AlreadyExists":
            return ConflictError(message)
        case 410:
            return GoneError(message)
        case 429:
            return TooManyRequestsError(message, _seconds(retry_after, answer))
        case 408:
            return TransientError(message)
        case _ if code >= 500:
            return TransientError(message)
    refused = {401: UnauthorizedError, 403: ForbiddenError, 404: NotFoundError, 409: AlreadyExistsError}
    return refused.get(code, ApiRefusedError)(message, code, answer.reason)


def _seconds(retry_after: str | None, answer: Status) -> float | None:
    if retry_after and retry_after.isdecimal():
        return float(retry_after)
    return float(answer.details.retry_after_seconds) if answer.details.retry_after_seconds else None
