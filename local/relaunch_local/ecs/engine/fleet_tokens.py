"""CreateFleet's client tokens: one effect per token and region ("Ensuring idempotency", Amazon EC2 API Reference)."""

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from relaunch_local.ecs.clock import Clock
from relaunch_local.ecs.engine.model import JsonObject
from relaunch_local.ecs.errors import EcsError


@dataclass(frozen=True, slots=True)
class _Use:
    fingerprint: str
    answer: JsonObject
    expires_at: datetime


@dataclass(slots=True)
class FleetTokens:
    """The client tokens that have not expired, with the answers: those without an instance are replayed too."""

    clock: Clock
    lifetime: timedelta
    _uses: dict[str, _Use] = field(default_factory=dict)

    def replay(self, request: JsonObject) -> JsonObject | None:
        """Return the answer to the same request, or None if its token is new or has expired.

        Raises:
            EcsError: IdempotentParameterMismatch: the token was used with other parameters.
        """
        use = self._uses.get(request.get("ClientToken", ""))
        if use is None or use.expires_at <= self.clock.now():
            return None
        if use.fingerprint != _fingerprint(request):
            message = "The parameters of the request do not match those of the first one with its client token."
            raise EcsError("IdempotentParameterMismatch", message)
        return use.answer

    def remember(self, request: JsonObject, answer: JsonObject) -> None:
        """Store the answer to a request with a client token."""
        now = self.clock.now()
        self._uses = {token: use for token, use in self._uses.items() if use.expires_at > now}
        if "ClientToken" in request:
            self._uses[request["ClientToken"]] = _Use(_fingerprint(request), answer, now + self.lifetime)


def _fingerprint(request: JsonObject) -> str:
    return json.dumps(request, sort_keys=True, default=str)
