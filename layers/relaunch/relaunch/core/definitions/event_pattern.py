"""Event patterns of EventBridge as triggers have them: what is wrong with one, its text, and the key that it has.

EventBridge alone compares events with a pattern, so that here only its form is checked, as far as a mistake would
otherwise be found by no event ever. Sources: "Amazon EventBridge event patterns" and "Comparison operators" in the
EventBridge User Guide, "Amazon EventBridge quotas" (2,048 characters).
"""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping

MAX_PATTERN_LENGTH = 2048  # characters, the default quota; PutRule takes 4,096 at most
KEY_LENGTH = 12

_AT_THE_TOP = (
    *("source", "detail-type", "detail", "account", "region", "resources", "time", "id", "version"),
    "$or",
)
_OPERATORS = ("anything-but", "cidr", "equals-ignore-case", "exists", "numeric", "prefix", "suffix", "wildcard")
_DEEPEST = 20

OWN_SOURCES: Mapping[str, str] = {
    "aws.s3": "an `s3` trigger is for uploads, and is held against the prefixes of checkpoints",
    "aws.ecr": "an `image` trigger is for images",
    "aws.ecs": "every job starts tasks, whose events would start the next one",
    "aws.ec2": "every job starts machines, whose events would start the next one",
    "aws.autoscaling": "every job may start machines, whose events would start the next one",
}
"""The sources that no pattern may name, and why: a job causes their events by itself."""


def pattern_key(pattern: str) -> str:
    """Return the key of a pattern: 60 bits of its hash, of a-z and 2-7. The names of rules end with it."""
    digest = hashlib.sha256(pattern.encode("utf-8", "surrogatepass")).digest()
    return base64.b32encode(digest).decode("ascii").lower()[:KEY_LENGTH]


def write_pattern(pattern: Mapping[str, object]) -> str:
    """Return a pattern in JSON, with sorted keys and without spaces: equal patterns are one rule.

    Raises:
        ValueError: it has a number that JSON cannot have.
    """
    return json.dumps(pattern, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


def find_pattern_problem(pattern: Mapping[str, object]) -> str:
    """Return what is wrong with a pattern, and what to do; empty if nothing is."""
    problem = next(_list_problems(pattern), "")
    if problem:
        return problem
    try:
        length = len(write_pattern(pattern))
    except ValueError:
        return "it has a number that JSON cannot have"
    if length > MAX_PATTERN_LENGTH:
        return f"it has {length} characters as JSON, {MAX_PATTERN_LENGTH} are allowed: make it several triggers"
    return ""


def pattern_sources(pattern: str) -> tuple[str, ...]:
    """Return the sources that a pattern in JSON names; none if it is no pattern of a trigger."""
    try:
        sources = json.loads(pattern).get("source", [])
    except (ValueError, RecursionError, AttributeError):
        return ()
    return tuple(each for each in sources if isinstance(each, str)) if isinstance(sources, list) else ()


def _list_problems(pattern: Mapping[str, object]) -> Iterator[str]:
    unknown = [key for key in pattern if key not in _AT_THE_TOP]
    if unknown:
        yield f"no event has `{unknown[0]}` at its top: known are {', '.join(_AT_THE_TOP)}"
    sources = pattern.get("source")
    if not isinstance(sources, list) or not sources or not all(isinstance(each, str) and each for each in sources):
        yield "`source` must be a list of names, for example [com.acme.features]: other events are nobody's"
    for source in sources if isinstance(sources, list) else ():
        if isinstance(source, str) and source in OWN_SOURCES:
            yield f"`{source}` cannot be watched: {OWN_SOURCES[source]}"
    yield from _list_value_problems(pattern, "", 0)


def _list_value_problems(value: object, path: str, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        yield f"`{path[:80]}` is nested more than {_DEEPEST} times"
    elif not isinstance(value, Mapping | list):
        yield f"`{path}` must be a list of values: [{value}]"
    elif not value:
        yield f"`{path}` is empty: no event has that"
    elif isinstance(value, list) and path.rpartition(".")[2] != "$or":
        yield from _list_item_problems(value, path)
    else:
        for name, each in _parts_of(value, path):
            yield from _list_value_problems(each, name, depth + 1)


def _parts_of(value: Mapping[str, object] | list[object], path: str) -> list[tuple[str, object]]:
    """Return the parts of an object, or of a list of alternatives, each with its path."""
    if isinstance(value, list):
        return [(path.removesuffix("$or") + "$or alternative", each) for each in value]
    return [(f"{path}.{key}" if path else str(key), each) for key, each in value.items()]


def _list_item_problems(items: list[object], path: str) -> Iterator[str]:
    for each in items:
        if isinstance(each, list):
            yield f"`{path}` has a list within its list"
        elif isinstance(each, Mapping) and (len(each) != 1 or next(iter(each)) not in _OPERATORS):
            yield f"`{path}` has a comparison that EventBridge does not know: {', '.join(_OPERATORS)} are known"
