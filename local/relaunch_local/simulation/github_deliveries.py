"""What becomes of deliveries that the webhook did not take: by a person, or with a token by the sweep.

GitHub keeps every attempt, and repeats none by itself. Its API is called over the internet, and may fail as one of AWS.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from relaunch.entrypoints.refresh import SWEEP, answer_schedule
from relaunch.ports import TransientError
from relaunch.ports.deliveries import AttemptPage, DeliveryDependencies
from relaunch_local.in_memory.deliveries import InMemoryDeliveries
from relaunch_local.simulation.authorization import AuthorizedStore
from relaunch_local.simulation.aws.lambda_functions import Context
from relaunch_local.simulation.aws.runtime import FunctionClock
from relaunch_local.simulation.aws.table import CalledStore
from relaunch_local.simulation.github import GithubWebhooks

if TYPE_CHECKING:
    from relaunch_local.simulation.account import SimulatedAccount

T = TypeVar("T")
Check = Callable[[str, bool, str], None]

_FUNCTION = "refresh_offerings"
_PASS_SECONDS = 1_800.0
_TIMEOUT_SECONDS = 10.0
_UNAVAILABLE = 0.06
_ANSWER_LOST = 0.06
# GitHub makes a redelivery within seconds.
_REDELIVERED_AFTER_SECONDS = (0.5, 20.0)
# An attempt that was answered so long ago is listed.
_LISTED = timedelta(minutes=10)


class _CalledGithub:
    """Implements WebhookApi: calls that take time, and of which some fail, before or after they took effect."""

    def __init__(self, account: "SimulatedAccount", github: GithubWebhooks) -> None:
        self._account = account
        self._github = github

    def find_webhooks(self, owner: str) -> Sequence[str]:
        return self._call("find", lambda: self._github.find_webhooks(owner))

    def list_attempts(self, webhook: str, cursor: str) -> AttemptPage:
        return self._call("list", lambda: self._github.list_attempts(webhook, cursor))

    def redeliver(self, webhook: str, attempt_id: int) -> None:
        self._call("redeliver", lambda: self._github.redeliver(webhook, attempt_id))

    def _call(self, name: str, effect: Callable[[], T]) -> T:
        chance = self._account.chance
        runtime = self._account.runtime
        latency = chance.stream("github-latency")
        runtime.pause(latency.uniform(0.05, 0.5), f"github:{name} is sent")
        if chance.strikes("github-unavailable", _UNAVAILABLE, note=name):
            raise TransientError(f"github:{name}: HTTP 503")
        answer = effect()
        runtime.pause(latency.uniform(0.05, 0.5), f"github:{name} took effect")
        if chance.strikes("github-answer-lost", _ANSWER_LOST, note=name):
            runtime.pause(_TIMEOUT_SECONDS, f"github:{name} is waited for")
            raise TransientError(f"github:{name}: no answer")
        return answer


class GithubDeliveries:
    """`github` has every delivery. `has_token`: the sweep asks for those that failed, and no person does."""

    def __init__(self, account: "SimulatedAccount", share_with_token: float) -> None:
        self._account = account
        self.github = GithubWebhooks(account.clock.now, self._redeliver)
        for definition in account.scenario.every_definition:
            for number in (1, 2):
                self.github.add_webhook(f"repos/acme/{definition.name}", number)
        self._again: dict[tuple[str, str], Callable[[], None]] = {}
        self._store = InMemoryDeliveries()
        self.has_token = account.chance.stream("github-token").random() < share_with_token
        if self.has_token:
            account.clock.call_later(account.chance.stream("github-sweep").uniform(0.0, _PASS_SECONDS), self._tick)

    def note_answer(self, webhook: str, guid: str, status_code: int, again: Callable[[], None]) -> None:
        """Note how an attempt was answered, 0 if it was not; `again` makes the next one."""
        self.github.note_attempt(webhook, guid, status_code)
        self._again[webhook, guid] = again

    def check_end(self, check: Check) -> None:
        """Check that nothing that the webhook did not take was left at GitHub."""
        check("what the webhook could not take is delivered again", not self.left(), f"{self.left()}")

    def left(self) -> list[tuple[str, str]]:
        """Return the deliveries that the webhook has not taken yet: webhook and guid."""
        return [key for key in self._again if not self._is_accepted(*key)]

    def _is_accepted(self, webhook: str, guid: str, before: timedelta = timedelta(0)) -> bool:
        until = self._account.clock.now() - before
        attempts = self.github.attempts[webhook]
        return any(each.guid == guid and each.is_accepted and each.delivered_at <= until for each in attempts)

    def _redeliver(self, webhook: str, guid: str) -> None:
        account = self._account
        now = account.clock.now()
        listed = _LISTED + account.outages.time_within(now - timedelta(hours=1), now)
        # A person may have it delivered again although it was taken, and fail.
        attempts = [each for each in self.github.attempts[webhook] if each.guid == guid]
        has_failed_since = not max(attempts, key=lambda each: each.delivered_at).is_accepted
        is_new = has_failed_since or not self._is_accepted(webhook, guid, listed)
        account.invariants.check("nothing is asked for that the webhook has taken", is_new, f"{webhook} {guid}")
        account.chance.note_organic("github-asked-again")
        delay = account.chance.stream("github-redelivery").uniform(*_REDELIVERED_AFTER_SECONDS)
        account.clock.call_later(delay, self._again[webhook, guid])

    def _tick(self) -> None:
        account = self._account
        account.clock.call_later(_PASS_SECONDS, self._tick)
        # A pass that would find nothing is skipped.
        if self.left():
            account.lambdas.call_asynchronously(_FUNCTION, self._sweep)

    def _sweep(self) -> Any:
        account = self._account
        ends_at = account.clock.now() + timedelta(seconds=account.stack.functions[_FUNCTION].timeout_seconds)
        called: Any = CalledStore(self._store, account.calls)
        deliveries: Any = AuthorizedStore("deliveries", called, account.authorization)

        def dependencies() -> DeliveryDependencies:
            return DeliveryDependencies(
                definitions=account.deps.definitions,
                deliveries=deliveries,
                webhooks=_CalledGithub(account, self.github),
                clock=FunctionClock(account.runtime),
                log=account.trace,
                metrics=account.endings,
            )

        def refresh() -> Any:
            raise AssertionError("offerings are not refreshed here")

        context = Context(account.clock, ends_at)
        return answer_schedule(SWEEP, refresh, dependencies, context.get_remaining_time_in_millis)
