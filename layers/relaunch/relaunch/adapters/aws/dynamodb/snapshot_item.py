"""The snapshot of offerings: one compressed item of the jobs table.

It takes a tenth of the maximum size of an item (400 KB) and needs no other client or permission; an object in S3 would
need a bucket, which must be emptied before the stack can be deleted.
"""

import dataclasses
import json
import zlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from relaunch.adapters.aws.dynamodb.table import JobsTable, key, stamp, text
from relaunch.adapters.offerings.bundled import read_rows
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.snapshot import OfferingsSnapshot, Origin, SnapshotPart
from relaunch.ports import PermanentError, TransientError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_PK = "OFFERINGS"
_SK = "SNAPSHOT"
# A snapshot of an older format is not read; the next refresh replaces it.
_FORMAT = 2


class DynamoDbSnapshots:
    """Implements SnapshotStore."""

    def __init__(self, client: "DynamoDBClient", table_name: str) -> None:
        self._table = JobsTable(client, table_name)

    def load_snapshot(self) -> OfferingsSnapshot | None:
        item = self._table.get(_PK, _SK)
        if item is None:
            return None
        try:
            return _read(json.loads(zlib.decompress(item["body"]["B"])))
        except (KeyError, TypeError, ValueError, AttributeError, zlib.error) as error:
            raise PermanentError(f"the stored offerings cannot be read: {error!r}") from error

    def save_snapshot(self, snapshot: OfferingsSnapshot) -> None:
        body = zlib.compress(json.dumps(_write(snapshot), separators=(",", ":")).encode())
        at = max((origin.at for origin in snapshot.origins.values()), default=None)
        refreshed = {"refreshed_at": text(stamp(at))} if at else {}
        self._table.put(key(_PK, _SK) | refreshed | {"region": text(snapshot.region), "body": {"B": body}})


def _write(snapshot: OfferingsSnapshot) -> dict[str, Any]:
    return {
        "format": _FORMAT,
        "region": snapshot.region,
        "instance_types": _write_types(snapshot.instance_types.values()),
        # Zones are written without the region prefix.
        "zones": {name: _short(snapshot.region, zones) for name, zones in snapshot.zones.items()},
        "on_demand": dict(snapshot.on_demand_usd_per_hour),
        "spot": {
            name: dict(zip(_short(snapshot.region, prices), prices.values(), strict=True))
            for name, prices in snapshot.spot_usd_per_hour.items()
        },
        "gp3": snapshot.gp3_usd_per_gib_month,
        "quotas": dict(snapshot.vcpus_by_quota),
        "scores": dict(snapshot.placement_scores),
        "origins": {part.value: [origin.source, stamp(origin.at)] for part, origin in snapshot.origins.items()},
    }


def _short(region: str, zones: Iterable[str]) -> list[str]:
    return [zone.removeprefix(region) for zone in zones]


def _write_types(rows: Iterable[InstanceType]) -> dict[str, Any]:
    """Return instance types in the format of the bundled catalogue."""
    columns = [field.name for field in dataclasses.fields(InstanceType)]
    values = [dataclasses.asdict(row) for row in rows]
    sources = sorted({each["source"] for each in values})
    numbered = [each | {"source": sources.index(each["source"])} for each in values]
    return {"columns": columns, "sources": sources, "rows": [[each[name] for name in columns] for each in numbered]}


def _read(content: Mapping[str, Any]) -> OfferingsSnapshot:
    if content["format"] > _FORMAT:
        raise TransientError(f"the stored offerings have form {content['format']}: a newer release wrote them")
    if content["format"] != _FORMAT:
        raise ValueError(f"they have form {content['format']}, not {_FORMAT}")
    region = content["region"]
    return OfferingsSnapshot(
        region=region,
        instance_types={row.name: row for row in read_rows(content["instance_types"])},
        zones={name: tuple(f"{region}{zone}" for zone in zones) for name, zones in content["zones"].items()},
        on_demand_usd_per_hour=content["on_demand"],
        spot_usd_per_hour={
            name: {f"{region}{zone}": price for zone, price in prices.items()}
            for name, prices in content["spot"].items()
        },
        gp3_usd_per_gib_month=content["gp3"],
        vcpus_by_quota=content["quotas"],
        placement_scores=content["scores"],
        origins={
            SnapshotPart(part): Origin(source, datetime.fromisoformat(at))
            for part, (source, at) in content["origins"].items()
        },
    )
