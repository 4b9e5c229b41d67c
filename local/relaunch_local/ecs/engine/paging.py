"""Pagination of list actions with opaque tokens."""

import base64
import binascii
from collections.abc import Sequence

from relaunch_local.ecs.engine.model import JsonObject
from relaunch_local.ecs.errors import invalid_parameter, refuse


def page_of(name: str, items: Sequence[str], request: JsonObject, *, largest: int = 100) -> JsonObject:
    """Return a page of `items` as the member `name`, with `nextToken` if more follow.

    Raises:
        EcsError: InvalidParameterException: invalid page size or token.
    """
    size = request.get("maxResults", largest)
    refuse(not 1 <= size <= largest, f"maxResults must be between 1 and {largest}.")
    start = _start(name, request.get("nextToken"))
    answer: JsonObject = {name: list(items[start : start + size])}
    if start + size < len(items):
        answer["nextToken"] = base64.urlsafe_b64encode(f"{name}:{start + size}".encode()).decode()
    return answer


def _start(name: str, token: str | None) -> int:
    if token is None:
        return 0
    try:
        list_name, _, start = base64.urlsafe_b64decode(token.encode()).decode().partition(":")
    except (binascii.Error, ValueError) as error:
        raise invalid_parameter("Invalid token.") from error
    refuse(list_name != name or not start.isdecimal(), "Invalid token.")
    return int(start)
