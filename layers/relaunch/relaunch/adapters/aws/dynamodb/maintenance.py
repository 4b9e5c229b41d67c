"""The state of functions in the jobs table that belongs to no job."""

from datetime import datetime, timedelta

from relaunch.adapters.aws.dynamodb.table import JobsTable, epoch, key, number, stamp, text
from relaunch.adapters.stored_type import StoredType
from relaunch.late import made_late
from relaunch.ports import FoundRevision, RevisionMaintenance

_MAINTENANCE = made_late(lambda: StoredType(RevisionMaintenance))
_PK = "MAINTENANCE"
_REVISIONS = "REVISIONS"
_DERIVED = "DERIVED"
_FOUND_KEPT = timedelta(days=1)


class DynamoDbMaintenance:
    """Implements MaintenanceStore."""

    def __init__(self, table: JobsTable) -> None:
        self._table = table

    def take_turn(self, name: str) -> int:
        return self._table.count_up("TURN", name) - 1

    def load_revision(self, derivation_id: str) -> FoundRevision | None:
        item = self._table.get(_DERIVED, derivation_id)
        return None if item is None else FoundRevision(item["arn"]["S"], datetime.fromisoformat(item["at"]["S"]))

    def save_revision(self, derivation_id: str, found: FoundRevision) -> None:
        expires_at = epoch(found.found_at + _FOUND_KEPT)
        item = {"arn": text(found.arn), "at": text(stamp(found.found_at)), "expires_at": expires_at}
        self._table.put(key(_DERIVED, derivation_id) | item)

    def load_maintenance(self) -> RevisionMaintenance | None:
        item = self._table.get(_PK, _REVISIONS)
        return None if item is None else self._table.read(item, _MAINTENANCE)

    def save_maintenance(self, maintenance: RevisionMaintenance) -> bool:
        saved = RevisionMaintenance(maintenance.next_at, maintenance.unused_since, maintenance.version + 1)
        item = key(_PK, _REVISIONS) | {
            "version": number(saved.version),
            "body": text(_MAINTENANCE.dump_json(saved).decode()),
        }
        if not maintenance.version:
            return self._table.put(item, "attribute_not_exists(pk)")
        return self._table.put(item, "version = :version", {":version": number(maintenance.version)})
