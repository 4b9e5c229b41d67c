"""The key `notices` of a definition: names of receivers, or each with the kinds of notices that it gets."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints

from relaunch.core.definitions.notice_routes import MAX_RECEIVERS, RECEIVER_NAME_PATTERN, NoticeKind, NoticeRoute

ReceiverName = Annotated[str, StringConstraints(pattern=f"^{RECEIVER_NAME_PATTERN}$")]
_Kind = Literal[*NoticeKind]  # type: ignore[valid-type]  # mypy takes no values that are computed
_Kinds = Annotated[list[_Kind], Field(min_length=1)]


def _as_mapping(value: object) -> object:
    """Return a list of names as a mapping without kinds; what is no list of texts is left to the validation."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        return value
    twice = sorted({each for each in value if value.count(each) > 1})
    if twice:
        raise ValueError(f"{twice[0]} is there twice")
    return dict.fromkeys(value)


def _as_list_too(schema: dict[str, Any]) -> None:
    mapping = {key: schema.pop(key) for key in list(schema) if key not in ("description", "default", "title")}
    name = {"type": "string", "pattern": f"^{RECEIVER_NAME_PATTERN}$"}
    names = {"type": "array", "items": name, "minItems": 1, "maxItems": MAX_RECEIVERS, "uniqueItems": True}
    schema["anyOf"] = [names, mapping]


Notices = Annotated[
    dict[ReceiverName, _Kinds | None],
    Field(min_length=1, max_length=MAX_RECEIVERS),
    BeforeValidator(_as_mapping),
    Field(json_schema_extra=_as_list_too),
]


def to_routes(notices: dict[str, list[NoticeKind] | None]) -> tuple[NoticeRoute, ...]:
    """Return the receivers in the order in which they are written."""
    return tuple(NoticeRoute(name, tuple(map(NoticeKind, kinds or ()))) for name, kinds in notices.items())


def write_routes(routes: tuple[NoticeRoute, ...]) -> list[str] | dict[str, list[str] | None]:
    """Return receivers as they are written: a list of names, if none has kinds of its own."""
    if not any(each.kinds for each in routes):
        return [each.receiver for each in routes]
    return {each.receiver: [kind.value for kind in each.kinds] or None for each in routes}
