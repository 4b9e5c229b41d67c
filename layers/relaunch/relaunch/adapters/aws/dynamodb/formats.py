"""The formats of items and messages, which a release reads that did not write them.

During a deployment the functions of two releases run side by side on the same items and messages, and after a rollback
the earlier one reads what the later one has left. An item or message of a newer format is a temporary error: the
functions of the release that wrote it are there already, or come back.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from relaunch.ports import TransientError

FORMATS: Mapping[str, int] = {
    "ATTEMPT": 1,
    "BUDGETS": 1,
    "CAPACITY": 1,
    "COSTS": 1,
    "DEFINITION": 1,
    "DELIVERIES": 1,
    "DERIVED": 1,
    "DISPATCH": 1,
    "EC2": 1,
    "EVENTS": 1,
    "GROUP": 1,
    "IMAGE": 1,
    "INSTANCE": 1,
    "JOB": 1,
    "MACHINE": 1,
    "MACHINES": 1,
    "MAINTENANCE": 1,
    "MESSAGE": 1,
    "NOTICE": 1,
    "OFFERINGS": 1,
    "RATES": 1,
    "RECEIVER": 1,
    "SELECTION": 1,
    "SLOTS": 1,
    "STARTS": 1,
    "STATUS": 1,
    "STATUSES": 1,
    "TIMELINE": 1,
    "TRIGGER": 1,
    "TURN": 1,
    "WARNING": 1,
}
"""The newest format of each kind of item, which this release writes and, with all older ones, reads.

It is raised when the release before would read such an item without an error and be wrong. It is not for a new field
with a default, and not for a new member of an enumeration, which that release refuses by itself. Items without a number
have format 1. That of OFFERINGS stays 1: its body has a form, and one of another form is replaced by the next refresh.
"""

ATTRIBUTES = frozenset(
    {
        *("pk", "sk", "format", "version", "write_id", "body", "packed", "expires_at", "due", "wake_at", "slot"),
        *("listing", "accepted_at", "summary", "attempt_number", "machine_id", "unlinked", "at", "arn", "owner"),
        *("avoided_until", "refreshed_at", "region"),
    }
)
"""The attributes of the items that are put; others are a newer release's."""


def kind_of(item: Mapping[str, Any]) -> str:
    """Return the kind of an item: what its partition key begins with; of the items of a job, its sort key."""
    kind = str(item["pk"]["S"]).partition("#")[0]
    return str(item["sk"]["S"]).partition("#")[0] if kind == "JOB" else kind


def numbered(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item with the number of its format."""
    return {**item, "format": {"N": str(FORMATS[kind_of(item)])}}


def check_format(item: Mapping[str, Any]) -> None:
    """Check that this release reads the format of an item.

    Raises:
        TransientError: it is newer.
    """
    if "format" in item and int(item["format"]["N"]) > FORMATS[kind_of(item)]:
        raise TransientError(
            f"{_name(item)} has format {item['format']['N']}, and this release reads {FORMATS[kind_of(item)]}: "
            "a newer release wrote it"
        )


@contextmanager
def newer_if_invalid(item: Mapping[str, Any]) -> Iterator[None]:
    """Take an item that cannot be read for that of another release: an unknown state, effect or reason is one.

    Raises:
        TransientError: what is validated in the block is invalid.
    """
    try:
        yield
    except ValueError as error:
        message = f"{_name(item)} cannot be read, a newer release may have written it: {_describe(error)}"
        raise TransientError(message) from error


def _describe(error: ValueError) -> str:
    # A list of jobs is read without pydantic: an error of it only exists once it is imported.
    if type(error).__module__.partition(".")[0] != "pydantic_core":
        return str(error)
    from relaunch.adapters.validation import describe_errors  # noqa: PLC0415 - as above

    return describe_errors(error)  # type: ignore[arg-type]


def _name(item: Mapping[str, Any]) -> str:
    return f"{item['pk']['S']} {item['sk']['S']}"
