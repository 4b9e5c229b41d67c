"""The body of a message, and the format of those that the functions send to one another."""

import json
from collections.abc import Mapping

from relaunch.ports import PermanentError, TransientError

FORMAT = 1
"""The newest format of requests by ID that this release sends, and reads with all older ones.

When it is raised: adapters.aws.dynamodb.formats. A message without a number has format 1.
"""

_LAST_FORMAT = 999
"""No release comes near it. A newer format is tried for days, and a number that nobody counted up to need not be."""


def load_message(body: str) -> Mapping[str, object]:
    """Parse the body of a message.

    Raises:
        PermanentError: the body is not a JSON object.
    """
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise PermanentError(f"the message is not JSON: {error}") from error
    if not isinstance(message, dict):
        raise PermanentError(f"the message is not a JSON object but a {type(message).__name__}")
    return message


def check_format(message: Mapping[str, object], newest: int) -> None:
    """Check the format of a message that a function of the stack has sent.

    Raises:
        PermanentError: it has none that a release can have.
        TransientError: it is newer.
    """
    number = message.get("format", 1)
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= _LAST_FORMAT:
        raise PermanentError(f"no release sends messages of format {str(number)[:100]}")
    if number > newest:
        raise TransientError(
            f"the message has format {number}, and this release reads {newest}: a newer release sent it"
        )


def load_id(body: str, name: str) -> str:
    """Return the ID in a message, which is its member `name`.

    Raises:
        PermanentError: the body is not a JSON object, has a format that no release can have, or no such ID.
        TransientError: a newer release sent it.
    """
    message = load_message(body)
    check_format(message, FORMAT)
    value = message.get(name)
    if not isinstance(value, str) or not value:
        raise PermanentError(f"the message names no {name}")
    return value
