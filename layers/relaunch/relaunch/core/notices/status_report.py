"""What became of the last statuses of commits, for `relaunch doctor`, and which refusals were said already."""

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime, timedelta

from relaunch.core.records import dataclass

MAX_PROBLEMS = 20
"""Of how many repositories a problem is kept; the newest ones."""
SAID_AGAIN = timedelta(hours=24)
"""How often the same problem of a repository is an alert."""
TRIED_AGAIN = timedelta(minutes=10)
"""How often a repository is tried whose statuses wait for somebody to correct something."""
_NOTED_EVERY = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class StatusProblem:
    """What GitHub refuses for a repository, in words that say what to do, and when that was an alert."""

    reason: str
    said_at: datetime
    tried_at: datetime | None = None
    """When a status of the repository was last tried; None: it is tried with each change."""


@dataclass(frozen=True, slots=True)
class StatusReport:
    """What became of the statuses of commits.

    `problems` are by repository. `token_expires_at` is None of a token that does not expire, or before the first
    answer.
    """

    taken_at: datetime | None = None
    taken_by: str = ""
    """The repository of the last status that was taken; this is noted once an hour."""
    token_expires_at: datetime | None = None
    problems: Mapping[str, StatusProblem] = field(default_factory=dict, hash=False)
    late_said_at: datetime | None = None
    """When an alert said last that ends come more than an hour late."""
    version: int = field(default=0, compare=False)
    """That on whose condition it is replaced; 0 if there is none yet."""

    def is_said(self, repository: str, reason: str, now: datetime) -> bool:
        """Return whether this problem was said already, within a day."""
        known = self.problems.get(repository)
        return known is not None and known.reason == reason and now - known.said_at < SAID_AGAIN

    def barred_until(self, repository: str) -> datetime | None:
        """Return when a repository is tried again that refuses all statuses, None if that is now."""
        known = self.problems.get(repository)
        return known.tried_at + TRIED_AGAIN if known is not None and known.tried_at is not None else None

    def with_problem(self, repository: str, reason: str, now: datetime, *, is_barred: bool = False) -> "StatusReport":
        """Return the report after a refusal; it is said now unless it was said already."""
        said_at = self.problems[repository].said_at if self.is_said(repository, reason, now) else now
        problem = StatusProblem(reason, said_at, now if is_barred else None)
        problems = {**self.problems, repository: problem}
        newest = sorted(problems.items(), key=lambda each: each[1].said_at)[-MAX_PROBLEMS:]
        return replace(self, problems=dict(newest))

    def after_taken(self, repository: str, now: datetime, token_expires_at: datetime | None) -> "StatusReport":
        """Return the report after a status was taken, which is this one while it says nothing new."""
        is_noted = self.taken_at is not None and now - self.taken_at < _NOTED_EVERY
        if is_noted and repository not in self.problems and token_expires_at == self.token_expires_at:
            return self
        problems = {each: problem for each, problem in self.problems.items() if each != repository}
        return StatusReport(now, repository, token_expires_at, problems, self.late_said_at, self.version)

    def with_late_said(self, now: datetime) -> "StatusReport":
        """Return the report after an alert that ends come late, which is this one within a day of the last."""
        return self if self.is_late_said(now) else replace(self, late_said_at=now)

    def is_late_said(self, now: datetime) -> bool:
        """Return whether an alert said within a day that ends come late."""
        return self.late_said_at is not None and now - self.late_said_at < SAID_AGAIN
