"""What sweeps of failed deliveries have reached, in the jobs table."""

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from relaunch.adapters.aws.dynamodb.table import JobsTable, epoch, key, number, stamp, text
from relaunch.core.triggers.failed_deliveries import SweepProgress
from relaunch.ports.deliveries import SweepReport

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_PK = "DELIVERIES"
_REPORT = "REPORT"
# Longer than GitHub keeps deliveries: a webhook that is gone leaves nothing behind.
_PROGRESS_KEPT = timedelta(days=7)
# An item has 400 KB. Those beyond are asked for three times once more.
_MAX_LOST = 5_000


class DynamoDbDeliveries:
    """Implements DeliveryStore."""

    def __init__(self, client: "DynamoDBClient", table_name: str) -> None:
        self._table = JobsTable(client, table_name)

    def load_progress(self, webhook: str) -> SweepProgress | None:
        item = self._table.get(_PK, webhook)
        if item is None:
            return None
        return SweepProgress(
            datetime.fromisoformat(item["settled_until"]["S"]), frozenset(json.loads(item["lost"]["S"]))
        )

    def save_progress(self, webhook: str, progress: SweepProgress) -> None:
        item = {
            "settled_until": text(stamp(progress.settled_until)),
            "lost": text(json.dumps(sorted(progress.lost)[:_MAX_LOST])),
            "expires_at": epoch(progress.settled_until + _PROGRESS_KEPT),
        }
        self._table.put(key(_PK, webhook) | item)

    def load_report(self) -> SweepReport | None:
        item = self._table.get(_PK, _REPORT)
        if item is None:
            return None
        details = json.loads(item["details"]["S"])
        return SweepReport(
            datetime.fromisoformat(item["at"]["S"]),
            int(item["redelivered"]["N"]),
            tuple(details["problems"]),
            tuple(details["unswept"]),
            details["interruption"],
        )

    def save_report(self, report: SweepReport) -> None:
        details = {"problems": report.problems, "unswept": report.unswept, "interruption": report.interruption}
        item = {
            "at": text(stamp(report.at)),
            "redelivered": number(report.redelivered),
            "details": text(json.dumps(details)),
        }
        self._table.put(key(_PK, _REPORT) | item)
