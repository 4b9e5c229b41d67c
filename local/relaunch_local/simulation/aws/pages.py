"""Lists in pages of a few: AWS may answer fewer than it is asked for, with a token for the rest.

A token stands for the rest of the list as it was when its first page was answered: nobody says what it stands for, and
no change meanwhile takes from a page what was in the list all the time.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

_LISTS: Mapping[str, str] = {
    "describe_capacity_reservations": "CapacityReservations",
    "describe_instance_type_offerings": "InstanceTypeOfferings",
    "describe_instance_types": "InstanceTypes",
    "describe_instances": "Reservations",
    "describe_spot_price_history": "SpotPriceHistory",
    "get_products": "PriceList",
    "list_container_instances": "containerInstanceArns",
    "list_objects_v2": "Contents",
    "list_services": "serviceArns",
    "list_task_definition_families": "families",
    "list_task_definitions": "taskDefinitionArns",
    "list_tasks": "taskArns",
}
"""By action: the member of its answer that comes in pages."""
_CAMEL_CASE = ("nextToken", "nextToken")
_TOKENS: Mapping[str, tuple[str, str]] = {
    "list_objects_v2": ("ContinuationToken", "NextContinuationToken"),
    "list_container_instances": _CAMEL_CASE,
    "list_services": _CAMEL_CASE,
    "list_task_definition_families": _CAMEL_CASE,
    "list_task_definitions": _CAMEL_CASE,
    "list_tasks": _CAMEL_CASE,
}
"""By action: the token as it is sent, and as it is answered, if not `NextToken`."""


def tokens_of(action: str) -> tuple[str, str]:
    """Return the names of an action's token: as it is sent, and as it is answered."""
    return _TOKENS.get(action, ("NextToken", "NextToken"))


def in_pages(client: Any, size: int | None) -> Any:
    """Return a client whose lists come in pages of this size at most; None: of as much as there is."""
    return client if size is None else SmallPages(client, size)


def in_small_queries(size: int | None, authorize: Callable[[Any], Any], client: Any) -> Any:
    """Return an authorized client of DynamoDB whose queries come in pages of this size at most, if it is not None."""
    authorized = authorize(client)
    return authorized if size is None else SmallQueries(authorized, size)


@dataclass(frozen=True, slots=True)
class SmallQueries:
    """Delegates each method to a client of DynamoDB; a page of a query has so many items at most.

    DynamoDB ends a page at 1 MB and filters it then: it may have fewer items than the query's limit, or none.
    """

    _client: Any
    _size: int

    def __getattr__(self, name: str) -> Any:
        """Return the method of any other action."""
        return getattr(self._client, name)

    def query(self, **parameters: Any) -> Any:
        """Query."""
        return self._client.query(**parameters | {"Limit": min(parameters.get("Limit", self._size), self._size)})


@dataclass(frozen=True, slots=True)
class SmallPages:
    """Delegates each method to another client, and answers lists in pages of this size."""

    _client: Any
    _size: int
    _rests: dict[str, tuple[Mapping[str, Any], Sequence[Any]]] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return the method of an action."""
        method: Callable[..., Any] = getattr(self._client, name)
        return partial(self._answer, name, method) if name in _LISTS else method

    def _answer(self, name: str, method: Callable[..., Any], **parameters: Any) -> Any:
        listed = _LISTS[name]
        sent, answered = tokens_of(name)
        token = parameters.pop(sent, None)
        if token in self._rests:
            answer, rows = self._rests[token]
        else:
            answer = method(**parameters, **({sent: token} if token else {}))
            # By their own pages clients may ask for more than is in one of theirs.
            rows = answer.get(listed, [])
            while answer.get(answered):
                page = method(**parameters, **{sent: answer.pop(answered)})
                rows = [*rows, *page[listed]]
                answer |= {answered: page[answered]} if page.get(answered) else {}
        page = {**answer, listed: rows[: self._size]}
        if len(rows) <= self._size:
            return page
        following = f"rest-{next(self._numbers)}"
        self._rests[following] = (answer, rows[self._size :])
        return {**page, answered: following}
