"""The budget of the requests that set statuses of commits, and what became of them, in the jobs table."""

from pydantic import TypeAdapter

from relaunch.adapters.aws.dynamodb.table import JobsTable, key, number, text
from relaunch.core.notices.status_budget import StatusBudget
from relaunch.core.notices.status_report import StatusReport
from relaunch.ports import StaleWriteError
from relaunch.ports.commit_statuses import StoredBudget

_PK = "STATUSES"
_BUDGET_SK = "BUDGET"
_REPORT_SK = "REPORT"
_BUDGET = TypeAdapter(StatusBudget)
_REPORT = TypeAdapter(StatusReport)


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
        if stored.version:
            is_saved = self._table.put(item, "version = :version", {":version": number(stored.version)})
        else:
            is_saved = self._table.put(item, "attribute_not_exists(pk)")
        if not is_saved:
            raise StaleWriteError("the budget of commit statuses was changed since it was loaded")

    def load_report(self) -> StatusReport:
        item = self._table.get(_PK, _REPORT_SK)
        return StatusReport() if item is None else self._table.read(item, _REPORT)

    def save_report(self, report: StatusReport) -> None:
        body = _REPORT.dump_json(report, exclude_defaults=True).decode()
        self._table.put(key(_PK, _REPORT_SK) | {"body": text(body)})
