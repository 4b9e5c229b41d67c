"""Register job definitions."""

from collections.abc import Iterable
from enum import StrEnum

from relaunch.core.definitions.definition import JobDefinition
from relaunch.ports import Dependencies


class Change(StrEnum):
    """The change of a definition."""

    CREATED = "created"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"
    REMOVED = "removed"


def compare_definitions(
    definitions: Iterable[JobDefinition], registered: Iterable[JobDefinition], *, prune: bool
) -> list[tuple[str, Change]]:
    """Return the changes of registering `definitions`; with `prune` all others are removed."""
    before = {definition.name: definition for definition in registered}
    after = {definition.name: definition for definition in definitions}
    changes = [(name, _compare(definition, before.get(name))) for name, definition in after.items()]
    removed = [(name, Change.REMOVED) for name in before if name not in after] if prune else []
    return changes + removed


def _compare(definition: JobDefinition, before: JobDefinition | None) -> Change:
    if before is None:
        return Change.CREATED
    return Change.UNCHANGED if definition == before else Change.REPLACED


def register_definitions(
    definitions: Iterable[JobDefinition], changes: Iterable[tuple[str, Change]], deps: Dependencies
) -> None:
    """Apply the changes of `compare_definitions`; accepted jobs keep their definition."""
    by_name = {definition.name: definition for definition in definitions}
    for name, change in changes:
        if change is Change.REMOVED:
            deps.definitions.delete_definition(name)
        elif change is not Change.UNCHANGED:
            deps.definitions.save_definition(by_name[name])
