"""api.github.com with the statuses of commits, which a token may set and read.

"REST API endpoints for commit statuses", GitHub Docs.
"""

import json
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from urllib.parse import urlsplit

from relaunch_local.internet.answers import HostAnswer, HostRequest
from relaunch_local.internet.github_refusals import REFUSALS
from relaunch_local.internet.github_statuses import Answer, GithubStatuses

GITHUB = "api.github.com"


class GithubHost:
    """GitHub's API with these repositories; the only token is `token`."""

    def __init__(self, token: str, repositories: Sequence[str]) -> None:
        self.token = token
        self.statuses = GithubStatuses(lambda: datetime.now(UTC), frozenset(repositories))
        self._lock = threading.Lock()

    def answer(self, request: HostRequest) -> HostAnswer:
        """Answer a request."""
        if request.headers.get("authorization") != f"Bearer {self.token}":
            return _made(REFUSALS["a-bad-token"].answer)
        content = json.loads(request.body) if request.body else None
        path = urlsplit(request.target).path.lstrip("/")
        with self._lock:
            answered = self.statuses.answer(request.method, path, content)
        return _made(answered or REFUSALS["private-or-gone"].answer)


def _made(answer: Answer) -> HostAnswer:
    status, headers, body = answer
    return HostAnswer(status, body, headers)
