"""What DynamoDB stores: the sizes of items, and the types of what is read from them."""

from collections.abc import Mapping
from typing import Any


def size_of(item: Mapping[str, Any]) -> int:
    """Return an item's size as DynamoDB counts it: the names and the values of its attributes, in bytes."""
    return sum(len(name) + _value_size(value) for name, value in item.items())


def _value_size(value: Mapping[str, Any]) -> int:
    ((kind, content),) = value.items()
    if kind == "N":
        # "Approximately": one byte per two digits, and one more.
        return (len(content) + 1) // 2 + 1
    return len(content.encode() if kind == "S" else content)


def kinds(value: object) -> Any:
    """Return the types of a value all the way down: equality alone would not see a list where a tuple was."""
    if isinstance(value, Mapping):
        return {key: kinds(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return type(value), [kinds(each) for each in value]
    if hasattr(value, "__dataclass_fields__"):
        return type(value), {name: kinds(getattr(value, name)) for name in value.__dataclass_fields__}
    # Times are aware after as before, of whatever class their zone is.
    return type(value), getattr(value, "tzinfo", None) is not None
