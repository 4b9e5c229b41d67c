"""A member of a task definition, and what it means to Relaunch."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

TaskDefinition = Mapping[str, Any]
"""A task definition in the form of RegisterTaskDefinition and DescribeTaskDefinition."""


class Verdict(StrEnum):
    """What Relaunch does with a member."""

    READ = "read"  # into selection or into the launch
    REFUSED = "refused"  # at `apply`, and before a job is accepted, where its value is one that Relaunch cannot run
    WARNED = "warned"  # at `apply`
    HARMLESS = (
        "harmless"  # passed on to ECS: neither placement, end, price nor exit code depends on what Relaunch knows
    )


@dataclass(frozen=True, slots=True)
class Found:
    """A value of a member in a task definition; `holder` is the nearest element of a list that it is in, or all."""

    value: Any
    holder: Mapping[str, Any]
    definition: TaskDefinition


@dataclass(frozen=True, slots=True)
class Member:
    """A member by its path (`containerDefinitions[].cpu`), its verdict, and why, in words for the user.

    `applies` says which values are refused or warned of; those of other verdicts need none.
    """

    path: str
    verdict: Verdict
    why: str
    applies: Callable[[Found], bool] | None = None


def read(why: str, *paths: str) -> tuple[Member, ...]:
    """Return members that are read into selection or into the launch."""
    return tuple(Member(path, Verdict.READ, why) for path in paths)


def harmless(why: str, *paths: str) -> tuple[Member, ...]:
    """Return members that ECS gets as they are."""
    return tuple(Member(path, Verdict.HARMLESS, why) for path in paths)


def refused(why: str, applies: Callable[[Found], bool], *paths: str) -> tuple[Member, ...]:
    """Return members with values that Relaunch cannot run."""
    return tuple(Member(path, Verdict.REFUSED, why, applies) for path in paths)


def warned(why: str, applies: Callable[[Found], bool], *paths: str) -> tuple[Member, ...]:
    """Return members that the user is warned of."""
    return tuple(Member(path, Verdict.WARNED, why, applies) for path in paths)


def is_given(found: Found) -> bool:
    """Return whether the member has a value at all."""
    return bool(found.value)


def find_values(path: str, definition: TaskDefinition) -> Iterator[Found]:
    """Yield the values of a member, of every container and volume that has it."""
    yield from _values(path.split("."), definition, definition, definition)


def _values(names: list[str], at: Any, holder: Mapping[str, Any], definition: TaskDefinition) -> Iterator[Found]:
    if not names:
        yield Found(at, holder, definition)
        return
    name, is_list = names[0].removesuffix("[]"), names[0].endswith("[]")
    value = at.get(name) if isinstance(at, Mapping) else None
    if value is None:
        return
    for each in value if is_list else (value,):
        within = each if is_list and isinstance(each, Mapping) else holder
        yield from _values(names[1:], each, within, definition)
