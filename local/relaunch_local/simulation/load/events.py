"""The events of a load: signed deliveries of GitHub, some of them twice, uploads and requests, all at one moment."""

import hashlib
import hmac
from collections import Counter
from typing import Any

from relaunch.adapters.github.signature import SecretRing
from relaunch.core.triggers.events import DirectRequest
from relaunch.usecases.submit_job import submit_direct
from relaunch_local.simulation.aws.account import Cloud
from relaunch_local.simulation.scenario import PlannedEvent
from relaunch_local.simulation.workload import Outside, push_payload

_SECRET = "the secret of the load's webhook"  # noqa: S105 - of a repository that does not exist
# Callers back off as AWS advises: exponentially, with jitter.
_FIRST_BACKOFF_SECONDS = 4.0
_LONGEST_BACKOFF_SECONDS = 120.0


class LoadEvents(Outside):
    """Sends them. What the webhook does not answer 202 a script of the owner's delivers again within seconds."""

    redelivered_after_seconds = (1.0, 10.0)

    def __init__(self, cloud: Cloud) -> None:
        """Plan everything on the clock."""
        self.deliveries = 0
        self.repeated = 0
        self._asked: Counter[PlannedEvent] = Counter()
        self._secrets = SecretRing(lambda _stage: _SECRET, lambda: cloud.clock.now().timestamp())
        super().__init__(cloud)

    def _push(self, event: PlannedEvent) -> None:
        """Deliver a push; one in ten is delivered again, one in twenty comes through a second webhook too."""
        payload, delivery = push_payload(event), f"delivery-{event.token[:16]}"
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
        """Ask for a job and wait for the answer, as callers do; without one the same is asked again, ever later."""
        cloud = self.cloud
        direct = DirectRequest(f"api:key:{event.token}", event.definition, {}, "job_api", cloud.clock.now())

        def on_end(_answer: Any, error: BaseException | None) -> None:
            if error is None:
                self._accept(event)
            else:
                self._asked[event] += 1
                longest = min(_FIRST_BACKOFF_SECONDS * 2 ** self._asked[event], _LONGEST_BACKOFF_SECONDS)
                self._at(self._dice.uniform(0.0, longest), lambda: self._request(event))

        cloud.lambdas.call("job_api", lambda: submit_direct(direct, cloud.deps), on_end)

    def _sign(self, payload: str) -> str:
        return hmac.new(_SECRET.encode(), payload.encode(), hashlib.sha256).hexdigest()

    def _has_signed(self, body: bytes, digest: bytes) -> bool:
        return self._secrets.has_signed(body, digest)
