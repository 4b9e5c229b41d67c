"""Answers of Alibaba Cloud's APIs, and their errors as errors of ports ("Error codes" of STS and of ACK)."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError

from relaunch.adapters.validation import describe_errors
from relaunch.ports import NotGrantedError, TransientError

_TRANSIENT_CODES = ("Throttling", "ServiceUnavailable", "InternalError", "SystemError")
_MAX_MESSAGE = 500


class RefusedError(NotGrantedError):
    """A service refused; `code` is its error code, empty if it said none."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class Answer(BaseModel):
    """A part of an answer; nothing of an invalid one is quoted, it may be secret."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)


class ErrorAnswer(Answer):
    """An answer other than 2xx; ACK writes the names in lower case, STS with a capital."""

    code: str = Field(default="", validation_alias=AliasChoices("Code", "code"))
    message: str = Field(default="", validation_alias=AliasChoices("Message", "message"))
    request_id: str = Field(default="", validation_alias=AliasChoices("RequestId", "requestId", "request_id"))


@contextmanager
def alibaba_errors(doing: str) -> Iterator[None]:
    """Raise errors of the connection, and answers that are not what was asked for, as errors of the port.

    Raises:
        TransientError: the service was not reached, or answered something else.
    """
    try:
        yield
    except httpx.HTTPError as error:
        raise TransientError(f"{doing}: no answer: {type(error).__name__}: {error}") from error
    except ValidationError as error:
        # Not chained: the answer may be secret.
        raise TransientError(f"{doing}: the answer is malformed: {describe_errors(error)}") from None


def check(answer: httpx.Response, doing: str, hint: str) -> None:
    """Raise the error of an answer other than 2xx; `hint` says what to do about one that stays.

    Raises:
        TransientError: the service is throttling or has an error of its own.
        RefusedError: it refused: what is asked for is the stack's own, the role, its trust and the cluster.
    """
    if answer.is_success:
        return
    try:
        said = ErrorAnswer.model_validate_json(answer.content)
    except ValidationError:
        said = ErrorAnswer()
    message = f"{doing}: {said.message[:_MAX_MESSAGE] or 'no message'} (HTTP {answer.status_code} {said.code}"
    message += f", request {said.request_id})" if said.request_id else ")"
    if answer.status_code == 429 or answer.status_code >= 500 or said.code.startswith(_TRANSIENT_CODES):
        raise TransientError(message)
    raise RefusedError(f"{message}: {hint}", said.code)
