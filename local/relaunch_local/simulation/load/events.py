"""The events of a load: signed GitHub deliveries, some of them twice, uploads and requests, all at the same time."""

import hashlib
import hmac
import json
from collections import Counter
from typing import Any

from relaunch.adapters.github.signature import SecretRing
from relaunch.core.triggers.events import DirectRequest
from relaunch.usecases.submit_job import submit_direct
from relaunch_local.simulation.account import SimulatedAccount
from relaunch_local.simulation.deliveries import payload_of
from relaunch_local.simulation.load.account import TooManyRequestsError
from relaunch_local.simulation.scenario import PlannedEvent
from relaunch_local.simulation.workload import Workload

_SECRET = "the secret of the load's webhook"  # noqa: S105 - of a repository that does not exist
# Callers back off as AWS advises: exponentially, with jitter.
_FIRST_BACKOFF_SECONDS = 4.0
_LONGEST_BACKOFF_SECONDS = 120.0


class LoadEvents(Workload):
    """Sends the events. A delivery without a 202 is redelivered within seconds."""

    redelivered_after_seconds = (1.0, 10.0)
    share_with_token = 0.0

    def __init__(self, account: SimulatedAccount) -> None:
        """Schedule every event."""
        self.deliveries = 0
        self.repeated = 0
        self._requests: Counter[PlannedEvent] = Counter()
        super().__init__(account)

    def _push(self, event: PlannedEvent) -> None:
        """Deliver a push; one in ten is delivered again, one in twenty comes through a second webhook too."""
        payload = json.dumps(payload_of(event, {}))
        delivery = f"delivery-{event.token[:16]}"
        self._deliver(event, payload, delivery, "hook-1")
        chance = self._dice.random()
        if chance < 0.10:
            self._repeat(event, payload, delivery, "hook-1")
        elif chance < 0.15:
            self._repeat(event, payload, f"other-{event.token[:16]}", "hook-2")

    def _repeat(self, *delivery: Any) -> None:
        self.repeated += 1
        self._at(self._dice.uniform(0.0, 60.0), lambda: self._deliver(*delivery))

    def _deliver(self, event: PlannedEvent, payload: str, delivery: str, hook: str) -> None:
        self.deliveries += 1
        super()._deliver(event, payload, delivery, hook)

    def _request(self, event: PlannedEvent) -> None:
        """Request a job, and retry with backoff until there is an answer."""
        account = self.account
        direct = DirectRequest(f"api:key:{event.token}", event.definition, {}, "job_api", account.clock.now())

        def on_end(_answer: Any, error: BaseException | None) -> None:
            if error is None:
                self._accept(event)
            else:
                self._requests[event] += 1
                longest = min(_FIRST_BACKOFF_SECONDS * 2 ** self._requests[event], _LONGEST_BACKOFF_SECONDS)
                self._at(self._dice.uniform(0.0, longest), lambda: self._request(event))

        account.lambdas.call("job_api", lambda: submit_direct(direct, account.deps), on_end)

    def expect(self, function: str, error: BaseException) -> None:
        """Let Lambda refuse an invocation, too; the event comes again."""
        if not isinstance(error, TooManyRequestsError):
            super().expect(function, error)

    def _sign(self, payload: str) -> str:
        return hmac.new(_SECRET.encode(), payload.encode(), hashlib.sha256).hexdigest()

    def _make_secrets(self) -> SecretRing:
        return SecretRing(lambda _stage: (_SECRET, 0.0), lambda: self.account.clock.now().timestamp(), 0.0)
