"""The steps per second that jobs of a definition have shown, in the jobs table: an item per kind of accelerators."""

from collections.abc import Sequence
from dataclasses import replace

from relaunch.adapters.aws.dynamodb.table import Item, JobsTable, epoch, key, number, text
from relaunch.adapters.stored_type import StoredType
from relaunch.core.selection.rates import RateRecord
from relaunch.late import made_late

_RECORD = made_late(lambda: StoredType(RateRecord))


class DynamoDbRates:
    """Implements RateStore."""

    def __init__(self, table: JobsTable) -> None:
        self._table = table

    def load_rates(self, definition: str) -> Sequence[RateRecord]:
        items = self._table.query("pk = :pk", {":pk": text(_pk(definition))})
        return [self._record(item) for item in items]

    def load_rate(self, definition: str, accelerators: str) -> RateRecord:
        stored = self._table.get(_pk(definition), accelerators)
        return RateRecord(definition, accelerators) if stored is None else self._record(stored)

    def save_rate(self, record: RateRecord) -> bool:
        item = key(_pk(record.definition), record.accelerators) | {
            "version": number(record.version + 1),
            "expires_at": epoch(record.forgotten_at),
            "body": text(_RECORD.dump_json(record, exclude={"version"}).decode()),
        }
        if not record.version:
            return self._table.put(item, "attribute_not_exists(pk)")
        return self._table.put(item, "version = :version", {":version": number(record.version)})

    def _record(self, item: Item) -> RateRecord:
        return replace(self._table.read(item, _RECORD), version=int(item["version"]["N"]))


def _pk(definition: str) -> str:
    return f"RATES#{definition}"
