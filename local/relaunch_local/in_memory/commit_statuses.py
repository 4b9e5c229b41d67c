"""The budget of the requests that set statuses of commits, in memory."""

from dataclasses import replace

from relaunch.core.notices.commit_status import CommitStatus
from relaunch.core.notices.status_budget import StatusBudget
from relaunch.core.notices.status_report import StatusReport
from relaunch.ports import StaleWriteError
from relaunch.ports.commit_statuses import StoredBudget, StoredShown


class InMemoryCommitStatuses:
    """Implements CommitStatusStore."""

    def __init__(self) -> None:
        self._budget = StoredBudget(StatusBudget())
        self._report = StatusReport()
        self._shown: dict[tuple[str, str, str], StoredShown] = {}

    def load_shown(self, status: CommitStatus) -> StoredShown:
        return self._shown.get(_place(status), StoredShown())

    def save_shown(self, status: CommitStatus, stored: StoredShown) -> None:
        if stored.version != self.load_shown(status).version:
            raise StaleWriteError(f"what {status.context} shows was changed since it was loaded")
        self._shown[_place(status)] = replace(stored, version=stored.version + 1)

    def load_budget(self) -> StoredBudget:
        return self._budget

    def save_budget(self, stored: StoredBudget) -> None:
        if stored.version != self._budget.version:
            raise StaleWriteError("the budget of commit statuses was changed since it was loaded")
        self._budget = replace(stored, version=stored.version + 1)

    def load_report(self) -> StatusReport:
        return self._report

    def save_report(self, report: StatusReport) -> None:
        if report.version != self._report.version:
            raise StaleWriteError("the report of commit statuses was changed since it was loaded")
        self._report = replace(report, version=report.version + 1)


def _place(status: CommitStatus) -> tuple[str, str, str]:
    return status.repository.lower(), status.sha, status.context
