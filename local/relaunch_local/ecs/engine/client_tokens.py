"""RunTask's client tokens: one effect per token and cluster ("Ensuring idempotency", ECS API Reference)."""

import heapq
import json
from dataclasses import dataclass
from datetime import datetime, timedelta

from relaunch_local.ecs.clock import Clock
from relaunch_local.ecs.engine.model import JsonObject
from relaunch_local.ecs.errors import EcsError

TokenKey = tuple[str, str]
"""The cluster's ARN and the token."""

LONGEST_LIFE = timedelta(hours=24)
LIFE_AFTER_TASK = timedelta(hours=1)
"""A token lives for 24 hours, or for an hour after its tasks have stopped, whichever is shorter."""


@dataclass(slots=True)
class _Use:
    fingerprint: str
    response: JsonObject
    task_arns: list[str]
    live_tasks: int
    created_at: datetime
    expires_at: datetime


class ClientTokens:
    """The tokens in use."""

    def __init__(self, clock: Clock) -> None:
        """Start with none."""
        self._clock = clock
        self._uses: dict[TokenKey, _Use] = {}
        self._expiries: list[tuple[datetime, TokenKey]] = []

    def __len__(self) -> int:
        """How many tokens are remembered."""
        return len(self._uses)

    def replay(self, key: TokenKey, request: JsonObject) -> JsonObject | None:
        """The first answer to the same request, or None when the token is new or its life is over.

        Raises:
            EcsError: ConflictException, when the token came with other parameters.
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
        """Keep the answer for retries; failures are replayed as well."""
        now = self._clock.now()
        arns = [task["taskArn"] for task in response["tasks"]]
        expires_at = now + (LONGEST_LIFE if arns else LIFE_AFTER_TASK)
        self._uses[key] = _Use(_fingerprint(request), response, arns, len(arns), now, expires_at)
        heapq.heappush(self._expiries, (expires_at, key))

    def note_stop(self, key: TokenKey) -> None:
        """Shorten the token's life once all its tasks have stopped."""
        use = self._uses.get(key)
        if use is None:
            return
        use.live_tasks -= 1
        if use.live_tasks == 0:
            use.expires_at = min(use.expires_at, self._clock.now() + LIFE_AFTER_TASK)
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
