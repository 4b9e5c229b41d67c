"""Job definitions in memory."""

from relaunch.core.definitions.definition import JobDefinition, TriggerSource
from relaunch.core.triggers.origins import trigger_origins


class InMemoryDefinitions:
    """Implements DefinitionStore."""

    def __init__(self) -> None:
        self._definitions: dict[str, JobDefinition] = {}

    def save_definition(self, definition: JobDefinition) -> None:
        self._definitions[definition.name] = definition

    def load_definition(self, name: str) -> JobDefinition | None:
        return self._definitions.get(name)

    def list_definitions(self) -> list[JobDefinition]:
        return [definition for _, definition in sorted(self._definitions.items())]

    def delete_definition(self, name: str) -> bool:
        return self._definitions.pop(name, None) is not None

    def find_definitions(self, source: TriggerSource, name: str) -> list[JobDefinition]:
        return [found for found in self.list_definitions() if (source, name) in trigger_origins(found)]
