"""Coverage of the two transition tables: the rows that decided, and the transitions that were made."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.table import TABLE as JOB_TABLE
from relaunch.core.machines.machine import MachineState
from relaunch.core.machines.table import TABLE as MACHINE_TABLE
from relaunch.core.transitions.table import Row

AnyRow = Row[JobState] | Row[MachineState]
TABLE: tuple[AnyRow, ...] = (*JOB_TABLE, *MACHINE_TABLE)
"""The rows of both tables."""


@dataclass(frozen=True, slots=True, order=True)
class Transition:
    """A transition of one row: from a state, by the row's action, to a state."""

    state: str
    action: str
    target: str

    def __str__(self) -> str:
        return f"{self.state}, {self.action.replace('_', ' ')} → {self.target}"


def transitions_of(row: AnyRow) -> Iterator[Transition]:
    """Yield every transition that a row declares; a row without targets keeps the state."""
    for state in sorted(row.states):
        for target in sorted(row.targets) or [state]:
            yield Transition(str(state), row.action.__name__, str(target))


_BUDGET = "the interruption budget, 24 h without running, would have to end at that very moment; runs last some hours"
_LATE_ANSWER = (
    "RunTask's answer comes a minute late at most: its task would have to be seen, end, and be followed by then"
)
_ONE_CLUSTER = "a run has one cluster, which its stack keeps"
WHY_UNREACHED: Mapping[Transition, str] = {
    Transition("WAITING", "request_placement", "FAILED"): _BUDGET,
    Transition("LAUNCHING", "task_missing", "FAILED"): _BUDGET,
    Transition("RUNNING", "task_missing", "FAILED"): _BUDGET,
    Transition("LAUNCHING", "task_missing", "STOPPING"): _ONE_CLUSTER,
    Transition("RUNNING", "task_missing", "STOPPING"): _ONE_CLUSTER,
    **{
        Transition(str(state), "stop_placed_orphan", str(state)): _LATE_ANSWER
        for state in JobState
        if state is not JobState.LAUNCHING
    },
}
"""Why thousands of seeds reach some transitions rarely or never; the core's unit tests cover them."""


def rows_unreached(decided: Mapping[Transition, int]) -> list[str]:
    """Return a description of each row of the table that decided nothing."""
    return [
        f"{'/'.join(sorted(row.states))}, {row.event.__name__}, {row.guard.__name__}: {row.action.__name__}"
        for row in TABLE
        if not any(decided.get(each) for each in transitions_of(row))
    ]


def transitions_unreached(decided: Mapping[Transition, int]) -> list[Transition]:
    """Return the declared transitions that no run made."""
    return [each for row in TABLE for each in transitions_of(row) if not decided.get(each)]
