"""RunTask's client tokens: one effect per token and cluster ("Ensuring idempotency", ECS API Reference)."""

import heapq
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from relaunch_local.ecs.clock import Clock
from relaunch_local.ecs.engine.model import JsonObject
from relaunch_local.ecs.errors import EcsError

TokenKey = tuple[str, str]
"""The cluster's ARN and the token."""

MAX_LIFETIME = timedelta(hours=24)
LIFETIME_AFTER_STOP = timedelta(hours=1)
"""A token expires after 24 hours, or an hour after its tasks have stopped, whichever comes first."""


@dataclass(slots=True)
class _Use:
    fingerprint: str
    response: JsonObject
    task_arns: list[str]
    live_tasks: int
    expires_at: datetime


@dataclass(slots=True)
class ClientTokens:
    """The client tokens of a region that have not expired."""

    _clock: Clock
    _uses: dict[TokenKey, _Use] = field(default_factory=dict)
    _expiries: list[tuple[datetime, TokenKey]] = field(default_factory=list)

    def __len__(self) -> int:
        """Return the number of stored tokens."""
        return len(self._uses)

    def replay(self, key: TokenKey, request: JsonObject) -> JsonObject | None:
        """Return the stored response to the same request, or None if the token is new or has expired.

        Raises:
            EcsError: ConflictException: the token was used with other parameters.
        """
        self._purge()
        use = self._uses.get(key)
        if use is None:
            return None
        if use.fingerprint != _fingerprint(request):
            message = "The clientToken was already used with different parameters."
            raise EcsError("ConflictException", message, resourceIds=list(use.task_arns))
        return use.response

    def remember(self, key: TokenKey, request: JsonObject, response: JsonObject) -> None:
        """Store the response for retries; failures are replayed too."""
        now = self._clock.now()
        arns = [task["taskArn"] for task in response["tasks"]]
        expires_at = now + (MAX_LIFETIME if arns else LIFETIME_AFTER_STOP)
        self._uses[key] = _Use(_fingerprint(request), response, arns, len(arns), expires_at)
        heapq.heappush(self._expiries, (expires_at, key))

    def note_stop(self, key: TokenKey) -> None:
        """Shorten the token's lifetime once all its tasks have stopped."""
        use = self._uses.get(key)
        if use is None:
            return
        use.live_tasks -= 1
        if use.live_tasks == 0:
            use.expires_at = min(use.expires_at, self._clock.now() + LIFETIME_AFTER_STOP)
            heapq.heappush(self._expiries, (use.expires_at, key))

    def _purge(self) -> None:
        now = self._clock.now()
        while self._expiries and self._expiries[0][0] <= now:
            _, key = heapq.heappop(self._expiries)
            use = self._uses.get(key)
            if use is not None and use.expires_at <= now:
                del self._uses[key]


def _fingerprint(request: JsonObject) -> str:
    return json.dumps({**request, "clientToken": None}, sort_keys=True, default=str)
