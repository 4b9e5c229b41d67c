"""GitHub's statuses of commits, with the limits that GitHub has on them and on requests that create content.

"REST API endpoints for commit statuses", "Rate limits for the REST API", GitHub Docs. The limits are counted here, by
the time of the fake's own clock: what a client believes of itself plays no part.
"""

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from relaunch_local.internet.github_refusals import REFUSALS

MOST_STATUSES = 1_000
LONGEST_DESCRIPTION = 140
PER_MINUTE = 80
PER_HOUR = 500
EXPIRES = "2027-01-31 09:00:00 UTC"
_STATES = frozenset({"error", "failure", "pending", "success"})
_MINUTE = timedelta(minutes=1)
_HOUR = timedelta(hours=1)
_JSON = {"Content-Type": "application/json; charset=utf-8", "GitHub-Authentication-Token-Expiration": EXPIRES}
Answer = tuple[int, Mapping[str, str], str]


@dataclass(frozen=True)
class SetStatus:
    """A status as it was set."""

    state: str
    description: str
    target_url: str | None
    at: datetime


@dataclass
class GithubStatuses:
    """The statuses of all commits of the repositories of `names`, the oldest first.

    `refuse` may answer a request instead of what it asks for, `lose` after it took effect.
    `exceeded` has the limits of requests that were exceeded, and `too_soon` the requests that came though GitHub had
    asked to wait: a client that keeps to the rules leaves both empty.
    """

    now: Callable[[], datetime]
    names: frozenset[str] = frozenset({"acme/vision"})
    statuses: dict[tuple[str, str, str], list[SetStatus]] = field(default_factory=dict)
    exceeded: list[tuple[datetime, str]] = field(default_factory=list)
    too_soon: list[datetime] = field(default_factory=list)
    refuse: Callable[[], Answer | None] = lambda: None
    lose: Callable[[], Answer | None] = lambda: None
    gone: set[str] = field(default_factory=set)
    most: int = MOST_STATUSES
    """How many statuses a commit may have of a context."""
    takes_any: bool = False
    """Whether it has every repository."""
    full: set[tuple[str, str, str]] = field(default_factory=set)
    """Repositories, commits and contexts that had as many statuses as they may when another one was sent."""
    requests: int = 0
    most_in_a_minute: int = 0
    most_in_an_hour: int = 0
    _times: deque[datetime] = field(default_factory=deque)
    _minute: deque[datetime] = field(default_factory=deque)
    _closed_until: datetime | None = None

    def latest(self, sha: str, context: str, name: str = "acme/vision") -> SetStatus | None:
        """Return what GitHub shows for a context of a commit."""
        found = self.statuses.get((name, sha, context.lower()))
        return found[-1] if found else None

    def close(self, seconds: float) -> None:
        """Ask to be left alone for so long."""
        self._closed_until = self.now() + timedelta(seconds=seconds)

    def count(self) -> Answer | None:
        """Count a request that creates content; return the refusal of one beyond a limit."""
        now = self.now()
        self.requests += 1
        if self._closed_until is not None and now < self._closed_until:
            self.too_soon.append(now)
        self._times.append(now)
        self._minute.append(now)
        while now - self._times[0] >= _HOUR:
            self._times.popleft()
        while now - self._minute[0] >= _MINUTE:
            self._minute.popleft()
        self.most_in_a_minute = max(self.most_in_a_minute, len(self._minute))
        self.most_in_an_hour = max(self.most_in_an_hour, len(self._times))
        if len(self._minute) > PER_MINUTE or len(self._times) > PER_HOUR:
            self.exceeded.append((now, f"{len(self._minute)} in a minute, {len(self._times)} in an hour"))
            self.close(60)
            return REFUSALS["a-secondary-limit"].answer
        return None

    def answer(self, method: str, path: str, content: Any) -> Answer | None:
        """Answer a request for statuses, None if it is for something else."""
        match method, path.split("/"):
            case "POST", ["repos", owner, name, "statuses", sha]:
                refused = self.count() or self._obeyed(self.refuse())
                return refused or self._taken(f"{owner}/{name}", sha, content)
            case "GET", ["repos", owner, name, "commits", sha, "statuses"] if f"{owner}/{name}" in self.names:
                return 200, _JSON, json.dumps(self._listed(f"{owner}/{name}", sha))
            case _:
                return None

    def _listed(self, name: str, sha: str) -> Sequence[Mapping[str, str | None]]:
        """Return the statuses of a commit "in reverse chronological order", those of one moment as they came."""
        found = [
            {
                "state": each.state,
                "context": context,
                "description": each.description,
                "target_url": each.target_url,
                "created_at": each.at.isoformat(),
            }
            for (repository, commit, context), statuses in self.statuses.items()
            if (repository, commit) == (name, sha)
            for each in statuses
        ]
        return sorted(found, key=lambda each: str(each["created_at"]))[::-1]

    def _obeyed(self, refusal: Answer | None) -> Answer | None:
        """Keep to what a refusal asks for: "wait for at least one minute" where a limit says nothing."""
        if refusal is None:
            return None
        status, headers, _ = refusal
        after = headers.get("Retry-After", "").strip()
        reset = headers.get("X-RateLimit-Reset", "")
        if after.isdigit():
            self.close(min(int(after), 3_600))
        elif reset and headers.get("X-RateLimit-Remaining") == "0":
            self.close(int(reset) - self.now().timestamp())
        elif status == 429:
            self.close(60)
        return refusal

    def _taken(self, name: str, sha: str, content: Mapping[str, Any]) -> Answer:
        answer = self._set(name, sha, content)
        return self.lose() or answer

    def _set(self, name: str, sha: str, content: Mapping[str, Any]) -> Answer:
        if name not in self.names and not self.takes_any:
            return REFUSALS["private-or-gone"].answer
        if sha in self.gone:
            return REFUSALS["no-such-commit"].answer
        if content["state"] not in _STATES or len(content.get("description", "")) > LONGEST_DESCRIPTION:
            return REFUSALS["invalid"].answer
        # "A string label … This field is case-insensitive."
        known = self.statuses.setdefault((name, sha, content["context"].lower()), [])
        if len(known) >= self.most:
            self.full.add((name, sha, content["context"]))
            return REFUSALS["too-many-statuses"].answer
        set_now = SetStatus(content["state"], content["description"], content.get("target_url"), self.now())
        known.append(set_now)
        return 201, _JSON, json.dumps({"state": set_now.state, "context": content["context"], "id": len(known)})
