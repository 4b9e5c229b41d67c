"""Which rows of the transition table runs decided by, and where each of them led."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from relaunch.core.lifecycle import TABLE, Row


@dataclass(frozen=True, slots=True, order=True)
class Transition:
    """A decision by one row: from a state, by the row's action, to a state."""

    state: str
    action: str
    target: str

    def __str__(self) -> str:
        return f"{self.state}, {self.action.replace('_', ' ')} → {self.target}"


def transitions_of(row: Row) -> Iterator[Transition]:
    """Every transition that a row declares; one without targets leaves the job where it is."""
    for state in sorted(row.states):
        for target in sorted(row.targets) or [state]:
            yield Transition(str(state), row.action.__name__, str(target))


def rows_unreached(decided: Mapping[Transition, int]) -> list[str]:
    """The rows of the table that decided nothing, in words."""
    return [
        f"{'/'.join(sorted(row.states))}, {row.event.__name__}, {row.guard.__name__}: {row.action.__name__}"
        for row in TABLE
        if not any(decided.get(each) for each in transitions_of(row))
    ]


def transitions_unreached(decided: Mapping[Transition, int]) -> list[Transition]:
    """The declared transitions that no run made."""
    return [each for row in TABLE for each in transitions_of(row) if not decided.get(each)]


def undeclared(decided: Counter[Transition]) -> list[Transition]:
    """Transitions that runs made and no row declares."""
    declared = {each for row in TABLE for each in transitions_of(row)}
    return sorted(set(decided) - declared)
