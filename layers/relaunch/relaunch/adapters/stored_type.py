"""Reads and writes JSON that the functions wrote themselves, by pydantic's validator without pydantic's models.

pydantic itself takes 60 ms of a cold start, and to describe a job to its validator 30 ms more. What is stored consists
of dataclasses and few other types, which are described here as pydantic describes them: a test compares, so what is
accepted, refused and written is the same ("pydantic_core.core_schema", pydantic's documentation).
"""

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic_core import SchemaSerializer, SchemaValidator

T = TypeVar("T")

_PLAIN: Mapping[Any, dict[str, Any]] = {
    object: {"type": "any"},
    str: {"type": "str"},
    int: {"type": "int"},
    float: {"type": "float"},
    bool: {"type": "bool"},
    datetime: {"type": "datetime", "microseconds_precision": "truncate"},
    timedelta: {"type": "timedelta", "microseconds_precision": "truncate"},
}


class Describer:
    """Describes types to pydantic's validator as pydantic does."""

    def describe(self, kind: Any) -> dict[str, Any]:
        """Return the schema of a type.

        Raises:
            TypeError: no type that is read needed it yet.
        """
        if kind in _PLAIN:
            return _PLAIN[kind]
        if isinstance(kind, type) and issubclass(kind, Enum):
            base = {"sub_type": "str"} if issubclass(kind, str) else {}
            return {"type": "enum", "cls": kind, "members": list(kind), **base}
        if isinstance(kind, type) and is_dataclass(kind):
            return self.describe_record(kind)
        return self._describe_generic(kind, get_origin(kind), get_args(kind))

    def _describe_generic(self, kind: Any, origin: Any, arguments: tuple[Any, ...]) -> dict[str, Any]:
        if origin in (Union, UnionType):
            choices = [self.describe(each) for each in arguments if each is not NoneType]
            schema = choices[0] if len(choices) == 1 else {"type": "union", "choices": choices}
            return {"type": "nullable", "schema": schema} if NoneType in arguments else schema
        if origin is Literal:
            return {"type": "literal", "expected": list(arguments)}
        if origin is list:
            return {"type": "list", "items_schema": self.describe(arguments[0])}
        if origin is tuple and arguments[-1] is ...:
            return {"type": "tuple", "items_schema": [self.describe(arguments[0])], "variadic_item_index": 0}
        if origin is tuple:
            return {"type": "tuple", "items_schema": [self.describe(each) for each in arguments]}
        if isinstance(origin, type) and issubclass(origin, Mapping):
            keys, values = map(self.describe, arguments)
            lax = {} if origin is dict else {"strict": False}
            return {"type": "dict", "keys_schema": keys, "values_schema": values, **lax}
        raise TypeError(f"{kind!r} is no type that is read: describe it as pydantic does")

    def describe_record(self, kind: Any) -> dict[str, Any]:
        """Return the schema of a dataclass."""
        own = fields(kind)
        # A module whose annotations are not evaluated has their texts.
        types = get_type_hints(kind) if any(isinstance(each.type, str) for each in own) else {}
        arguments = [
            {
                "type": "dataclass-field",
                "name": each.name,
                "kw_only": each.kw_only,
                **self.describe_field(each, types.get(each.name, each.type)),
            }
            for each in own
        ]
        return {
            "type": "dataclass",
            "cls": kind,
            "config": {"title": kind.__name__},
            "fields": [each.name for each in own],
            "post_init": hasattr(kind, "__post_init__"),
            "slots": hasattr(kind, "__slots__"),
            "schema": {"type": "dataclass-args", "dataclass_name": kind.__name__, "fields": arguments},
        }

    def describe_field(self, field: Field[Any], kind: Any) -> dict[str, Any]:
        """Return the part of the schema of a dataclass that is a field's own."""
        return {"schema": with_default(field, self.describe(kind))}


def with_default(field: Field[Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with the default of a field, if it has one."""
    if field.default is not MISSING:
        return {"type": "default", "schema": schema, "default": field.default}
    if field.default_factory is not MISSING:
        return {"type": "default", "schema": schema, "default_factory": field.default_factory}
    return schema


describe_type = Describer().describe


class StoredType(Generic[T]):
    """Reads and writes the JSON of a type."""

    def __init__(self, kind: type[T] | UnionType) -> None:
        self.kind = kind
        schema: Any = describe_type(kind)
        self._validator = SchemaValidator(schema)
        self._serializer = SchemaSerializer(schema)

    def validate_json(self, data: str | bytes) -> T:
        """Return what a JSON text has.

        Raises:
            pydantic_core.ValidationError: it has something else.
        """
        value: T = self._validator.validate_json(data)
        return value

    def dump_json(self, value: T, **without: Any) -> bytes:
        """Return the JSON text of a value; `exclude`, `exclude_none` and `exclude_defaults` are those of pydantic."""
        return self._serializer.to_json(value, **without)
