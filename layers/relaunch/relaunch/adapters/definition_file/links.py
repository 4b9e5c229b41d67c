"""The key `links` of a definition: names, each with the template of a URL."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema

from relaunch.core.definitions.links import MAX_LINKS, NAME_PATTERN, find_problem


def _check_name(name: str) -> str:
    if re.fullmatch(NAME_PATTERN, name) is None:
        raise ValueError(f"`{name}` is no name of a link: up to 40 letters, digits, blanks, &, ., _ and -")
    return name


def _check_link(template: str) -> str:
    if problem := find_problem(template):
        raise ValueError(f"`{template[:100]}` {problem}")
    return template


_Name = Annotated[str, AfterValidator(_check_name), WithJsonSchema({"type": "string", "pattern": f"^{NAME_PATTERN}$"})]
_Link = Annotated[
    str, AfterValidator(_check_link), WithJsonSchema({"type": "string", "pattern": "^https://", "maxLength": 500})
]
Links = Annotated[dict[_Name, _Link], Field(min_length=1, max_length=MAX_LINKS)]
