"""The `detail` of the events of jobs, and its published schema.

`python -m relaunch.adapters.messages.job_change docs/events.schema.json` writes the schema.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relaunch.adapters.stored_type import StoredType
from relaunch.core.lifecycle.change_events import SCHEMA_VERSION, JobStateChange

_DETAIL = StoredType[JobStateChange](JobStateChange)


def write_detail(event: JobStateChange) -> str:
    """Return the JSON of an event, without members that have no value."""
    return _DETAIL.dump_json(event, exclude_none=True).decode()


def read_detail(detail: str | bytes) -> JobStateChange:
    """Return the event of a JSON text.

    Raises:
        pydantic_core.ValidationError: it is none.
    """
    return _DETAIL.validate_json(detail)


def published_schema() -> Mapping[str, Any]:
    """Return the schema of `detail`; receivers ignore members that it does not name."""
    # Imported here because functions only write events.
    from pydantic import ConfigDict, TypeAdapter  # noqa: PLC0415

    # Only within another type a dataclass takes the docstrings of its attributes.
    described = TypeAdapter(list[JobStateChange], config=ConfigDict(use_attribute_docstrings=True))
    schema = _without_none(described.json_schema(mode="serialization"))
    kinds = schema["$defs"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "events.schema.json",
        "version": SCHEMA_VERSION,
        **kinds.pop("JobStateChange"),
        "$defs": kinds,
    }


def _without_none(schema: Any) -> Any:
    """Return a schema in which what has no value is absent instead of null."""
    if isinstance(schema, list):
        return [_without_none(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _without_none(each) for name, each in schema.items() if not (name == "default" and each is None)}
    choices = [each for each in found.pop("anyOf", []) if each != {"type": "null"}]
    if not choices:
        return found
    return found | (choices[0] if len(choices) == 1 else {"anyOf": choices})


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(published_schema(), indent=2) + "\n", encoding="utf-8")
