"""Register job definitions."""

from collections.abc import Iterable, Sequence
from enum import StrEnum

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.definitions.ownership import Owner, RegisteredDefinition, is_same_owner
from relaunch.core.records import dataclass
from relaunch.ports import Dependencies, PermanentError


class Change(StrEnum):
    """The change of a definition."""

    CREATED = "created"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class DefinitionChange:
    """The change of a definition from what is registered, if anything is, to what will be, unless it is removed.

    `is_taken_over`: it had another owner, or none.
    """

    name: str
    change: Change
    before: RegisteredDefinition | None = None
    after: JobDefinition | None = None
    is_taken_over: bool = False

    @property
    def owner_before(self) -> Owner | None:
        """Return the owner until now, None if there was none."""
        return self.before.owner if self.before else None


class OtherOwnerError(PermanentError):
    """Definitions are registered by other owners; `registered` are those."""

    def __init__(self, registered: Sequence[RegisteredDefinition]) -> None:
        owned = (f"{each.definition.name} is registered from {each.owner}" for each in registered)
        super().__init__("; ".join(owned))
        self.registered = tuple(registered)


def compare_definitions(
    definitions: Iterable[JobDefinition],
    registered: Iterable[RegisteredDefinition],
    owner: Owner,
    *,
    prune: bool = False,
    take_over: bool = False,
) -> list[DefinitionChange]:
    """Return the changes of registering an owner's `definitions`; with `prune` all others of the owner are removed.

    With `take_over` those of other owners are replaced, or removed, too. A definition without an owner becomes the
    owner's when it is among `definitions`, and is not removed otherwise.

    Raises:
        OtherOwnerError: a definition is registered by another owner.
    """
    before = {each.definition.name: each for each in registered}
    after = {definition.name: definition for definition in definitions}
    others = [known for name in after if (known := before.get(name)) and known.owner and not _is_own(known, owner)]
    if others and not take_over:
        raise OtherOwnerError(others)
    changes = [_compare(definition, before.get(name), owner) for name, definition in after.items()]
    if not prune:
        return changes
    unlisted = [known for name, known in before.items() if name not in after]
    removed = [known for known in unlisted if take_over or _is_own(known, owner)]
    return changes + [
        DefinitionChange(known.definition.name, Change.REMOVED, known, is_taken_over=not _is_own(known, owner))
        for known in removed
    ]


def _compare(definition: JobDefinition, before: RegisteredDefinition | None, owner: Owner) -> DefinitionChange:
    if before is None:
        return DefinitionChange(definition.name, Change.CREATED, after=definition)
    change = Change.UNCHANGED if definition == before.definition else Change.REPLACED
    return DefinitionChange(definition.name, change, before, definition, not _is_own(before, owner))


def _is_own(known: RegisteredDefinition, owner: Owner) -> bool:
    return known.owner is not None and is_same_owner(known.owner, owner)


def register_definitions(changes: Iterable[DefinitionChange], owner: Owner, deps: Dependencies) -> None:
    """Apply the changes of `compare_definitions`; accepted jobs keep their definition.

    Raises:
        StaleWriteError: a definition was registered or removed by others since it was compared; it stays as they left
            it, and so do those that come after it.
    """
    for each in changes:
        version = each.before.version if each.before else 0
        if each.after is None:
            deps.definitions.delete_definition(each.name, version=version)
        elif each.change is not Change.UNCHANGED or each.is_taken_over:
            deps.definitions.save_definition(each.after, owner, version=version)
