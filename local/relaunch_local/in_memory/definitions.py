"""Job definitions in memory."""

from itertools import count

from relaunch.core.definitions.definition import JobDefinition, TriggerSource, trigger_origins
from relaunch.core.definitions.ownership import Owner, RegisteredDefinition
from relaunch.ports import StaleWriteError


class InMemoryDefinitions:
    """Implements DefinitionStore."""

    def __init__(self) -> None:
        self._registered: dict[str, RegisteredDefinition] = {}
        self._versions = count(1)

    def save_definition(
        self, definition: JobDefinition, owner: Owner | None = None, *, version: int | None = None
    ) -> None:
        self._check_version(definition.name, version)
        self._registered[definition.name] = RegisteredDefinition(definition, owner, next(self._versions))

    def load_definition(self, name: str) -> JobDefinition | None:
        known = self._registered.get(name)
        return known.definition if known else None

    def load_registered(self, name: str) -> RegisteredDefinition | None:
        return self._registered.get(name)

    def list_definitions(self) -> list[JobDefinition]:
        return [known.definition for known in self.list_registered()]

    def list_registered(self) -> list[RegisteredDefinition]:
        return [known for _, known in sorted(self._registered.items())]

    def delete_definition(self, name: str, *, version: int | None = None) -> bool:
        if name not in self._registered:
            return False
        self._check_version(name, version)
        del self._registered[name]
        return True

    def find_definitions(self, source: TriggerSource, name: str) -> list[JobDefinition]:
        return [found for found in self.list_definitions() if (source, name) in trigger_origins(found)]

    def _check_version(self, name: str, version: int | None) -> None:
        known = self._registered.get(name)
        if version is not None and version != (known.version if known else 0):
            raise StaleWriteError(f"definition {name} was changed by others meanwhile and is left as it is")
