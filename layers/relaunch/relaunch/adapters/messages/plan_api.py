"""The requests and responses of `plan_api`, which plans a definition file that is not applied.

Whoever may call it may be anybody who may open a pull request: texts are bounded, on the way in and on the way out.
`python -m relaunch.adapters.messages.plan_api` writes the published schema, docs/plan_api.schema.json.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from relaunch.adapters.core_schema import MAX_CHARACTERS
from relaunch.adapters.messages.job_api import InvalidRequestError, RefusalAnswer
from relaunch.adapters.messages.plan_description import PlanDescription
from relaunch.adapters.validation import describe_errors
from relaunch.core.definitions.changes import MAX_PLANS, ChangeKind, KeyChange
from relaunch.core.records import dataclass

_MAX_DEFINITIONS = 50
_MAX_CHANGES = 300
_MAX_PROBLEMS = 20
_MAX_NOTICES = 10
_MAX_TEXT = 300
_MAX_KEY = 100


@dataclass(frozen=True, slots=True)
class Compared:
    """What becomes of a definition; `plan` is as `describe_plan` has it, None where there is none."""

    name: str
    kind: ChangeKind
    changes: Sequence[KeyChange]
    plan: Mapping[str, Any] | None


_FileText = Annotated[str, Field(max_length=MAX_CHARACTERS)]


class CompareRequest(BaseModel):
    """Compare a definition file with the one that it is to replace, and plan what differs; nothing is registered."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    action: Literal["compare"]
    definitions: _FileText | None = Field(description="The text of the file; null if it is deleted.")
    base: _FileText | None = Field(None, description="The text of the file that it replaces; null if there is none.")


class ChangedKey(BaseModel, defer_build=True):
    """A key whose value differs; values are cut, and those of a key that is not written are empty."""

    key: str = Field(description="Such as accelerator.gpu.count.")
    before: str
    after: str


class DefinitionComparison(BaseModel, defer_build=True):
    """What becomes of a job definition."""

    definition: str = Field(description="Its name.")
    kind: ChangeKind
    changes: list[ChangedKey] = Field(description="The keys that differ, or all of a new definition.")
    left_out: int = Field(ge=0, description="How many changes are left out, as the answer has its limit.")
    plan: PlanDescription | None = Field(description=f"Of a new or changed one; of the first {MAX_PLANS} only.")


class Comparison(BaseModel, defer_build=True):
    """The file compared with the one that it replaces."""

    problems: list[str] = Field(
        max_length=_MAX_PROBLEMS + 1,
        description="Why the file is invalid, with line and column; then nothing is compared. Empty if it is valid.",
    )
    base_problem: str = Field(
        description="Why the file that it replaces is invalid: all definitions then are as new. Empty if it is valid."
    )
    definitions: list[DefinitionComparison] = Field(max_length=_MAX_DEFINITIONS)
    left_out: int = Field(ge=0, description="How many definitions are left out, as the answer has its limit.")


class CompareAnswer(BaseModel, defer_build=True):
    """The comparison; nothing was stored or launched."""

    comparison: Comparison


def parse_compare_request(event: object) -> CompareRequest:
    """Parse a request.

    Raises:
        InvalidRequestError: the request does not match the schema.
    """
    try:
        return CompareRequest.model_validate(event)
    except ValidationError as error:
        raise InvalidRequestError(describe_errors(error)) from error


def describe_problems(problems: Sequence[object]) -> dict[str, Any]:
    """Return the answer to a request with an invalid file."""
    shown = [_cut(str(each), _MAX_TEXT) for each in problems[:_MAX_PROBLEMS]]
    others = len(problems) - len(shown)
    return _answer(Comparison(problems=shown + ([f"and {others} more"] if others else []), **_NOTHING))


def describe_comparison(compared: Sequence[Compared], base_problem: str) -> dict[str, Any]:
    """Return the answer to a request, JSON-serializable."""
    definitions = list(_describe_definitions(compared[:_MAX_DEFINITIONS]))
    return _answer(
        Comparison(
            problems=[],
            base_problem=_cut(base_problem, _MAX_TEXT),
            definitions=definitions,
            left_out=len(compared) - len(definitions),
        )
    )


_NOTHING: Mapping[str, Any] = {"base_problem": "", "definitions": [], "left_out": 0}


def _answer(comparison: Comparison) -> dict[str, Any]:
    return CompareAnswer(comparison=comparison).model_dump(mode="json")


def _describe_definitions(compared: Iterable[Compared]) -> Iterator[DefinitionComparison]:
    room = _MAX_CHANGES
    for each in compared:
        shown = each.changes[:room]
        room -= len(shown)
        yield DefinitionComparison(
            definition=each.name,
            kind=each.kind,
            changes=[_describe_change(change) for change in shown],
            left_out=len(each.changes) - len(shown),
            plan=None if each.plan is None else _cut_plan(each.plan),
        )


def _describe_change(change: KeyChange) -> ChangedKey:
    return ChangedKey(
        key=_cut(change.key, _MAX_KEY), before=_cut(change.before, _MAX_TEXT), after=_cut(change.after, _MAX_TEXT)
    )


def _cut_plan(plan: Mapping[str, Any]) -> PlanDescription:
    texts = {name: _cut(plan[name], _MAX_TEXT) for name in ("problem", "rejection")}
    notices = [_cut(each, _MAX_TEXT) for each in plan["notices"][:_MAX_NOTICES]]
    return PlanDescription.model_validate({**plan, **texts, "notices": notices})


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def published_schema() -> Mapping[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a request; that of a response is `#/$defs/Answer`."""
    request = CompareRequest.model_json_schema()
    answer = TypeAdapter(CompareAnswer | RefusalAnswer).json_schema(mode="serialization")
    definitions = {**answer.pop("$defs"), "Request": request, "Answer": answer}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Request to Relaunch's plan_api; the response is #/$defs/Answer",
        "$ref": "#/$defs/Request",
        "$defs": definitions,
    }


if __name__ == "__main__":
    json.dump(published_schema(), sys.stdout, indent=2)
    sys.stdout.write("\n")
