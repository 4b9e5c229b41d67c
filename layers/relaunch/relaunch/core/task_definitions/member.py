"""A member of a task definition, and what it means to Relaunch."""

from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any

from relaunch.core.records import dataclass

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
class Unchanged:
    """Why a harmless member changes nothing that Relaunch reckons with, in words for the user."""

    placement: str
    end: str
    exit_code: str
    price: str = "the machine is paid, whatever runs on it"


_PLACED_ALIKE = "ECS reserves nothing for it and requires no attribute of an instance"
_ENDS_ALIKE = "the task ends when an essential container does"
_OWN_CODE = "the program's own, whatever it makes of it"

SEEN_BY_PROGRAM = Unchanged(_PLACED_ALIKE, _ENDS_ALIKE, _OWN_CODE)
NEEDED_TO_START = Unchanged(
    _PLACED_ALIKE, "a task that does not start because of it says so", "the program's own, if it starts"
)
NOT_ESSENTIAL = Unchanged(_PLACED_ALIKE, "that of a container which is not essential ends no task", "not the job's")
FOR_SERVICES = Unchanged("ECS chooses what is free on the instance", "ECS replaces tasks of services only", _OWN_CODE)
WITH_REFUSED = Unchanged(*["no task with it is launched"] * 4)


@dataclass(frozen=True, slots=True)
class Member:
    """A member by its path (`containerDefinitions[].cpu`), its verdict, and why, in words for the user.

    `applies` says which values are refused or warned of; those of other verdicts need none. `unchanged` is of those
    that are harmless.
    """

    path: str
    verdict: Verdict
    why: str
    applies: Callable[[Found], bool] | None = None
    unchanged: Unchanged | None = None


def read(why: str, *paths: str) -> tuple[Member, ...]:
    """Return members that are read into selection or into the launch."""
    return tuple(Member(path, Verdict.READ, why) for path in paths)


def harmless(unchanged: Unchanged, why: str, *paths: str) -> tuple[Member, ...]:
    """Return members that ECS gets as they are."""
    return tuple(Member(path, Verdict.HARMLESS, why, unchanged=unchanged) for path in paths)


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
    name = names[0].removesuffix("[]")
    is_list = names[0].endswith("[]")
    value = at.get(name) if isinstance(at, Mapping) else None
    if value is None:
        return
    for each in value if is_list else (value,):
        within = each if is_list and isinstance(each, Mapping) else holder
        yield from _values(names[1:], each, within, definition)
