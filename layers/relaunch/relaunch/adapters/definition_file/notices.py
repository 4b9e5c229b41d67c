"""The key `notices` of a definition: names of receivers, or each with the kinds of notices that it gets."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from relaunch.adapters.definition_file.values import suggest
from relaunch.core.definitions.notice_routes import MAX_RECEIVERS, RECEIVER_NAME_PATTERN, NoticeKind, NoticeRoute

_NAME_SCHEMA = {"type": "string", "pattern": f"^{RECEIVER_NAME_PATTERN}$"}
_KINDS = tuple(kind.value for kind in NoticeKind)


def _check_name(name: str) -> str:
    if re.fullmatch(RECEIVER_NAME_PATTERN, name) is None:
        raise ValueError(f"`{name}` is no name of a receiver: write it like team-ml, with up to 40 of a-z, 0-9 and -")
    return name


def _check_kind(kind: str) -> str:
    if kind not in _KINDS:
        raise ValueError(f"`{kind}` is none of {', '.join(_KINDS)}{suggest(kind, _KINDS)}")
    return kind


def _as_mapping(value: object) -> object:
    """Return a list of names as a mapping to their own kinds, which is an empty list."""
    if isinstance(value, dict):
        return value
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ValueError("must be a list of receivers, [team-ml], or a mapping of them to kinds, {team-ml: [failed]}")
    twice = sorted({each for each in value if value.count(each) > 1})
    if twice:
        raise ValueError(f"{twice[0]} is there twice")
    return {each: [] for each in value}


def _as_list_too(schema: dict[str, Any]) -> None:
    mapping = {key: schema.pop(key) for key in list(schema) if key not in ("description", "default", "title")}
    names = {"type": "array", "items": _NAME_SCHEMA, "minItems": 1, "maxItems": MAX_RECEIVERS, "uniqueItems": True}
    schema["anyOf"] = [names, mapping]


_Name = Annotated[str, AfterValidator(_check_name), WithJsonSchema(_NAME_SCHEMA)]
_Kind = Annotated[str, AfterValidator(_check_kind), WithJsonSchema({"type": "string", "enum": list(_KINDS)})]
Notices = Annotated[
    dict[_Name, list[_Kind]],
    Field(min_length=1, max_length=MAX_RECEIVERS),
    BeforeValidator(_as_mapping),
    Field(json_schema_extra=_as_list_too),
]


def to_routes(notices: dict[str, list[str]]) -> tuple[NoticeRoute, ...]:
    """Return the receivers in the order in which they are written."""
    return tuple(NoticeRoute(name, tuple(map(NoticeKind, kinds))) for name, kinds in notices.items())


def write_routes(routes: tuple[NoticeRoute, ...]) -> list[str] | dict[str, list[str]]:
    """Return receivers as they are written: a list of names, if none has kinds of its own."""
    if not any(each.kinds for each in routes):
        return [each.receiver for each in routes]
    return {each.receiver: [kind.value for kind in each.kinds] for each in routes}
