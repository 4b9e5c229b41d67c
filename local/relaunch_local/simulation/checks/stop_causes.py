"""Whether the reason that a job records of a stop is its cause, told by the simulated account alone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from relaunch.core.jobs.attempt import StopKind


@dataclass(frozen=True, slots=True)
class StopFacts:
    """What happened to a task.

    `ending` is how its program ended. `is_asked`: the application sent StopTask. `is_lost`: ECS does not describe it,
    for longer than it documents. `is_threatened`: EC2 warned of its instance, recommended to leave it, or ended it.
    `is_told`: the application handled a warning of that instance, and knew that the task is on it, or EC2 answered
    before the stop was recorded that its Spot request is interrupted. `is_cancelled` and `is_late` are those of its
    job. `is_deserted`: an essential sidecar ended by itself while the program ran. `is_refused`: its start was, until
    somebody grants what it needs. `has_peers`: it is a rank of several.
    """

    ending: str
    has_started: bool
    is_unpullable: bool
    is_asked: bool
    is_lost: bool
    is_threatened: bool
    is_told: bool
    is_cancelled: bool
    is_stopped_by_others: bool
    is_late: bool
    is_deserted: bool = False
    is_refused: bool = False
    has_peers: bool = False


def _is_not_started(facts: StopFacts) -> bool:
    return (not facts.has_started or facts.is_asked) and not facts.is_unpullable


def _is_unstartable(facts: StopFacts) -> bool:
    return facts.is_unpullable or _is_not_started(facts)


def _is_taken_away(facts: StopFacts) -> bool:
    return facts.is_lost or facts.is_threatened


# A rank that ends before the others is a fault of the program, as those do not end without it.
_FAILED = frozenset({"failed", "peer left", "left early"})
_FAILED_OTHERWISE = frozenset({"out of memory", "broken"})


def _is_user_error(facts: StopFacts) -> bool:
    """Return whether a program failed, as far as ECS tells.

    Where it tells nothing of the order, a program that answers SIGTERM with an error seems to fail by itself. Where it
    hides the rank that failed first, for longer than it documents, nothing tells why: its peers failed with 1 for it,
    while EC2 says that the machines of all run.
    """
    is_seen_in_peers = facts.has_peers and facts.is_lost and facts.ending in _FAILED_OTHERWISE
    return facts.ending in _FAILED or facts.is_deserted or is_seen_in_peers


_MAY_BE: Mapping[StopKind, Callable[[StopFacts], bool]] = {
    # A program that exits with 0 by a notice of which the application heard nothing looks as if it had finished.
    StopKind.SUCCESS: lambda facts: facts.ending == "finished" or (facts.ending == "left" and not facts.is_told),
    StopKind.INTERRUPTION: _is_taken_away,
    StopKind.SIDECAR: lambda facts: facts.is_deserted,
    StopKind.MOVED: lambda facts: facts.is_asked,
    StopKind.OVER_BUDGET: lambda facts: facts.is_asked,
    StopKind.HOST_LOST: _is_taken_away,
    StopKind.OUT_OF_MEMORY: lambda facts: facts.ending == "out of memory",
    StopKind.IMAGE: lambda facts: facts.is_unpullable,
    StopKind.USER_ERROR: _is_user_error,
    StopKind.CANCELLED: lambda facts: facts.is_asked or facts.is_cancelled or facts.is_stopped_by_others,
    StopKind.TIME_OUT: lambda facts: facts.is_asked or facts.is_late,
    StopKind.NO_CAPACITY: lambda facts: not facts.has_started or facts.is_asked,
    # Nobody knows why a start failed that ECS hides.
    StopKind.NOT_STARTED: lambda facts: _is_not_started(facts) or (facts.is_lost and not facts.has_started),
    StopKind.STARTS_NOWHERE: _is_unstartable,
    StopKind.START_REFUSED: lambda facts: facts.is_refused,
    StopKind.UNKNOWN_START: _is_not_started,
    StopKind.MACHINE_FAULT: lambda facts: facts.ending == "broken",
    StopKind.UNKNOWN: lambda _facts: False,
}


def is_cause(kind: StopKind, facts: StopFacts) -> bool:
    """Return whether a stop of this kind is what happened."""
    return _MAY_BE[kind](facts)
