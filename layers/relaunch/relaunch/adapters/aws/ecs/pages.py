"""Pages of ECS's listing actions (`nextToken`): the SDK's own paginators would load their model on a cold start."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from relaunch.ports import TransientError


def read_pages(call: Callable[..., Any], **parameters: Any) -> Iterator[Mapping[str, Any]]:
    """Call with each page's token until there is none.

    Raises:
        TransientError: A page answers with its own token, and would be read for ever.
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
