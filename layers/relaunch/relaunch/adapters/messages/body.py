"""Parses the body of a message."""

import json
from collections.abc import Mapping

from relaunch.ports import PermanentError


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


def load_id(body: str, name: str) -> str:
    """Return the ID in a message, which is its member `name`.

    Raises:
        PermanentError: the body is not a JSON object, or has no such ID.
    """
    value = load_message(body).get(name)
    if not isinstance(value, str) or not value:
        raise PermanentError(f"the message names no {name}")
    return value
