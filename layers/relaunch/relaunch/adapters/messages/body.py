"""The body of a queue's message, whoever sent it."""

import json
from collections.abc import Mapping

from relaunch.ports import PermanentError


def load_message(body: str) -> Mapping[str, object]:
    """Read the body of a message.

    Raises:
        PermanentError: it is no JSON object.
    """
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise PermanentError(f"the message is not JSON: {error}") from error
    if not isinstance(message, dict):
        raise PermanentError(f"the message is not a JSON object but a {type(message).__name__}")
    return message
