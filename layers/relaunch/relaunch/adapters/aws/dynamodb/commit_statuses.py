"""The budget of the requests that set statuses of commits, and what became of them, in the jobs table."""

from dataclasses import replace
from datetime import timedelta

from relaunch.adapters.aws.dynamodb.table import Item, JobsTable, epoch, key, number, text
from relaunch.adapters.stored_type import StoredType
from relaunch.core.notices.commit_status import CommitStatus, ShownChange
from relaunch.core.notices.status_budget import StatusBudget
from relaunch.core.notices.status_report import StatusReport
from relaunch.late import made_late
from relaunch.ports import StaleWriteError
from relaunch.ports.commit_statuses import StoredBudget, StoredShown

_PK = "STATUSES"
_BUDGET_SK = "BUDGET"
_REPORT_SK = "REPORT"
_SHOWN = made_late(lambda: StoredType[ShownChange | None](ShownChange | None))
# Longer than a job may take, with its retry.
_SHOWN_KEPT = timedelta(days=90)
_BUDGET = made_late(lambda: StoredType(StatusBudget))
_REPORT = made_late(lambda: StoredType(StatusReport))


class DynamoDbCommitStatuses:
    """Implements CommitStatusStore. The budget is under 1 KB, and written with each request."""

    def __init__(self, table: JobsTable) -> None:
        self._table = table

    def load_budget(self) -> StoredBudget:
        item = self._table.get(_PK, _BUDGET_SK)
        if item is None:
            return StoredBudget(StatusBudget())
        return StoredBudget(self._table.read(item, _BUDGET), int(item["version"]["N"]))

    def save_budget(self, stored: StoredBudget) -> None:
        body = _BUDGET.dump_json(stored.budget, exclude_defaults=True).decode()
        item = key(_PK, _BUDGET_SK) | {"version": number(stored.version + 1), "body": text(body)}
        self._replace(item, stored.version, "the budget of commit statuses")

    def load_shown(self, status: CommitStatus) -> StoredShown:
        item = self._table.get(_shown_pk(status), status.context)
        return StoredShown() if item is None else StoredShown(self._table.read(item, _SHOWN), int(item["version"]["N"]))

    def save_shown(self, status: CommitStatus, stored: StoredShown) -> None:
        item = key(_shown_pk(status), status.context) | {
            "version": number(stored.version + 1),
            "body": text(_SHOWN.dump_json(stored.shown).decode()),
        }
        if stored.shown is not None:
            item["expires_at"] = epoch(stored.shown.at + _SHOWN_KEPT)
        self._replace(item, stored.version, f"what {status.context} shows")

    def _replace(self, item: Item, version: int, what: str) -> None:
        if version:
            is_saved = self._table.put(item, "version = :version", {":version": number(version)})
        else:
            # The report of an older release has none.
            is_saved = self._table.put(item, "attribute_not_exists(version)")
        if not is_saved:
            raise StaleWriteError(f"{what} was changed since it was loaded")

    def load_report(self) -> StatusReport:
        item = self._table.get(_PK, _REPORT_SK)
        if item is None:
            return StatusReport()
        return replace(self._table.read(item, _REPORT), version=int(item["version"]["N"]) if "version" in item else 0)

    def save_report(self, report: StatusReport) -> None:
        body = _REPORT.dump_json(replace(report, version=0), exclude_defaults=True).decode()
        item = key(_PK, _REPORT_SK) | {"version": number(report.version + 1), "body": text(body)}
        self._replace(item, report.version, "the report of commit statuses")


def _shown_pk(status: CommitStatus) -> str:
    return f"STATUS#{status.repository.lower()}@{status.sha}"
