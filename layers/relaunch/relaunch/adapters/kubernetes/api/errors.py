"""The errors of the Kubernetes API: an answer with a Status, and which of them a caller can do something about."""

from relaunch.ports import PermanentError, TransientError


class RequestRejectedError(PermanentError):
    """The server refused the request for good: 400, 401, 403, 404, 413, 422 and the like.

    `code` is the HTTP status, `reason` Kubernetes' word for it (`Forbidden`, `Invalid`); the message is the server's.
    """

    def __init__(self, message: str, code: int, reason: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


class AlreadyExistsError(RequestRejectedError):
    """An object with this name exists (409 AlreadyExists)."""


class NotFoundError(RequestRejectedError):
    """There is no such object (404)."""


class TooManyRequestsError(TransientError):
    """The server throttles (429); `retry_after_seconds` is what it says of when to come again, None if nothing."""

    def __init__(self, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds
