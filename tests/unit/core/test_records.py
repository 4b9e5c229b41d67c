"""Records behave as frozen dataclasses of the standard library do, but that only the type checker protects them."""

import copy
import dataclasses
import pickle
from typing import Any

import pytest

from relaunch.core.records import dataclass


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: float = 0.0
    note: str = dataclasses.field(default="", compare=False)
    tags: dict[str, str] = dataclasses.field(default_factory=dict, hash=False, repr=False)


@dataclass(frozen=True, slots=True)
class Place(Point):
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class One:
    value: float


@dataclass(frozen=True)
class Nothing:
    pass


@dataclass(frozen=True, order=True)
class Ordered:
    value: int


@dataclass()
class Counter:
    value: int


def test_equal_are_records_of_one_class_whose_compared_fields_are_equal() -> None:
    assert Point(1, 2.0, "a") == Point(1, 2.0, "b")
    assert Point(1) != Point(2)
    assert Point(1) != Point(1, tags={"a": "b"})
    assert Point(1) != Place(1)
    assert Point(1) != (1, 0.0)
    assert Nothing() == Nothing()
    assert One(value=1) != One(value=2)


def test_a_value_that_is_not_equal_to_itself_is_compared_as_by_the_standard_library() -> None:
    value = float("nan")

    assert One(value=value) == One(value=value)


def test_records_of_one_hash_are_found_in_a_set() -> None:
    assert len({Point(1, note="a"), Point(1, note="b"), Point(1, tags={})}) == 1
    assert {Nothing(), One(value=1)} == {One(value=1), Nothing()}


def test_a_record_shows_its_fields() -> None:
    assert repr(Point(1, note="a")) == "Point(x=1, y=0.0, note='a')"
    assert repr(Place(1)) == "Place(x=1, y=0.0, note='', name='')"
    assert repr(Nothing()) == "Nothing()"


def test_a_record_is_made_as_by_the_standard_library_and_compiled_when_the_first_is() -> None:
    @dataclass(frozen=True, slots=True)
    class Checked(Point):
        unit: str = dataclasses.field(kw_only=True)

        def __post_init__(self) -> None:
            assert self.unit

    late = Checked.__init__

    assert repr(Checked(1, unit="m")).endswith("Checked(x=1, y=0.0, note='', unit='m')")
    assert Checked.__init__ is not late
    assert Checked(1, unit="m").tags is not Checked(1, unit="m").tags
    with pytest.raises(AssertionError):
        Checked(1, unit="")
    with pytest.raises(TypeError, match=r"Checked.__init__\(\) missing 1 required keyword-only argument: 'unit'"):
        Checked(1)  # type: ignore[call-arg]


def test_a_record_keeps_a_method_of_its_own() -> None:
    @dataclass(frozen=True, slots=True)
    class Shown:
        value: int

        def __repr__(self) -> str:
            return "shown"

    assert repr(Shown(1)) == "shown"


@pytest.mark.parametrize("value", [Point(1, tags={"a": "b"}), Place(1, name="here"), Nothing(), One(value=1)])
def test_a_record_can_be_copied_changed_and_matched(value: Any) -> None:
    assert copy.deepcopy(value) == value == pickle.loads(pickle.dumps(value)) == dataclasses.replace(value)  # noqa: S301
    assert type(value).__match_args__ == tuple(each.name for each in dataclasses.fields(value) if not each.kw_only)


def test_what_is_ordered_or_changes_is_a_standard_dataclass() -> None:
    counter = Counter(1)
    counter.value += 1

    assert Ordered(1) < Ordered(2)
    assert counter == Counter(2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Ordered(1).value = 2  # type: ignore[misc]
