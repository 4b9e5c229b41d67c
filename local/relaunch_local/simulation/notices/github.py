"""GitHub's API for statuses of commits as a function calls it: a fifth of the requests fail, or are taken late."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from email.message import Message
from functools import partial
from typing import Any
from urllib.request import Request

from relaunch.adapters.github.commit_statuses import PARAMETER
from relaunch.adapters.github.rest_api import GithubRestApi, RestAnswer
from relaunch_local.ecs import Clock
from relaunch_local.internet.github_refusals import REFUSALS
from relaunch_local.internet.github_statuses import Answer, GithubStatuses
from relaunch_local.simulation.aws.runtime import Invocation, Runtime
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.notice_plans import Away, StatusPlan
from relaunch_local.simulation.notices.status_checks import CommitStatusChecks
from relaunch_local.simulation.notices.stories import time_of

_LATENCY = (0.1, 2.0)
_TIMEOUT_SECONDS = 10.0
# GitHub ends a request that it has processed for ten seconds (docs/unverified.md); some are on their way for a while.
_TAKEN_LATE = (0.5, 20.0)
_SHARES = {"status-failed": 0.07, "status-limited": 0.05, "status-unanswered": 0.03, "status-taken-late": 0.05}
_ERRORS = ("an-error-of-theirs", "a-gateway", "unavailable")
_LIMITS = ("a-primary-limit", "a-secondary-limit", "a-limit-by-429", "a-limit-that-says-nothing")
_RESET_SECONDS = (60, 3_000)


class SimulatedStatuses(GithubRestApi):
    """Sends requests to a fake of GitHub on the clock of the run."""

    def __init__(
        self, plan: StatusPlan, clock: Clock, chance: Chance, runtime: Runtime, read_token: Callable[[], str]
    ) -> None:
        super().__init__("https://api.github.com", read_token, PARAMETER)
        self._plan = plan
        self._clock = clock
        self._started_at = clock.now()
        self._chance = chance
        self._runtime = runtime
        self.github = GithubStatuses(clock.now, frozenset(), most=plan.most_statuses, takes_any=True)
        self.checks: CommitStatusChecks | None = None
        self.failed_at: Mapping[str, Sequence[datetime]] = {}
        self._closed_since: datetime | None = None
        self._closed_until: datetime | None = None
        self._closed_for: Invocation | None = None
        """The function that was asked for the pause."""

    def _exchange(self, request: Request) -> RestAnswer:
        content = json.loads(request.data if isinstance(request.data, bytes) else b"{}")
        path = request.selector.removeprefix("/")
        self._check_pause()
        latency = self._chance.stream("github-statuses/latency")
        self._runtime.pause(latency.uniform(*_LATENCY), "github:status is sent")
        away = self._away()
        if away is not None:
            return away
        fault = self._fault()
        if fault in ("status-unanswered", "status-taken-late"):
            if fault == "status-taken-late":
                late = self._chance.stream("github-statuses/late").uniform(*_TAKEN_LATE)
                self._clock.call_later(late, partial(self._take_late, path, content))
            self._runtime.pause(_TIMEOUT_SECONDS, "github:status is waited for")
            raise TimeoutError("timed out")
        if fault:
            return self._refused(fault)
        answer = self._take(path, content)
        self._runtime.pause(latency.uniform(*_LATENCY), "github:status took effect")
        return _read(answer)

    def _take_late(self, path: str, content: Mapping[str, Any]) -> None:
        self._take(path, content)

    def _take(self, path: str, content: Mapping[str, Any]) -> Answer:
        repository = "/".join(path.split("/")[1:3])
        right = self._plan.without_right.get(repository)
        if right is not None and right.is_on(self._seconds()):
            self._chance.note_organic("status-without-right")
            invocation = self._runtime.current
            # A request that is taken late is nobody's any more.
            if self.checks is not None and invocation is not None:
                change = json.loads(invocation.messages[invocation.current].body)["detail"]
                self.checks.refused(repository, self._table_failed_at(), time_of(change))
            return REFUSALS["a-missing-scope" if len(repository) % 2 else "private-or-gone"].answer
        answer = self.github.answer("POST", path, content)
        if answer is None:
            raise LookupError(path)
        return answer

    def _away(self) -> RestAnswer | None:
        absence = next((each for each in self._plan.absences if each.is_on(self._seconds())), None)
        if absence is None:
            return None
        if absence.kind is Away.SILENT:
            self._runtime.pause(_TIMEOUT_SECONDS, "github:status is waited for")
            raise TimeoutError("timed out")
        return _read(REFUSALS["a-bad-token" if absence.kind is Away.REVOKED else "unavailable"].answer)

    def _fault(self) -> str:
        kinds = (kind for kind, share in _SHARES.items() if self._chance.strikes(kind, share, site="github"))
        return next(kinds, "")

    def _refused(self, fault: str) -> RestAnswer:
        dice = self._chance.stream("github-statuses/refusals")
        status, headers, body = REFUSALS[dice.choice(_LIMITS if fault == "status-limited" else _ERRORS)].answer
        now = self._clock.now()
        seconds = int(headers.get("Retry-After", "60"))
        if "X-RateLimit-Reset" in headers:
            seconds = dice.randint(*_RESET_SECONDS)
            headers = {**headers, "X-RateLimit-Reset": str(int(now.timestamp()) + seconds)}
        if fault == "status-limited":
            self._closed_since = now
            self._closed_for = self._runtime.current
            self._closed_until = now + timedelta(seconds=seconds)
        return _read((status, headers, body))

    def _check_pause(self) -> None:
        """Check that GitHub is not asked before the time that it named, if functions could save that."""
        if self._closed_since is None or self.checks is None:
            return
        is_dead = self._closed_for is not None and bool(self._closed_for.kill_reason)
        is_saved = not is_dead and not any(at >= self._closed_since for at in self._table_failed_at())
        self.checks.check_request(self._closed_since, self._closed_until, is_known=is_saved)

    def _table_failed_at(self) -> Iterator[datetime]:
        """Yield when calls of DynamoDB failed for good."""
        return (at for name, found in self.failed_at.items() if name.startswith("dynamodb:") for at in found)

    def _seconds(self) -> float:
        return (self._clock.now() - self._started_at).total_seconds()


def _read(answer: Answer) -> RestAnswer:
    status, headers, content = answer
    message = Message()
    for name, value in headers.items():
        message[name] = value
    return RestAnswer(status, content.encode(), message)
