"""The manifest of a checkpoint, which its training writes last; what it says is not relied on before it is checked.

It is `{"format": 1, "objects": [{"key": …, "size": …}, …], …}`: keys relative to the prefix of the checkpoint, sizes in
bytes. The rest is read apart (core.jobs.reported). examples/relaunch_training.py writes it.
"""

import json
from collections.abc import Iterator, Mapping

from relaunch.core.jobs.reported import Reported, read_reported

MANIFEST_FORMAT = 1
MAX_MANIFEST_BYTES = 4 << 20
"""Twenty thousand objects with their SHA-256 take three megabytes."""
MAX_OBJECTS = 20_000
_MAX_QUOTED = 80
_Sizes = Mapping[str, int]


def find_defect(manifest: bytes, prefix: str, sizes: _Sizes) -> str:
    """Return why a checkpoint is not complete, in a few printable words; empty if it is.

    `sizes` are those of the objects that the store has, by key. Whatever the manifest says, no error is raised, and
    none of its words gets into the answer unescaped or at length.
    """
    if not manifest:
        return "its manifest is empty"
    if len(manifest) > MAX_MANIFEST_BYTES:
        return f"its manifest is larger than {MAX_MANIFEST_BYTES:,} bytes"
    try:
        document = json.loads(manifest)
    except (ValueError, RecursionError) as error:
        return f"its manifest is not JSON: {_quote(str(error))}"
    return next(_defects(document, prefix, sizes), "")


def read_training(manifest: bytes) -> Reported:
    """Return what a manifest that has no defect says about its training."""
    return read_reported(json.loads(manifest))


def _defects(document: object, prefix: str, sizes: _Sizes) -> Iterator[str]:
    if not isinstance(document, dict):
        yield "its manifest is not a JSON object"
        return
    number = document.get("format")
    if isinstance(number, bool) or number != MANIFEST_FORMAT:
        yield f"its manifest has format {_quote(number)}, and this release reads {MANIFEST_FORMAT}"
    objects = document.get("objects")
    if not isinstance(objects, list) or not objects:
        yield "its manifest lists no objects"
        return
    if len(objects) > MAX_OBJECTS:
        yield f"its manifest lists more than {MAX_OBJECTS:,} objects"
    for each in objects:
        yield from _defects_of_object(each, prefix, sizes)


def _defects_of_object(listed: object, prefix: str, sizes: _Sizes) -> Iterator[str]:
    key = listed.get("key") if isinstance(listed, dict) else None
    size = listed.get("size") if isinstance(listed, dict) else None
    if not isinstance(key, str) or not isinstance(size, int) or isinstance(size, bool):
        yield f"its manifest lists an object without a key or a whole number of bytes: {_quote(listed)}"
        return
    found = sizes.get(prefix + key)
    if found is None:
        yield f"its object {_quote(key)} is missing"
    elif found != size:
        yield f"its object {_quote(key)} has {found:,} bytes instead of {_quote(size)}"


def _quote(value: object) -> str:
    """Return a value as its type and size allow: printable, and short."""
    match value:
        case str():
            return ascii(value[:_MAX_QUOTED])
        case int() if abs(value) < 10**_MAX_QUOTED:
            return str(value)
        case float() | None:
            return str(value)
        case _:
            # The text of a list may be longer than the manifest, and that of a number may not be written at all.
            return f"a value of type {type(value).__name__}"
