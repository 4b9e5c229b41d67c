"""The logs of all ranks of a job."""

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from relaunch_cli.job_logs import JobLogs
from relaunch_local.demo.outcome import RankResult
from relaunch_local.demo.session import CONTAINER, Session
from relaunch_local.demo.training_log import Entry, TrainingLog

RESULT = re.compile(r"finished with loss (\S+) and weights (\S+)")


@dataclass
class RankLogs:
    """The log of each rank, with all lines that are there by now."""

    session: Session
    job_id: str
    nodes: int
    lines: defaultdict[int, list[tuple[int, str]]] = field(default_factory=lambda: defaultdict(list))
    """Attempt and text by rank."""
    entries: defaultdict[int, TrainingLog] = field(default_factory=lambda: defaultdict(TrainingLog))
    _readers: dict[int, JobLogs] = field(default_factory=dict)

    def read(self, rank: int) -> None:
        """Read what is new."""
        if rank not in self._readers:
            self._readers[rank] = JobLogs(self.session.connection.logs, CONTAINER, rank=rank)
        deps = self.session.deps
        if (history := deps.jobs.load_history(self.job_id)) is not None:
            for line in self._readers[rank].read(history, deps.clock.now()):
                self.lines[rank].append((line.attempt_number, line.message))
                self.entries[rank].add_line(line.attempt_number, line.message)

    def wait_for(self, attempt: int, rank: int, event: str, what: str) -> Entry:
        """Wait until a rank has logged an event.

        Raises:
            UnmetExpectationError: it did not happen in time.
        """

        def poll() -> Entry | None:
            self.read(rank)
            return self.entries[rank].find(attempt, event)

        return self.session.expect_job(self.job_id, what, lambda _history: poll())

    def wait_for_result(self, rank: int) -> RankResult:
        """Wait until a rank has finished.

        Raises:
            UnmetExpectationError: it did not happen in time.
        """

        def poll() -> RankResult | None:
            self.read(rank)
            return find_result(rank, [text for _, text in self.lines[rank]])

        return self.session.expect(f"rank {rank} has finished", poll)

    def write(self) -> list[dict[str, object]]:
        """Return all lines that are there, for demo.json."""
        for rank in range(self.nodes):
            self.read(rank)
        found = ((rank, *line) for rank in sorted(self.lines) for line in self.lines[rank])
        return [{"rank": rank, "attempt": attempt, "text": text} for rank, attempt, text in found]


def find_result(rank: int, lines: Sequence[str]) -> RankResult | None:
    """Return what a rank that printed these lines ended with, if it has."""
    found = (RESULT.fullmatch(line) for line in lines)
    return next((RankResult(rank, *each.groups()) for each in found if each), None)
