"""What others wrote is read as a model of pydantic would read it."""

from dataclasses import field
from datetime import UTC, datetime
from typing import Annotated, Literal

import pytest
from pydantic import AfterValidator, AliasChoices, AwareDatetime, BaseModel, Field, ValidationError

from relaunch.adapters.received_type import AfterReading, ReceivedType
from relaunch.adapters.validation import describe_errors
from relaunch.core.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    name: str
    sizes: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole:
    key: str = field(metadata={"names": ("the-key", "theKey"), "pattern": "^[a-z]+$", "max_length": 3})
    kind: Literal["a", "b"] = "a"
    at: datetime | None = None
    since: datetime = field(
        default=datetime(2026, 1, 1, tzinfo=UTC), metadata={"names": ("since",), "tz_constraint": "aware"}
    )
    words: Annotated[str, AfterReading(str.upper)] | None = None
    parts: tuple[Part, ...] = ()
    other: dict[str, object] | None = None


class PartModel(BaseModel):
    name: str
    sizes: list[int] = Field(default_factory=list)


class WholeModel(BaseModel):
    key: str = Field(validation_alias=AliasChoices("the-key", "theKey"), pattern="^[a-z]+$", max_length=3)
    kind: Literal["a", "b"] = "a"
    at: datetime | None = None
    since: AwareDatetime = datetime(2026, 1, 1, tzinfo=UTC)
    words: Annotated[str, AfterValidator(str.upper)] | None = None
    parts: tuple[PartModel, ...] = ()
    other: dict[str, object] | None = None


WHOLE = ReceivedType(Whole)


@pytest.mark.parametrize(
    "given",
    [
        {"the-key": "ab"},
        {"theKey": "ab", "the-key": "cd", "kind": "b", "unknown": 1},
        {"theKey": "ab", "at": 1_700_000_000, "since": "2026-11-29T09:00:00+02:00", "words": "why"},
        {"theKey": "ab", "parts": [{"name": "x", "sizes": ["1", 2.0]}, {"name": "y"}], "other": {"a": [None]}},
    ],
)
def test_a_record_has_what_a_model_of_pydantic_would_have(given: object) -> None:
    read = WHOLE.read(given)
    model = WholeModel.model_validate(given)

    values = {name: getattr(read, name) for name in WholeModel.model_fields}
    assert values | {"parts": [(each.name, each.sizes) for each in read.parts]} == {
        **{name: getattr(model, name) for name in values},
        "parts": [(each.name, each.sizes) for each in model.parts],
    }


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"key": "ab"},
        {"theKey": "Ab", "kind": "c", "at": "yesterday", "since": "2026-11-29T09:00:00"},
        {"theKey": "abcd", "words": 1, "other": []},
        {"theKey": "ab", "parts": [{"sizes": ["x"]}]},
    ],
)
def test_it_is_refused_with_the_errors_of_pydantic(given: object) -> None:
    with pytest.raises(ValidationError) as theirs:
        WholeModel.model_validate(given)
    with pytest.raises(ValidationError) as ours:
        WHOLE.read(given)

    assert describe_errors(ours.value) == describe_errors(theirs.value)


def test_what_is_no_object_is_refused() -> None:
    with pytest.raises(ValidationError, match="Input should be a dictionary"):
        WHOLE.read("text")
    with pytest.raises(ValidationError, match="Invalid JSON"):
        WHOLE.read_json("{")


def test_conventions_of_who_wrote_it_are_those_of_the_parts_too() -> None:
    odd = ReceivedType(Whole, name_of=str.title, ignores_null=True, takes_numbers=True)

    read = odd.read_json('{"theKey": "a", "Kind": null, "Parts": [{"Name": 7, "Sizes": null}]}')

    assert read == Whole(key="a", parts=(Part(name="7"),))
    with pytest.raises(ValidationError, match="Input should be a dictionary"):
        odd.read([])


def test_a_model_of_pydantic_reads_the_annotation_too() -> None:
    class Model(BaseModel):
        words: Annotated[str, AfterReading(str.upper)]

    assert Model(words="why").words == "WHY"
