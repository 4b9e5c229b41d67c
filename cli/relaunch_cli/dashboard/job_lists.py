"""Which jobs the list shows, and which of them are read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from relaunch.core.jobs.cost import summarize_job
from relaunch.core.jobs.state import FINAL_STATES, JobSummary
from relaunch.ports import JobStore
from relaunch_cli.dashboard.kept import Kept
from relaunch_cli.lookup import MOST_OPEN

PAGE = 50
"""How many jobs one query reads, and about how many are shown."""
_MOST_PAGES = 6
"""How many queries one look takes at most: a filter that matches little reads on when it is asked to."""
_MOST_ONE_BY_ONE = 50
"""How many open jobs are read that are older than those of the pages, each in a read of its own."""
_SECONDS = 2.0
_OLD_SECONDS = 15.0


@dataclass(frozen=True)
class JobFilter:
    """Which jobs are shown: in these states, of this definition, with this in what started them, accepted since.

    Without states all match. `cursor` is where the page begins, empty for the newest jobs.
    """

    states: frozenset[str] = frozenset()
    definition: str = ""
    repository: str = ""
    after: datetime | None = None
    cursor: str = ""

    @property
    def wants_open(self) -> bool:
        """Return whether jobs that are not over may match."""
        return not self.states or not self.states <= {each.value for each in FINAL_STATES}

    @property
    def wants_ended(self) -> bool:
        """Return whether jobs that are over may match."""
        return not self.states or not self.states.isdisjoint({each.value for each in FINAL_STATES})

    def matches(self, job: JobSummary) -> bool:
        """Return whether a job is shown."""
        return (
            (not self.states or job.state.value in self.states)
            and (not self.definition or job.definition == self.definition)
            and self.repository.lower() in f"{job.started_by} {job.trigger}".lower()
            and (self.after is None or job.accepted_at >= self.after)
        )


@dataclass(frozen=True)
class JobPage:
    """Jobs, newest first; `cursor` is where the next page begins, None if there is none.

    `left_open` is how many open jobs were left unread, and `has_read` how many jobs were read.
    """

    jobs: Sequence[JobSummary] = field(default_factory=tuple)
    cursor: str | None = None
    left_open: int = 0
    has_read: int = 0


class JobLists:
    """Reads lists of jobs, each query of them at most every two seconds."""

    def __init__(self, jobs: JobStore, kept: Kept) -> None:
        self._jobs = jobs
        self._kept = kept

    def load(self, wanted: JobFilter) -> JobPage:
        """Return the page of a filter; the first one has all open jobs that match, however old they are."""
        read: list[JobSummary] = []
        cursor: str | None = wanted.cursor or None
        for _ in range(_MOST_PAGES):
            page, cursor = self._page(cursor, is_newest=not read and not wanted.cursor)
            read += page
            is_past = bool(page) and wanted.after is not None and page[-1].accepted_at < wanted.after
            if is_past:
                cursor = None
            if cursor is None or not wanted.wants_ended or sum(map(wanted.matches, read)) >= PAGE:
                break
        older, left_open = ([], 0) if wanted.cursor or not wanted.wants_open else self._older_open(read)
        found = [job for job in (*read, *older) if wanted.matches(job)]
        has_more = cursor is not None and wanted.wants_ended
        return JobPage(found, cursor if has_more else None, left_open, len(read) + len(older))

    def open_ids(self) -> Sequence[str]:
        """Return the IDs of all open jobs."""
        return self._kept.get("open", _SECONDS, lambda: self._jobs.load_open(MOST_OPEN))

    def _page(self, cursor: str | None, *, is_newest: bool) -> tuple[Sequence[JobSummary], str | None]:
        seconds = _SECONDS if is_newest else _OLD_SECONDS
        return self._kept.get(("page", cursor), seconds, lambda: self._jobs.list_jobs(PAGE, cursor))

    def _older_open(self, read: Iterable[JobSummary]) -> tuple[list[JobSummary], int]:
        """Return the open jobs that are on no page that was read, newest first, and how many were left unread."""
        known = {job.job_id for job in read}
        missing = [job_id for job_id in self.open_ids() if job_id not in known]
        found = [job for job_id in missing[:_MOST_ONE_BY_ONE] if (job := self._one(job_id)) is not None]
        found.sort(key=lambda job: job.accepted_at, reverse=True)
        return found, len(missing) - len(missing[:_MOST_ONE_BY_ONE])

    def _one(self, job_id: str) -> JobSummary | None:
        job = self._kept.get(("old", job_id), _OLD_SECONDS, lambda: self._jobs.load_job(job_id))
        # The index has jobs that are over too, while effects are pending.
        return summarize_job(job) if job is not None and not job.state.is_final else None
