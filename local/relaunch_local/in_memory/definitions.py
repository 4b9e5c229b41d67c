"""Definitions, the capacity memory and the upkeep of revisions, in memory."""

from dataclasses import replace
from datetime import datetime

from relaunch.core.definitions.definition import JobDefinition, TriggerSource
from relaunch.core.offerings.capacity_memory import remember
from relaunch.core.offerings.offering import CapacityFailure, CapacityMemory, OfferingKey
from relaunch.core.triggers.origins import trigger_origins
from relaunch.ports import RevisionMaintenance


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


class InMemoryCapacity:
    """Implements CapacityStore."""

    def __init__(self) -> None:
        self._failures: dict[OfferingKey, CapacityFailure] = {}

    def load_capacity_memory(self, now: datetime) -> CapacityMemory:
        return {key: failure for key, failure in self._failures.items() if failure.until > now}

    def remember(self, failure: CapacityFailure) -> None:
        self._failures[failure.offering] = remember(self._failures.get(failure.offering), failure)


class InMemoryMaintenance:
    """Implements MaintenanceStore."""

    def __init__(self) -> None:
        self._turns: dict[str, int] = {}
        self._maintenance: RevisionMaintenance | None = None

    def take_turn(self, name: str) -> int:
        self._turns[name] = self._turns.get(name, -1) + 1
        return self._turns[name]

    def load_maintenance(self) -> RevisionMaintenance | None:
        return self._maintenance

    def save_maintenance(self, maintenance: RevisionMaintenance) -> bool:
        if (self._maintenance.version if self._maintenance else 0) != maintenance.version:
            return False
        self._maintenance = replace(maintenance, version=maintenance.version + 1)
        return True
