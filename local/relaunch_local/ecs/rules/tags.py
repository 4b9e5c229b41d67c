"""The rules for tags ("Tag", Amazon ECS API Reference); the messages are in ECS's style, the real ones are unknown."""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

MAX_TAGS = 50
_MAX_KEY = 128
_MAX_VALUE = 256
_CATEGORIES = "LZN"
"""Letters, separators and numbers, in any script."""


def check_tags(tags: Sequence[Mapping[str, Any]], refuse: Callable[[bool, str], None]) -> None:
    """Call `refuse` with whether a rule is broken and its message, rule by rule, for the tags of a resource."""
    keys = [str(tag.get("key", "")) for tag in tags]
    values = [str(tag.get("value", "")) for tag in tags]
    refuse(len(tags) > MAX_TAGS, f"The number of tags cannot be more than {MAX_TAGS}.")
    refuse(len(set(keys)) < len(keys), "Tags contain a duplicate key.")
    refuse(any(not 1 <= len(key) <= _MAX_KEY for key in keys), f"A tag key has 1 to {_MAX_KEY} characters.")
    refuse(any(len(value) > _MAX_VALUE for value in values), f"A tag value has at most {_MAX_VALUE} characters.")
    refuse(any(key.lower().startswith("aws:") for key in keys), "Tag keys must not start with aws:.")
    refuse(
        any(not _is_allowed(character) for text in (*keys, *values) for character in text),
        "Tags contain invalid characters: letters, numbers, spaces and _ . : / = + - @ are allowed.",
    )


def _is_allowed(character: str) -> bool:
    return unicodedata.category(character)[0] in _CATEGORIES or character in "_.:/=+-@"
