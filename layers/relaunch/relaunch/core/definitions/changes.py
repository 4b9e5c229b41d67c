"""What differs between two job definitions, key by key as they are written in a definition file."""

import json
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from relaunch.core.records import dataclass

_PLAIN = (str, int, float, bool)
MAX_PLANS = 10
"""How many definitions of a file are planned: each reads a task definition and its images."""


class ChangeKind(StrEnum):
    """What a file does with a definition, compared with another file."""

    ADDED = "added"
    CHANGED = "changed"
    REMOVED = "removed"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class KeyChange:
    """A key whose value differs, such as `accelerator.gpu.count`; a text is empty where the key is not written."""

    key: str
    before: str
    after: str


def find_changes(before: Mapping[str, object], after: Mapping[str, object]) -> tuple[KeyChange, ...]:
    """Return the keys whose values differ between two definitions as files have them, in the order of `after`."""
    old = dict(_flatten(before, ""))
    new = dict(_flatten(after, ""))
    keys = [*new, *(key for key in old if key not in new)]
    return tuple(KeyChange(key, old.get(key, ""), new.get(key, "")) for key in keys if old.get(key) != new.get(key))


def kind_of_change(before: Mapping[str, object] | None, after: Mapping[str, object] | None) -> ChangeKind:
    """Return what becomes of a definition; None is a file without it."""
    if before is None:
        return ChangeKind.ADDED
    if after is None:
        return ChangeKind.REMOVED
    return ChangeKind.UNCHANGED if before == after else ChangeKind.CHANGED


def _flatten(value: object, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and value:
        for key, each in value.items():
            yield from _flatten(each, f"{path}.{key}" if path else str(key))
    elif isinstance(value, Sequence) and not all(isinstance(each, _PLAIN) for each in value):
        for index, each in enumerate(value):
            yield from _flatten(each, f"{path}[{index}]")
    elif path:
        yield path, value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
