"""The fields of a stored body that this release does not know: they are written back as they were read.

A newer release has written them, and reads them again after this one has saved the item: during its deployment, or
after a rollback and the next deployment.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from relaunch.core.records import dataclass

T = TypeVar("T")

# A record keeps its unknown fields when it moves within the body: an earlier placement is the current one until then.
_ALSO = {"closed_placements": "placement"}
# What tells whether a record that has changed is still the same one.
_IDENTITY = ("number", "job_id", "kind", "since", "at")


class Body(Protocol[T]):
    """Reads and writes the JSON of a body; a TypeAdapter of pydantic is one."""

    def validate_json(self, data: str | bytes, /) -> T:
        """Return what a body has."""
        ...

    def dump_json(self, value: T, /) -> bytes:
        """Return the body of it."""
        ...


@dataclass(frozen=True, slots=True)
class UnknownFields:
    """The unknown fields of one record in a body."""

    name: str
    """The field that has the record, empty for the body itself."""
    record: Mapping[str, Any]
    """The fields of the record that this release knows."""
    fields: Mapping[str, Any]

    def belong_to(self, name: str, record: Mapping[str, Any]) -> bool:
        """Return whether a record is the one that had them: the body itself, or one that is equal or was changed.

        What is written leaves out fields that a record does not use.
        """
        if self.name != name:
            return False
        identity = [each for each in _IDENTITY if each in self.record]
        is_same = bool(set(identity) - {"kind"}) and all(self.record[each] == record.get(each) for each in identity)
        return not name or is_same or all(record.get(each, value) == value for each, value in self.record.items())


def find_unknown(stored: str | bytes, value: T, body: Body[T]) -> tuple[UnknownFields, ...]:
    """Return what a stored body has beside the value that was read from it."""
    known = body.dump_json(value)
    if known == (stored.encode() if isinstance(stored, str) else stored):
        return ()
    return tuple(_differences("", json.loads(stored), json.loads(known)))


def restore(written: str | bytes, unknown: Sequence[UnknownFields]) -> bytes:
    """Return a body with the unknown fields of its records."""
    content = json.loads(written)
    left = list(unknown)
    _restore("", content, left)
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()


def _differences(name: str, stored: Any, known: Any) -> Iterator[UnknownFields]:
    if isinstance(stored, dict) and isinstance(known, dict):
        fields = {each: value for each, value in stored.items() if each not in known}
        if fields:
            yield UnknownFields(_ALSO.get(name, name), known, fields)
        for each in stored.keys() & known.keys():
            yield from _differences(each, stored[each], known[each])
    elif isinstance(stored, list) and isinstance(known, list) and len(stored) == len(known):
        for before, after in zip(stored, known, strict=True):
            yield from _differences(name, before, after)


def _restore(name: str, content: Any, left: list[UnknownFields]) -> None:
    if isinstance(content, list):
        for each in content:
            _restore(name, each, left)
    elif isinstance(content, dict):
        found = next((each for each in left if each.belong_to(_ALSO.get(name, name), content)), None)
        for each, value in list(content.items()):
            _restore(each, value, left)
        if found is not None:
            left.remove(found)
            content.update({each: value for each, value in found.fields.items() if each not in content})
