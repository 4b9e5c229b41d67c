"""Any value of a type of the core, for property tests."""

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=12),
    bool: st.booleans(),
    int: st.integers(-(2**53), 2**53),
    float: st.floats(allow_nan=False, allow_infinity=False),
    type(None): st.none(),
    datetime: st.datetimes(
        min_value=datetime(1971, 1, 1),  # noqa: DTZ001 - hypothesis adds the zone
        max_value=datetime(2200, 1, 1),  # noqa: DTZ001
        timezones=st.just(UTC),
    ),
    timedelta: st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=4000)),
    # What JSON has.
    object: st.recursive(
        st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
        max_leaves=4,
    ),
}


def any_of(kind: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for every value of a type: dataclasses, enums, unions, tuples, mappings, plain types."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        return st.builds(kind, **{field.name: any_of(hints[field.name]) for field in fields(kind)})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(kind)
    return _any_of_generic(get_origin(kind), get_args(kind))


def _any_of_generic(origin: Any, arguments: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    if origin in {Union, types.UnionType}:
        return st.one_of([any_of(argument) for argument in arguments])
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is Mapping:
        return st.dictionaries(any_of(arguments[0]), any_of(arguments[1]), max_size=3)
    if origin is tuple and arguments[-1] is Ellipsis:
        return st.lists(any_of(arguments[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*[any_of(argument) for argument in arguments])
    raise TypeError(f"no strategy for {origin}{list(arguments)}")
