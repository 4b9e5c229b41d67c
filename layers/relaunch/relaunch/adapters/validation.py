"""Validation errors of pydantic as one line of text, for logs, dead-letter messages and answers; AWS timestamps."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated

from pydantic_core import ValidationError

from relaunch.adapters.received_type import AfterReading
from relaunch.ports import PermanentError

_MAX_ERRORS = 5
_MAX_LOCATION_LENGTH = 100
_MAX_MESSAGE_LENGTH = 200


@contextmanager
def permanent_if_invalid(what: str) -> Iterator[None]:
    """Raise validation errors as errors of the port; `what` says what is invalid (`reading an event from EC2`).

    Raises:
        PermanentError: what is validated in the block is invalid.
    """
    try:
        yield
    except ValidationError as error:
        raise PermanentError(f"{what}: {describe_errors(error)}") from error


def describe_errors(error: ValidationError) -> str:
    """Return the location and message of the first errors, and how many others there are.

    The input is left out, because it may be large or secret. Locations and messages are cut: they can quote keys and
    tags of the input.
    """
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    shown = [_describe(each["loc"], each["msg"]) for each in errors[:_MAX_ERRORS]]
    others = len(errors) - len(shown)
    return "; ".join([*shown, f"and {others} more"] if others else shown)


def _describe(location: tuple[int | str, ...], message: str) -> str:
    path = _cut(".".join(str(part) for part in location), _MAX_LOCATION_LENGTH)
    text = _cut(message, _MAX_MESSAGE_LENGTH)
    return f"{path}: {text}" if path else text


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


# Timestamps outside are errors; near the limits of datetime, conversion to UTC and arithmetic would overflow.
_FIRST_YEAR = 1970
_LAST_YEAR = 2199


def _to_utc(timestamp: datetime) -> datetime:
    if not _FIRST_YEAR <= timestamp.year <= _LAST_YEAR:
        raise ValueError(f"the year {timestamp.year} is not one between {_FIRST_YEAR} and {_LAST_YEAR}")
    return timestamp.astimezone(UTC)


_MAX_WORDS_LENGTH = 4_096
Words = Annotated[str, AfterReading(lambda text: _cut(text, _MAX_WORDS_LENGTH))]
"""What a target reports on a task, for people; a training, or its image, may have written it.

Kubernetes takes as many bytes of a container's termination message, and the ECS agent a quarter of that.
"""

Timestamp = Annotated[datetime, AfterReading(_to_utc)]
"""ISO 8601 text (events), epoch seconds (JSON of DescribeTasks) or a datetime (the SDK), converted to UTC."""
