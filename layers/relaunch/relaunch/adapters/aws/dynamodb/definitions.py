"""Job definitions in the jobs table, by name and by every origin that their triggers watch."""

import secrets
import uuid
from collections.abc import Iterable

from relaunch.adapters.aws.dynamodb.formats import newer_if_invalid
from relaunch.adapters.aws.dynamodb.later_fields import left_out
from relaunch.adapters.aws.dynamodb.table import (
    MAX_ACTIONS,
    Action,
    CancelledError,
    Item,
    JobsTable,
    key,
    number,
    put,
    read_item,
    text,
)
from relaunch.adapters.stored_type import StoredType
from relaunch.core.definitions.definition import JobDefinition, TriggerSource, trigger_origins
from relaunch.core.definitions.ownership import Owner, RegisteredDefinition
from relaunch.late import made_late
from relaunch.ports import PermanentError, StaleWriteError

_DEFINITION = made_late(lambda: StoredType(JobDefinition))
_OWNER = made_late(lambda: StoredType(Owner))
_PK = "DEFINITION"
_ATTEMPTS = 5
# Versions are counted from a random number, so that a definition that was removed and registered anew has another one.
_MAX_FIRST_VERSION = 10**15


class DynamoDbDefinitions:
    """Implements DefinitionStore.

    A definition and its trigger entries are replaced by one transaction, on the condition that the definition has not
    changed, so that no entry of an earlier version remains.
    """

    def __init__(self, table: JobsTable) -> None:
        self._table = table

    def save_definition(
        self, definition: JobDefinition, owner: Owner | None = None, *, version: int | None = None
    ) -> None:
        """Register or replace a definition with its owner and its trigger entries, atomically.

        Raises:
            StaleWriteError: another version is registered, or others replaced it several times in a row.
            PermanentError: its triggers, including removed ones, watch more origins than one transaction can change.
        """
        self._replace(definition.name, definition, owner, version)

    def delete_definition(self, name: str, *, version: int | None = None) -> bool:
        return self._replace(name, None, None, version)

    def _replace(self, name: str, definition: JobDefinition | None, owner: Owner | None, version: int | None) -> bool:
        for _ in range(_ATTEMPTS):
            known = self._table.get(_PK, name)
            if known is None and definition is None:
                return False
            if version is not None and version != _version(known):
                raise StaleWriteError(f"definition {name} was changed by others meanwhile and is left as it is")
            actions = _replacement(name, known, definition, owner)
            if len(actions) > MAX_ACTIONS:
                raise PermanentError(f"definition {name} watches {len(actions) - 1} origins, {MAX_ACTIONS - 1} can be")
            try:
                self._table.transact(actions, str(uuid.uuid4()), f"saving definition {name}")
            except CancelledError:
                continue
            return True
        raise StaleWriteError(f"definition {name} was replaced by others {_ATTEMPTS} times in a row")

    def load_definition(self, name: str) -> JobDefinition | None:
        item = self._table.get(_PK, name)
        return _read(item) if item else None

    def load_registered(self, name: str) -> RegisteredDefinition | None:
        item = self._table.get(_PK, name)
        return _read_registered(item) if item else None

    def list_definitions(self) -> list[JobDefinition]:
        return self._read_all(_PK)

    def list_registered(self) -> list[RegisteredDefinition]:
        return [_read_registered(item) for item in self._table.query("pk = :pk", {":pk": text(_PK)})]

    def find_definitions(self, source: TriggerSource, name: str) -> list[JobDefinition]:
        return self._read_all(_trigger_pk(source, name))

    def _read_all(self, pk: str) -> list[JobDefinition]:
        return [_read(item) for item in self._table.query("pk = :pk", {":pk": text(pk)})]


def _replacement(name: str, known: Item | None, definition: JobDefinition | None, owner: Owner | None) -> list[Action]:
    """Return the actions that replace the known definition, or delete it if `definition` is None."""
    before = _trigger_pks(_read(known)) if known else set()
    after = _trigger_pks(definition) if definition else set()
    version = _version(known)
    condition = "version = :version" if known else "attribute_not_exists(pk)"
    values = {":version": number(version)} if known else None
    if definition is None:
        head: Action = {
            "Delete": {
                "Key": key(_PK, name),
                "ConditionExpression": condition,
                "ExpressionAttributeValues": values,
            }
        }
        return [head, *_deletions(name, before)]
    body = text(_DEFINITION.dump_json(definition, exclude=left_out(definition)).decode())
    item = key(_PK, name) | {"version": number((version or secrets.randbelow(_MAX_FIRST_VERSION)) + 1), "body": body}
    if owner is not None:
        item["owner"] = text(_OWNER.dump_json(owner).decode())
    head = put(item, condition, values)
    entries = [put(key(pk, name) | {"body": body}) for pk in sorted(after)]
    return [head, *entries, *_deletions(name, before - after)]


def _deletions(name: str, pks: Iterable[str]) -> list[Action]:
    return [{"Delete": {"Key": key(pk, name)}} for pk in sorted(pks)]


def _trigger_pks(definition: JobDefinition) -> set[str]:
    return {_trigger_pk(source, name) for source, name in trigger_origins(definition)}


def _trigger_pk(source: TriggerSource, name: str) -> str:
    return f"TRIGGER#{source}#{name}"


def _read(item: Item) -> JobDefinition:
    return read_item(item, _DEFINITION)


def _read_registered(item: Item) -> RegisteredDefinition:
    with newer_if_invalid(item):
        owner = _OWNER.validate_json(item["owner"]["S"]) if "owner" in item else None
    return RegisteredDefinition(_read(item), owner, _version(item))


def _version(item: Item | None) -> int:
    return int(item["version"]["N"]) if item else 0
