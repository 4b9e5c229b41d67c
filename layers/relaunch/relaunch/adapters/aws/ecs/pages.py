"""Pagination of ECS list actions; boto3's paginators would load another model file on a cold start."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from relaunch.ports import TransientError


def read_pages(call: Callable[..., Any], **parameters: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the pages of a list action (`nextToken`).

    Raises:
        TransientError: a page has its own token as the next one, which would be an endless loop.
    """
    token: str | None = None
    while True:
        page: Mapping[str, Any] = call(**parameters, **({"nextToken": token} if token else {}))
        yield page
        previous, token = token, page.get("nextToken")
        if not token:
            return
        if token == previous:
            raise TransientError("ECS answered a page with the token of that page")
