"""Reads JSON that others wrote, by pydantic's validator without pydantic's models (stored_type.py says why).

A record has the members that are used; others are ignored. `metadata` of a field has what its type does not say:
`names`, the names of the member in the order in which they are looked for, and what pydantic's validator calls
`pattern`, `min_length`, `max_length` or `tz_constraint` ("pydantic_core.core_schema", pydantic's documentation).
"""

from collections.abc import Callable, Mapping
from dataclasses import Field
from typing import Annotated, Any, Generic, TypeVar, get_args, get_origin

from pydantic_core import SchemaValidator

from relaunch.adapters.stored_type import Describer, with_default
from relaunch.late import made_late

T = TypeVar("T")


class AfterReading:
    """Annotates a type with what its values go through: the `AfterValidator` of pydantic, which reads this one too."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def wrap(self, schema: Any) -> dict[str, Any]:
        """Return the schema of the annotated type."""
        return {"type": "function-after", "function": {"type": "no-info", "function": self._function}, "schema": schema}

    def __get_pydantic_core_schema__(self, kind: Any, handler: Callable[[Any], Any]) -> Any:
        """Return the schema that pydantic's models use."""
        return self.wrap(handler(kind))


class ReceivedType(Generic[T]):
    """Reads a kind of record, with the conventions of who wrote it.

    `name_of` makes the name of a member of the name of a field. With `ignores_null` a member that is null counts as
    missing. With `takes_numbers` a number is read where a text is expected.
    """

    def __init__(
        self,
        kind: type[T],
        *,
        name_of: Callable[[str], str] = str,
        ignores_null: bool = False,
        takes_numbers: bool = False,
    ) -> None:
        describer = _Describer(name_of, ignores_null=ignores_null, takes_numbers=takes_numbers)
        # Most events are of one kind, and a validator of a task takes milliseconds.
        self._validator = made_late(lambda: SchemaValidator(describer.describe(kind)))

    def read(self, value: object) -> T:
        """Return what a value read from JSON has.

        Raises:
            pydantic_core.ValidationError: it has something else.
        """
        read: T = self._validator.validate_python(value)
        return read

    def read_json(self, data: str | bytes) -> T:
        """Return what a JSON text has.

        Raises:
            pydantic_core.ValidationError: it has something else.
        """
        read: T = self._validator.validate_json(data)
        return read


class _Describer(Describer):
    def __init__(self, name_of: Callable[[str], str], *, ignores_null: bool, takes_numbers: bool) -> None:
        self._name_of = name_of
        self._ignores_null = ignores_null
        self._config = {"coerce_numbers_to_str": True} if takes_numbers else {}

    def describe(self, kind: Any) -> Any:
        if get_origin(kind) is Annotated:
            inner, after = get_args(kind)
            return after.wrap(self.describe(inner))
        return super().describe(kind)

    def describe_record(self, kind: Any) -> dict[str, Any]:
        schema = super().describe_record(kind)
        schema["config"] |= self._config
        if not self._ignores_null:
            return schema
        return {
            "type": "function-before",
            "function": {"type": "no-info", "function": _remove_nulls},
            "schema": schema,
        }

    def describe_field(self, field: Field[Any], kind: Any) -> dict[str, Any]:
        rules = dict(field.metadata)
        names = rules.pop("names", (self._name_of(field.name),))
        return {
            "validation_alias": [[each] for each in names],
            "schema": with_default(field, self.describe(kind) | rules),
        }


def _remove_nulls(members: object) -> object:
    if not isinstance(members, Mapping):
        return members
    return {name: value for name, value in members.items() if value is not None}
