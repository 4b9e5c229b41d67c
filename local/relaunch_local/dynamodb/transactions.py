"""Transactions of several threads are whole, and of two that meet at an item one is cancelled: moto mixes them.

"A transactional conflict can occur during concurrent item-level requests on an item within a transaction": when "a
TransactWriteItems request conflicts with another TransactWriteItems" that is under way, it "is rejected with a
TransactionCanceledException" ("Amazon DynamoDB Transactions: How it works", Amazon DynamoDB Developer Guide).
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any

from botocore.awsrequest import AWSResponse
from botocore.exceptions import ClientError
from moto.core.models import botocore_stubber

_OPERATION = "TransactWriteItems"
_Place = tuple[str, str, str]


def keep_apart(client: Any) -> None:
    """Let the calls of a boto3 client, which moto carries out, be as DynamoDB's whatever threads make them."""
    events = client.meta.events
    # Every handler of this event is called: moto would carry each call out once more.
    events.unregister("before-send", botocore_stubber)
    events.register("before-send.dynamodb", _Calls().carry_out)


class _Calls:
    """The calls that are under way: moto carries out one of them at a time."""

    def __init__(self) -> None:
        self._moto = Lock()
        self._changing = Lock()
        self._under_way: set[_Place] = set()

    def carry_out(self, event_name: str, request: Any, **_: Any) -> AWSResponse | None:
        with self._hold(_places_of(event_name, request)), self._moto:
            answer: AWSResponse | None = botocore_stubber(event_name, request)
            return answer

    @contextmanager
    def _hold(self, places: list[_Place]) -> Iterator[None]:
        with self._changing:
            if met := self._under_way & set(places):
                raise _conflict(["TransactionConflict" if each in met else "None" for each in places])
            self._under_way |= set(places)
        try:
            yield
        finally:
            with self._changing:
                self._under_way -= set(places)


def _places_of(event_name: str, request: Any) -> list[_Place]:
    """Return the tables and keys of the items of a transaction; none of another call."""
    if not event_name.endswith(f".{_OPERATION}"):
        return []
    return [_place(action) for each in json.loads(request.body)["TransactItems"] for action in each.values()]


def _place(action: Mapping[str, Any]) -> _Place:
    item = action.get("Item") or action["Key"]
    return action["TableName"], item["pk"]["S"], item["sk"]["S"]


def _conflict(codes: list[str]) -> ClientError:
    answer: dict[str, Any] = {
        "Error": {
            "Code": "TransactionCanceledException",
            "Message": f"Transaction cancelled, please refer cancellation reasons for specific reasons {codes}",
        },
        "CancellationReasons": [{"Code": each} for each in codes],
    }
    return ClientError(answer, _OPERATION)  # type: ignore[arg-type]
