"""A jobs table of a few items, for the stores of any release: it imports nothing of them."""

from collections.abc import Mapping, Sequence
from typing import Any

Item = Mapping[str, Any]


class ServedTable:
    """The client of a table that has these items; `written` are those that were put, which it does not have."""

    def __init__(self, items: Sequence[Item]) -> None:
        """Begin with what is stored."""
        self._items = sorted(items, key=lambda item: str(item["sk"]["S"]))
        self.written: list[dict[str, Any]] = []

    def get_item(self, **parameters: Any) -> Any:
        """Return the item of a key."""
        found = [item for item in self._items if all(item[name] == value for name, value in parameters["Key"].items())]
        return {"Item": found[0]} if found else {}

    def query(self, **parameters: Any) -> Any:
        """Return items of a partition by the conditions that the stores have; filters let everything pass."""
        values = {name: str(value["S"]) for name, value in parameters["ExpressionAttributeValues"].items()}
        condition = parameters["KeyConditionExpression"]
        found = [item for item in self._items if item["pk"]["S"] == values[":pk"]]
        if "BETWEEN" in condition:
            found = [item for item in found if values[":first"] <= item["sk"]["S"] <= values[":last"]]
        elif ">=" in condition:
            found = [item for item in found if item["sk"]["S"] >= values[":first"]]
        elif condition != "pk = :pk":
            raise NotImplementedError(condition)
        return {"Items": (found if parameters["ScanIndexForward"] else found[::-1])[: parameters.get("Limit")]}

    def put_item(self, **parameters: Any) -> Any:
        """Take an item."""
        self.written.append(parameters["Item"])
        return {}

    def transact_write_items(self, **parameters: Any) -> Any:
        """Take the items of a transaction."""
        self.written += [each["Put"]["Item"] for each in parameters["TransactItems"] if "Put" in each]
        return {}
