"""Every type that is stored is described to pydantic's validator as pydantic itself describes it."""

import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from relaunch.adapters.aws import dynamodb
from relaunch.adapters.messages import job_change
from relaunch.adapters.stored_type import StoredType, describe_type
from relaunch.late import LazyClient

# What has no influence on what is read and written, or is what the validator has where nothing is said.
WITHOUT_MEANING: Mapping[str, Any] = {
    "collect_init_only": False,
    "computed_fields": [],
    "default_factory_takes_data": False,
    "frozen": False,
    "init": True,
    "kw_only": True,
}


def stored_types() -> Iterator[StoredType[Any]]:
    modules = [import_module(f"{dynamodb.__name__}.{each.name}") for each in pkgutil.iter_modules(dynamodb.__path__)]
    for module in (*modules, job_change):
        for value in vars(module).values():
            if isinstance(value, LazyClient) and hasattr(value, "validate_json"):
                yield StoredType(value.kind)
            elif isinstance(value, StoredType):
                yield value


STORED = {str(each.kind): each for each in stored_types()}


def plain(schema: Any, named: Mapping[str, Any] = {}) -> Any:
    """Return a schema with what it refers to in place."""
    if isinstance(schema, list):
        return [plain(each, named) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("type") == "definitions":
        return plain(schema["schema"], {each["ref"]: each for each in schema["definitions"]})
    if schema.get("type") == "definition-ref":
        return plain(named[schema["schema_ref"]], named)
    return {
        name: plain(each, named)
        for name, each in schema.items()
        if name not in ("ref", "metadata") and WITHOUT_MEANING.get(name, ...) != each
    }


def test_the_stored_types_are_found() -> None:
    assert len(STORED) == 21


@pytest.mark.parametrize("name", STORED)
def test_a_stored_type_is_described_as_by_pydantic(name: str) -> None:
    kind: Any = STORED[name].kind

    assert plain(describe_type(kind)) == plain(TypeAdapter(kind).core_schema)


@pytest.mark.parametrize("name", STORED)
def test_what_is_no_such_value_is_refused_with_the_errors_of_pydantic(name: str) -> None:
    kind: Any = STORED[name].kind
    for text in ("", "[]", "{}", '{"job_id": 1, "state": "?", "number": "1", "at": 0}'):
        ours, theirs = (outcome(each, text) for each in (STORED[name], TypeAdapter(kind)))
        assert ours == theirs


def outcome(reader: Any, text: str) -> str:
    try:
        return str(reader.dump_json(reader.validate_json(text)))
    except ValidationError as error:
        return error.json(include_url=False)


def test_a_type_that_nothing_stored_needed_is_refused() -> None:
    with pytest.raises(TypeError, match="describe it as pydantic does"):
        StoredType(frozenset)
