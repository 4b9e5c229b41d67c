"""Jobs that are started by events about other jobs: which values become inputs, and how long a chain of jobs is.

The end of a job is an event, which may start a job, whose end is an event: a definition whose pattern selects the ends
of its own jobs would start them for ever. Each job that an event about a job starts is one further in its chain than
that one, and its environment says so (`RELAUNCH_CHAIN_DEPTH`).
"""

import json
import re
from collections.abc import Iterable, Mapping

from relaunch.core.jobs.trigger_facts import CHAIN_DEPTH
from relaunch.core.triggers.events import BusEvent

MAX_CHAIN_DEPTH = 5
"""How many jobs may come before one in its chain: a pipeline has fewer steps, and a mistake ends after six jobs."""

_JOB_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,99}")
_CHANGE_ID = re.compile(r"[a-z0-9][a-z0-9-]{0,99}:[0-9]{1,9}")


def job_of(content: Mapping[str, object]) -> str:
    """Return the ID of the job that an event is about, in its `detail` as `job_id`; empty if it is about none."""
    detail = content.get("detail")
    job_id = detail.get("job_id") if isinstance(detail, Mapping) else None
    return job_id if isinstance(job_id, str) and _JOB_ID.fullmatch(job_id) else ""


def identity_of(source: str, event_id: str, content: Mapping[str, object]) -> str:
    """Return what identifies an event: its source and ID; of a change of a job, the ID of the change.

    A stack sends a change at least once, and EventBridge gives each sending another ID ("PutEvents", API reference).
    """
    detail = content.get("detail")
    change = detail.get("id") if isinstance(detail, Mapping) and source.startswith("relaunch.") else None
    is_change = isinstance(change, str) and _CHANGE_ID.fullmatch(change) is not None
    return f"eventbridge:{source}:{change if is_change else event_id}"


def sent_environment(content: Mapping[str, object]) -> Mapping[str, str]:
    """Return what the job that an event is about was given, as the event says: of a job of another stack."""
    value: object = content
    for part in ("detail", "trigger", "variables"):
        value = value.get(part) if isinstance(value, Mapping) else None
    depth = value.get(CHAIN_DEPTH) if isinstance(value, Mapping) else None
    return {CHAIN_DEPTH: depth} if isinstance(depth, str) else {}


def next_depth(environment: Mapping[str, str]) -> int:
    """Return how many jobs come before one that an event about a job starts; that job was given this environment."""
    text = environment.get(CHAIN_DEPTH, "0")
    return int(text) + 1 if re.fullmatch(r"[0-9]{1,3}", text) else MAX_CHAIN_DEPTH + 1


def find_chain_obstacle(event: BusEvent) -> str | None:
    """Return why an event starts nothing: too many jobs were started one by the other before it; None if it may."""
    if event.depth <= MAX_CHAIN_DEPTH:
        return None
    return (
        f"job {event.job_id} is the last of {event.depth} that events about the one before started, and "
        f"{MAX_CHAIN_DEPTH + 1} are allowed in a row: does a pattern select the end of a job that it starts?"
    )


def read_inputs(content: Mapping[str, object], paths: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the inputs that an event has: texts, numbers and truth values, by their paths within it.

    What the event does not have, or has as a list or an object, is not given.
    """
    found = {name: _value_at(content, path) for name, path in paths}
    return {name: value for name, value in found.items() if value is not None}


def _value_at(content: Mapping[str, object], path: str) -> str | None:
    value: object = content
    for part in path.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, bool | int | float) else None
