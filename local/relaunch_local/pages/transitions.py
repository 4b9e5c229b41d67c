"""Sections of the pages that are generated from transition tables."""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any, Protocol, get_args


class Row(Protocol):
    """A row of a transition table; an event without a change of state has no targets."""

    @property
    def states(self) -> frozenset[Any]: ...
    @property
    def event(self) -> type: ...
    @property
    def guard(self) -> Callable[..., bool]: ...
    @property
    def action(self) -> Callable[..., object]: ...
    @property
    def targets(self) -> frozenset[Any]: ...


def diagram(states: type[StrEnum], table: Sequence[Row], starts: Iterable[str], ends: Iterable[str]) -> Iterator[str]:
    """Yield the state diagram in Mermaid, without events that do not change the state."""
    labels: dict[tuple[str, str], list[str]] = {}
    for row in table:
        for edge in ((state, target) for state in states for target in states):
            is_named = edge[0] in row.states and edge[1] in row.targets and edge[0] is not edge[1]
            if is_named and words(row.event) not in labels.setdefault(edge, []):
                labels[edge].append(words(row.event))
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield from (f"  [*] --> {start}" for start in starts)
    for (state, target), events in labels.items():
        if events:
            yield f"  {state} --> {target}: {', '.join(events)}"
    yield from (f"  {state} --> [*]" for state in ends)
    yield "```\n"


def section(title: str, heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Yield a section that is one table."""
    yield f"## {title}\n"
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def events_section(events: object) -> Iterator[str]:
    """Yield the section of the events, which are the members of a union."""
    yield from section("Events", ("event", "says"), ((words(event), _first_line(event)) for event in get_args(events)))


def transitions_section(states: type[StrEnum], table: Iterable[Row]) -> Iterator[str]:
    """Yield the section of the transitions."""
    heads = ("in", "on", "when", "what happens", "leads to")
    yield from section("Transitions", heads, (_cells(states, row) for row in table))


def completions_section(completions: Iterable[Callable[..., object]]) -> Iterator[str]:
    """Yield the section of what follows each action."""
    yield "## After every action\n"
    yield from (f"- {_first_line(each)}" for each in completions)
    yield ""


def effects_list(effects: Iterable[tuple[type, str]]) -> Iterator[str]:
    """Yield an item for each effect, by its discriminator."""
    yield from (f"  - `{get_args(effect.__annotations__['kind'])[0]}`: {said}" for effect, said in effects)


def words(event: type) -> str:
    """Return the name of an event in words."""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", event.__name__).lower()


def _cells(states: type[StrEnum], row: Row) -> tuple[str, ...]:
    everywhere = row.states == frozenset(states)
    is_always = row.guard.__name__ == "always"
    return (
        "any state" if everywhere else _names(states, row.states),
        words(row.event),
        "always" if is_always else _first_line(row.guard).removeprefix("Return whether ").rstrip("."),
        _first_line(row.action),
        _names(states, row.targets) or "stays",
    )


def _names(states: type[StrEnum], named: frozenset[Any]) -> str:
    return ", ".join(state for state in states if state in named)


def _first_line(documented: Callable[..., object] | type) -> str:
    return (inspect.getdoc(documented) or "").partition("\n")[0]
