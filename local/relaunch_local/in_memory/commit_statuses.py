"""The budget of the requests that set statuses of commits, in memory."""

from dataclasses import replace

from relaunch.core.notices.status_budget import StatusBudget
from relaunch.core.notices.status_report import StatusReport
from relaunch.ports import StaleWriteError
from relaunch.ports.commit_statuses import StoredBudget


class InMemoryCommitStatuses:
    """Implements CommitStatusStore."""

    def __init__(self) -> None:
        self._budget = StoredBudget(StatusBudget())
        self._report = StatusReport()

    def load_budget(self) -> StoredBudget:
        return self._budget

    def save_budget(self, stored: StoredBudget) -> None:
        if stored.version != self._budget.version:
            raise StaleWriteError("the budget of commit statuses was changed since it was loaded")
        self._budget = replace(stored, version=stored.version + 1)

    def load_report(self) -> StatusReport:
        return self._report

    def save_report(self, report: StatusReport) -> None:
        self._report = report
