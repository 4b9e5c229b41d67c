"""Errors as the API server answers them."""

from collections.abc import Mapping
from typing import Any

_CAUSES = {
    "Invalid value": "FieldValueInvalid",
    "Required value": "FieldValueRequired",
    "Duplicate value": "FieldValueDuplicate",
    "Not found": "FieldValueNotFound",
    "Unsupported value": "FieldValueNotSupported",
    "Too long": "FieldValueTooLong",
    "Forbidden": "FieldValueForbidden",
}


class ApiError(Exception):
    """A request is answered with a Status of this code, reason and message."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        retry_after_seconds: int | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after_seconds = retry_after_seconds
        self.details = details or {}

    def to_status(self) -> dict[str, Any]:
        """Return the body of the answer."""
        details = dict(self.details)
        if self.retry_after_seconds is not None:
            details["retryAfterSeconds"] = self.retry_after_seconds
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "details": details}
        return {**status, "message": self.message, "reason": self.reason, "code": self.code}


def invalid(kind: str, name: str, problems: list[str]) -> ApiError:
    """Return the answer to an object that is invalid; `kind` is such as `Job.batch`."""
    text = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    (singular, _, group) = kind.partition(".")
    details = {"name": name, "group": group, "kind": singular, "causes": [_cause(each) for each in problems]}
    return ApiError(422, "Invalid", f'{kind} "{name}" is invalid: {text}', details=details)


def _cause(problem: str) -> dict[str, str]:
    """Return a problem as clients such as kubectl show it: they leave out the message of the whole."""
    field, _, said = problem.partition(": ")
    return {"reason": _CAUSES.get(said.partition(":")[0], "FieldValueInvalid"), "message": said, "field": field}


def malformed(message: str) -> ApiError:
    """Return the answer to a Job that cannot be decoded."""
    return ApiError(400, "BadRequest", f'Job in version "v1" cannot be handled as a Job: {message}')


def not_found(resource: str, name: str) -> ApiError:
    """Return the answer about an object that does not exist."""
    return ApiError(404, "NotFound", f'{resource} "{name}" not found')


def conflict(resource: str, name: str) -> ApiError:
    """Return the answer to a change of an object that was changed by another."""
    said = "the object has been modified; please apply your changes to the latest version and try again"
    return ApiError(409, "Conflict", f'Operation cannot be fulfilled on {resource} "{name}": {said}')
