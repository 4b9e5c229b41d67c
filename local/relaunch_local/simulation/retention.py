"""Time to live: DynamoDB deletes each expired item by itself, in no order, within days; in runs over its real adapter.

What has a short life expires during the run. At its end everything that expires at some time is deleted in part, as if
three months had passed, and then in full; each time late events come, and people ask for what is gone.
"""

from collections import deque
from datetime import timedelta
from typing import Any

from relaunch.entrypoints.job_api import answer_request
from relaunch_local.ecs import Event
from relaunch_local.simulation.account import SimulatedAccount

_HOUR = 3_600.0
# Of the items that have expired: how many are deleted within an hour.
_HOURLY_SHARE = 0.3
_HALF = 0.5
# Longer than anything is kept.
_LATER = timedelta(days=100)
_LATE_EVENTS = 60
_UNTIL_QUIET_SECONDS = 1_800.0


class Retention:
    """Deletes what has expired, and checks that nobody minds."""

    def __init__(self, account: SimulatedAccount) -> None:
        """Delete hourly from now on, if the table is an emulated one."""
        self._account = account
        self._dice = account.chance.stream("retention")
        self._events: deque[Event] = deque(maxlen=_LATE_EVENTS)
        if account.emulated is not None:
            account.simulator.subscribe(self._events.append)
            account.clock.call_later(_HOUR, self._tick)

    def _tick(self) -> None:
        account = self._account
        account.clock.call_later(_HOUR, self._tick)
        self._delete(timedelta(0), _HOURLY_SHARE)

    def _delete(self, after: timedelta, share: float) -> None:
        if self._account.emulated is not None:
            at = self._account.clock.now() + after
            self._account.emulated.delete_expired(at, lambda: self._dice.random() < share)

    def check_end(self) -> None:
        """Check that what is gone in part, and in full, starts nothing and is answered for."""
        account = self._account
        if account.emulated is None:
            return
        for share in (_HALF, 1.0):
            self._delete(_LATER, share)
            dead_letters = len(account.queues.dead_letters)
            tasks = sum(map(len, account.invariants.tasks.values()))
            for event in tuple(self._events):
                account.bus.publish(event)
            for job_id in account.invariants.jobs:
                self._ask({"action": "show", "job_id": job_id})
                self._ask({"action": "cancel", "job_id": job_id, "reason": "it is gone"})
            account.clock.advance(_UNTIL_QUIET_SECONDS)
            started = sum(map(len, account.invariants.tasks.values())) - tasks
            failed = account.queues.dead_letters[dead_letters:]
            account.invariants.check("what has expired starts nothing", not started, f"{started} tasks")
            message = "; ".join(each.cause for each in failed[:3])
            account.invariants.check("late events of what has expired are handled", not failed, message)

    def _ask(self, request: dict[str, str]) -> None:
        account = self._account

        def on_end(answer: Any, error: BaseException | None) -> None:
            is_answered = error is None and ("job" in answer or answer["error"]["code"] == "UnknownJob")
            account.invariants.check("what has expired is answered for", is_answered, f"{request}: {error or answer}")

        account.lambdas.call("job_api", lambda: answer_request(request, "", account.deps), on_end)
