"""A transition table: (state, event, guard) → action. Every valid transition is a row; the first that matches decides.

What must hold after every action is not left to each of them: the completions of a table see to it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

from relaunch.core.records import dataclass

State = TypeVar("State", bound=StrEnum)


class HasState(Protocol):
    """A job or a machine."""

    @property
    def state(self) -> StrEnum:
        """Return the state that it is in."""
        ...


# The event has the type of the row's `event` column, which the type system cannot express.
Guard = Callable[[Any, Any], bool]
Action = Callable[[Any, Any, datetime, Any], Any]
Completion = Callable[[Any, Any, Any, datetime], Any]
"""Returns a decision about an item and an event as it has to be after every action."""


@dataclass(frozen=True, slots=True)
class Row(Generic[State]):
    """One row: the action to run in these states, on this event, if the guard returns true.

    `targets` are the possible next states; empty if the state does not change.
    """

    states: frozenset[State]
    event: type[Any]
    guard: Guard
    action: Action
    targets: frozenset[State]


def make_rows(
    states_by_code: Mapping[str, State], *rows: tuple[str, type[Any], Guard, Action, str]
) -> tuple[Row[State], ...]:
    """Return the rows of a table, in which each state is written as one character."""

    def states(codes: str) -> frozenset[State]:
        return frozenset(states_by_code[code] for code in codes)

    return tuple(
        Row(states(before), event, guard, action, states(after)) for before, event, guard, action, after in rows
    )


def always(_item: object, _event: object) -> bool:
    """Return True."""
    return True


def decide_by(
    table: Sequence[Row[State]],
    completions: Sequence[Completion],
    item: HasState,
    event: object,
    now: datetime,
    limits: object,
) -> Any:
    """Return the completed decision of the first row that matches, None if there is none.

    `limits` are those that the actions of the table take. `action` of the decision becomes the name of the action.
    """
    for row in table:
        if item.state in row.states and isinstance(event, row.event) and row.guard(item, event):
            decision = row.action(item, event, now, limits)
            for complete in completions:
                decision = complete(item, event, decision, now)
            return replace(decision, action=row.action.__name__)
    return None
