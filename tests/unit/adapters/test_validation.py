from typing import Literal

import pytest
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from relaunch.adapters.validation import describe_errors


class Container(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    kind: Literal["main", "sidecar"] = "main"


CONTAINERS = TypeAdapter(list[Container])


def described(value: object) -> str:
    with pytest.raises(ValidationError) as caught:
        CONTAINERS.validate_python(value)
    return describe_errors(caught.value)


def test_every_error_has_its_location_and_message() -> None:
    assert described([{"kind": "x"}]) == "0.name: Field required; 0.kind: Input should be 'main' or 'sidecar'"


def test_an_error_of_the_whole_input_has_no_location() -> None:
    assert described("secret") == "Input should be a valid list"


def test_the_input_is_not_repeated() -> None:
    assert "secret" not in described([{"name": ["secret"]}, {"name": "main", "kind": "secret"}])


def test_of_many_errors_five_are_shown_and_the_others_counted() -> None:
    text = described([{}] * 7)

    assert text.count("Field required") == 5
    assert text.endswith("; 4.name: Field required; and 2 more")


def test_a_long_key_of_the_input_is_cut() -> None:
    text = described([{"name": "main", "k" * 10_000: 1}])

    assert text == f"0.{'k' * 97}…: Extra inputs are not permitted"


def test_a_long_message_is_cut() -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(Literal[tuple(f"kind-{number}" for number in range(1_000))]).validate_python("x")

    assert len(describe_errors(caught.value)) == 200
