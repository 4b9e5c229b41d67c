"""The functions of two releases on one table: those of the next release write what the present one does not know.

The next release is played by today's code. What it writes gets an unknown field in the body and in records of it, an
unknown attribute, and for some kinds of items the number of a format that today's code does not read; what it reads has
the number that today's code reads, as if it knew the format.
"""

import json
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from relaunch.adapters.aws.dynamodb.formats import FORMATS, kind_of
from relaunch.adapters.aws.dynamodb.table import read_body

UNKNOWN = "of_the_next_release"
# Those that are loaded and saved, with a record of each that has the field too.
_RECORDS = {"JOB": "trigger", "ATTEMPT": "placement", "MACHINE": "request"}

Item = dict[str, Any]


@dataclass(frozen=True, slots=True)
class NextReleaseClient:
    """A client of the table that is the next release's whenever `is_next`; it has raised the formats of `raised`."""

    _client: Any
    is_next: Callable[[], bool]
    raised: Collection[str] = ()
    written: set[tuple[str, str]] = field(default_factory=set)
    """The keys of the items that the next release has written."""
    kept: list[tuple[str, str]] = field(default_factory=list)
    """The keys of those that this release wrote after it with what it does not know, at each write."""
    lost: list[tuple[str, str]] = field(default_factory=list)
    """The keys of those that it wrote without."""

    def __getattr__(self, name: str) -> Any:
        """Return a method of the client."""
        return getattr(self._client, name)

    def get_item(self, **parameters: Any) -> Any:
        """GetItem."""
        return self._as_read(self._client.get_item(**parameters))

    def query(self, **parameters: Any) -> Any:
        """Query."""
        return self._as_read(self._client.query(**parameters))

    def put_item(self, **parameters: Any) -> Any:
        """PutItem."""
        answer = self._client.put_item(**parameters | {"Item": self._as_written(parameters["Item"])})
        self._note([parameters["Item"]])
        return answer

    def update_item(self, **parameters: Any) -> Any:
        """UpdateItem."""
        return self._client.update_item(**self._as_counted(parameters))

    def transact_write_items(self, **parameters: Any) -> Any:
        """TransactWriteItems."""
        actions = [
            {"Put": action["Put"] | {"Item": self._as_written(action["Put"]["Item"])}}
            if "Put" in action
            else {"Update": self._as_counted(action["Update"])}
            for action in parameters["TransactItems"]
        ]
        try:
            answer = self._client.transact_write_items(**parameters | {"TransactItems": actions})
        except ClientError as error:
            reasons: Any = error.response.get("CancellationReasons", ())
            for reason in reasons:
                if "Item" in reason:
                    reason["Item"] = self._known(reason["Item"])
            raise
        self._note([action["Put"]["Item"] for action in actions if "Put" in action])
        return answer

    def _note(self, items: Iterable[Item]) -> None:
        if self.is_next():
            self.written.update((item["pk"]["S"], item["sk"]["S"]) for item in items if kind_of(item) in _RECORDS)

    def _as_read(self, answer: Item) -> Item:
        if "Item" in answer:
            answer["Item"] = self._known(answer["Item"])
        if "Items" in answer:
            answer["Items"] = [self._known(item) for item in answer["Items"]]
        return answer

    def _known(self, item: Item) -> Item:
        if "format" not in item or not self.is_next():
            return item
        return item | {"format": {"N": str(FORMATS[kind_of(item)])}}

    def _as_counted(self, update: Mapping[str, Any]) -> Mapping[str, Any]:
        values = update.get("ExpressionAttributeValues", {})
        if ":format" not in values or not self.is_next():
            return update
        number = self._number(kind_of(update["Key"]))
        return {**update, "ExpressionAttributeValues": {**values, ":format": number}}

    def _as_written(self, item: Item) -> Item:
        kind = kind_of(item)
        if not self.is_next():
            key = (item["pk"]["S"], item["sk"]["S"])
            if key in self.written:
                is_kept = UNKNOWN in item and UNKNOWN in json.loads(read_body(item))
                (self.kept if is_kept else self.lost).append(key)
            return item
        numbered = item | {"format": self._number(kind)}
        if kind not in _RECORDS:
            return numbered
        body = json.loads(read_body(item))
        for record in (body, body[_RECORDS[kind]]):
            record[UNKNOWN] = {"version": item["version"]["N"]}
        content = json.dumps(body).encode()
        whole = {"packed": {"B": zlib.compress(content)}} if "packed" in item else {"body": {"S": content.decode()}}
        return numbered | whole | {UNKNOWN: {"S": "an attribute"}}

    def _number(self, kind: str) -> dict[str, str]:
        return {"N": str(FORMATS[kind] + (kind in self.raised))}
