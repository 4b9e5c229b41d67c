"""The jobs table: DynamoDB calls of the stores. Keys and what they hold: docs/architecture.md."""

import random
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from botocore.exceptions import ClientError

from relaunch.adapters.aws.dynamodb.formats import (
    ATTRIBUTES,
    FORMATS,
    check_format,
    kind_of,
    newer_if_invalid,
    numbered,
)
from relaunch.adapters.aws.errors import AwsError, aws_errors, error_code, to_port_error, was_repeated
from relaunch.ports import TransientError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import QueryInputTypeDef

    from relaunch.adapters.aws.dynamodb.unknown_fields import Body, T

Item: TypeAlias = dict[str, Any]
"""An item of the low-level client: attribute → {type: value}."""

Action: TypeAlias = dict[str, Any]
"""An action of a transaction without its table: `{"Put": {...}}`."""

# One strongly consistent read unit.
READ_UNIT_BYTES = 4096
# The maximum of TransactWriteItems.
MAX_ACTIONS = 100
# Between loading and saving an item, no function loads as many others.
_MAX_KEPT = 2_000
_CONFLICT_ATTEMPTS = 6
_FIRST_PAUSE_SECONDS = 0.02


class CancelledError(Exception):
    """A condition of a transaction failed and nothing was written.

    `failed` maps the positions of actions whose condition failed to their current items, empty if there is none or it
    was not requested.
    """

    def __init__(self, failed: Mapping[int, Item]) -> None:
        super().__init__(f"the conditions of actions {sorted(failed)} did not hold")
        self.failed = failed

    def is_own(self, write_id: str) -> bool:
        """Return whether the first action failed because this write took effect before: its call was retried."""
        return bool(self.failed.get(0, {}).get("write_id") == text(write_id))


def stamp(at: datetime) -> str:
    """Format a time in UTC with a constant width, so that strings sort like times.

    Raises:
        ValueError: the time is naive.
    """
    if at.tzinfo is None:
        raise ValueError(f"{at} has no time zone")
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def text(value: str) -> dict[str, Any]:
    """Return a string as an attribute value."""
    return {"S": value}


def number(value: int) -> dict[str, Any]:
    """Return an integer as an attribute value."""
    return {"N": str(value)}


def epoch(at: datetime) -> dict[str, Any]:
    """Return a time as an attribute value for time to live: seconds since the epoch."""
    return number(int(at.timestamp()))


def key(pk: str, sk: str) -> Item:
    """Return a primary key."""
    return {"pk": text(pk), "sk": text(sk)}


def body_attribute(content: bytes, room: int) -> Item:
    """Return JSON as the attribute `body`, compressed as `packed` if it is longer than `room` bytes."""
    return {"packed": {"B": zlib.compress(content, 9)}} if len(content) > room else {"body": text(content.decode())}


def read_body(item: Mapping[str, Any]) -> str | bytes:
    """Return the JSON of `body` or `packed`."""
    return zlib.decompress(item["packed"]["B"]) if "packed" in item else str(item["body"]["S"])


def read_item(item: Mapping[str, Any], body: "Body[T]") -> "T":
    """Return what the body of an item has.

    Raises:
        TransientError: this release cannot read it.
    """
    with newer_if_invalid(item):
        return body.validate_json(read_body(item))


def count_in(item_key: Item, expression: str, values: Mapping[str, dict[str, Any]], condition: str = "") -> Action:
    """Return the action that updates an item, which is created if necessary, and keeps what else it has.

    `expression` has an ADD alone, or is or ends with a SET; a `condition` with OR is in parentheses. An item of a newer
    format is not changed.
    """
    is_read = "(attribute_not_exists(#format) OR #format <= :format)"
    joint = "," if "SET " in expression else " SET"
    return {
        "Update": {
            "Key": item_key,
            "UpdateExpression": f"{expression}{joint} #format = :format",
            "ConditionExpression": f"{is_read} AND {condition}" if condition else is_read,
            # FORMAT is a reserved word.
            "ExpressionAttributeNames": {"#format": "format"},
            "ExpressionAttributeValues": {**values, ":format": number(FORMATS[kind_of(item_key)])},
            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
        }
    }


def put(item: Item, condition: str = "", values: Mapping[str, dict[str, Any]] | None = None) -> Action:
    """Return an action that puts an item; if its condition fails, the error has the current item."""
    action: dict[str, Any] = {"Item": item}
    if condition:
        action |= {"ConditionExpression": condition, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
    if values:
        action["ExpressionAttributeValues"] = values
    return {"Put": action}


class JobsTable:
    """Calls of the table with the errors of the ports; `pause` sleeps between retries of conflicting transactions.

    Items are put with the number of their format, and one of a newer format is not read. What a body that was read here
    has besides its known fields is put again with its item: whoever saves an item has loaded it, on the condition that
    it has not changed.
    """

    def __init__(self, client: "DynamoDBClient", name: str, pause: Callable[[float], None] = time.sleep) -> None:
        self._client = client
        self._name = name
        self._pause = pause
        self._read: dict[tuple[str, str], tuple[Item, Any, Body[Any] | None]] = {}

    def read(self, item: Item, body: "Body[T]") -> "T":
        """Return what the body of an item has, and keep the item until it is put, for what else it has.

        Raises:
            TransientError: this release cannot read it.
        """
        value = read_item(item, body)
        place = (item["pk"]["S"], item["sk"]["S"])
        # The latest are the last ones.
        self._read.pop(place, None)
        self._read[place] = (item, value, body)
        if len(self._read) > _MAX_KEPT:
            del self._read[next(iter(self._read))]
        return value

    def _as_put(self, item: Item) -> Item:
        # Imported here because whoever only reads needs none of it.
        from relaunch.adapters.aws.dynamodb.unknown_fields import find_unknown, restore  # noqa: PLC0415

        # What is unknown is looked for now: far more items are read than put.
        stored, value, body = self._read.get((item["pk"]["S"], item["sk"]["S"]), ({}, None, None))
        fields = find_unknown(read_body(stored), value, body) if body is not None else ()
        if fields:
            content = restore(read_body(item), fields)
            # Packed as before: for one more write unit nothing is changed that works.
            item = item | body_attribute(content, 0 if "packed" in item else len(content))
        return {name: stored[name] for name in stored.keys() - ATTRIBUTES} | numbered(item)

    def get(self, pk: str, sk: str) -> Item | None:
        """Read one item, strongly consistent."""
        with aws_errors(f"reading {pk} {sk}"):
            item = self._client.get_item(TableName=self._name, Key=key(pk, sk), ConsistentRead=True).get("Item")
        if item is not None:
            check_format(item)
        return item

    def put(self, item: Item, condition: str = "", values: Mapping[str, dict[str, Any]] | None = None) -> bool:
        """Put one item; return False if its condition fails, and it was not this item that made it fail.

        The SDK repeats a call whose answer is lost. If that call took effect, the condition fails because of it
        ("Condition expressions", DynamoDB Developer Guide; PutItem has no ClientRequestToken).
        """
        item = self._as_put(item)
        conditional: dict[str, Any] = {}
        if condition:
            conditional = {"ConditionExpression": condition, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        if values:
            conditional["ExpressionAttributeValues"] = values
        try:
            self._client.put_item(TableName=self._name, Item=item, **conditional)
        except AwsError as error:
            if isinstance(error, ClientError) and error_code(error) == "ConditionalCheckFailedException":
                return was_repeated(error) and error.response.get("Item") == item
            raise to_port_error(error, f"writing {item['pk']['S']} {item['sk']['S']}") from error
        return True

    def update(self, update: Action, **more: str) -> Item | None:
        """Perform the action of `count_in`; return the attributes that `more` asks for, None if its condition fails.

        It also fails for a repetition by the SDK of a call that took effect: what is returned is no basis to go on.

        Raises:
            TransientError: throttled or unreachable, or the item has a newer format.
        """
        request = update["Update"]
        item_key = request["Key"]
        try:
            answer = self._client.update_item(TableName=self._name, **request, **more)  # type: ignore[arg-type]
        except AwsError as error:
            if isinstance(error, ClientError) and error_code(error) == "ConditionalCheckFailedException":
                check_format(item_key | error.response.get("Item", {}))
                return None
            raise to_port_error(error, f"writing {item_key['pk']['S']} {item_key['sk']['S']}") from error
        return answer.get("Attributes", {})

    def count_up(self, pk: str, sk: str) -> int:
        """Increment the counter of an item, which is created if necessary, and return it.

        A repetition by the SDK counts again: numbers may be left out, and none comes twice.
        """
        update = count_in(key(pk, sk), "ADD #count :one", {":one": number(1)})
        update["Update"]["ExpressionAttributeNames"]["#count"] = "count"
        answer = self.update(update, ReturnValues="UPDATED_NEW")
        if answer is None:
            raise TransientError(f"counting {pk} {sk}: refused")
        return int(answer["count"]["N"])

    def query(
        self,
        condition: str,
        values: Mapping[str, dict[str, Any]],
        *,
        index: str | None = None,
        limit: int | None = None,
        newest_first: bool = False,
        start: Item | None = None,
        **more: str,
    ) -> Iterator[Item]:
        """Yield items page by page; reads are strongly consistent, except those of an index.

        `more` are further parameters of the request (`FilterExpression`, `ProjectionExpression`).
        """
        request: QueryInputTypeDef = {
            "TableName": self._name,
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": values,
            "ConsistentRead": index is None,
            "ScanIndexForward": not newest_first,
            **more,  # type: ignore[typeddict-item]
        }
        if index:
            request["IndexName"] = index
        left = limit
        while left is None or left > 0:
            if start:
                request["ExclusiveStartKey"] = start
            if left is not None:
                request["Limit"] = left
            with aws_errors(f"reading {next(iter(values.values()))['S']} {index or ''}".rstrip()):
                page = self._client.query(**request)
            for item in page["Items"]:
                check_format(item)
                yield item
            left = None if left is None else left - len(page["Items"])
            start = page.get("LastEvaluatedKey")
            if not start:
                return

    def transact(self, actions: Sequence[Action], token: str, doing: str) -> None:
        """Write all actions or none. A retry with the same token within ten minutes has no further effect.

        Raises:
            CancelledError: a condition failed.
            TransientError: throttled, unreachable, in conflict with other transactions too often, or the condition of
                an item of a newer format failed.
            PermanentError: the request was rejected.
        """
        request = [
            {kind: {"TableName": self._name, **body, **({"Item": self._as_put(body["Item"])} if kind == "Put" else {})}}
            for action in actions
            for kind, body in action.items()
        ]
        for attempt in range(_CONFLICT_ATTEMPTS):
            try:
                self._client.transact_write_items(TransactItems=request, ClientRequestToken=token)  # type: ignore[arg-type]
            except AwsError as error:
                if not _is_conflict(error, doing):
                    raise to_port_error(error, doing) from error
                # Full jitter, so that conflicting transactions do not conflict again.
                self._pause(random.uniform(0, _FIRST_PAUSE_SECONDS * 2**attempt))  # noqa: S311 - no secret
            else:
                return
        raise TransientError(f"{doing}: in conflict with other transactions {_CONFLICT_ATTEMPTS} times")


def _is_conflict(error: Exception, doing: str) -> bool:
    """Return whether to retry the transaction at once.

    Raises:
        CancelledError: a condition failed.
        TransientError: an item's partition is throttled, or an item has a newer format.
    """
    code = error_code(error)
    if code in {"TransactionInProgressException", "TransactionConflictException"}:
        return True
    if code != "TransactionCanceledException" or not isinstance(error, ClientError):
        return False
    reasons: list[dict[str, Any]] = error.response.get("CancellationReasons", [])  # type: ignore[assignment]
    failed = {
        position: reason.get("Item", {})
        for position, reason in enumerate(reasons)
        if reason.get("Code") == "ConditionalCheckFailed"
    }
    for item in failed.values():
        if item:
            check_format(item)
    if failed:
        raise CancelledError(failed) from error
    codes = {str(reason.get("Code")) for reason in reasons} - {"None"}
    if codes & {"ThrottlingError", "ProvisionedThroughputExceeded"}:
        raise TransientError(f"{doing}: throttled: {error}") from error
    return codes == {"TransactionConflict"}
