"""A function's call of AWS: it takes time, other functions run meanwhile, and it may fail.

A client sends a call up to as often as its configuration says (sdk_retries.py). Each send may fail by itself, before or
after it took effect.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeVar

from botocore.config import Config
from botocore.exceptions import ReadTimeoutError

from relaunch.adapters.aws.client_config import CLIENT_CONFIG
from relaunch.adapters.aws.errors import AwsError
from relaunch_local.simulation.aws.outages import HOLDS_UP_NOTHING
from relaunch_local.simulation.aws.runtime import Invocation, Runtime
from relaunch_local.simulation.aws.sdk_retries import SdkRetries
from relaunch_local.simulation.chance import Chance

T = TypeVar("T")

# The probability of each fault per call.
_FAULTS: tuple[tuple[str, float], ...] = (
    ("call-refused", 0.012),
    ("call-throttled", 0.012),
    ("call-unanswered", 0.008),
    ("call-answer-lost", 0.016),
    ("call-answer-late", 0.006),
)
_BEFORE_EFFECT = frozenset({"call-refused", "call-throttled", "call-unanswered", "call-denied"})
_ANY_FAULT = sum(share for _, share in _FAULTS)
# Whatever kept a send from its answer often keeps the next one from it too: a third of such calls fail in the end.
_FAULT_AFTER_FAULT = 0.6
# A function may stall at any moment, because its virtual machine or its network does. These calls are where it
# matters most: between the call and what follows from it.
_STALLS = {"ecs:run_task": 0.08, "dynamodb:save_job": 0.0005}
_LONGEST_STALL_SECONDS = 58.0


@dataclass(frozen=True, slots=True)
class CallErrors:
    """The exceptions that botocore raises for a send that failed in one of these ways."""

    refused: Callable[[str], Exception]
    throttled: Callable[[str], Exception]
    unanswered: Callable[[str], Exception]
    disconnected: Callable[[str], Exception]
    denied: Callable[[str], Exception]


@dataclass(slots=True)
class Calls:
    """Makes calls."""

    runtime: Runtime
    chance: Chance
    outage: Callable[[str], str] = lambda _service: ""
    """Returns the fault that every call of a service meets now, empty if the service is there."""
    on_stall: Callable[[Literal["before", "after"]], None] = lambda _side: None
    """Called when a function stalls, with the side of its call's effect on which it does so."""
    failed_at: dict[str, list[datetime]] = field(default_factory=lambda: defaultdict(list))
    """When the calls of each action failed for good."""
    _retries: dict[tuple[str, int, str], SdkRetries] = field(default_factory=dict)

    def perform(
        self, service: str, action: str, effect: Callable[[], T], errors: CallErrors, config: Config = CLIENT_CONFIG
    ) -> T:
        """Perform a call, possibly late, repeatedly or not at all, and return its answer."""
        invocation = self.runtime.current
        if invocation is None:
            return effect()
        name = f"{service}:{action}"
        retries = self._retries_of(service, config)
        context = dict[str, Any]()
        faults: list[str] = []
        for sends in itertools.count(1):
            share = _FAULT_AFTER_FAULT if any(faults) else _ANY_FAULT * self.chance.intensity
            faults.append(self.outage(service) or self._choose(invocation, name, share))
            try:
                answer = self.send(service, action, effect, errors, faults[-1], is_first=sends == 1)
            except AwsError as error:
                if isinstance(error, ReadTimeoutError):
                    self.runtime.pause(retries.read_timeout, f"{name} is waited for")
                seconds = retries.pause_after(error, sends, context)
                if seconds is None:
                    # What excuses a function that did less than it was to do.
                    invocation.failed_calls += service not in HOLDS_UP_NOTHING
                    self.failed_at[name].append(self.runtime.clock.now())
                    raise
                self.chance.note_organic("call-repeated-by-sdk")
                self.runtime.pause(seconds, f"{name} is sent again by the SDK")
            else:
                retries.note_success(context)
                return answer
        raise AssertionError("the last send returns or raises")

    def send(
        self, service: str, action: str, effect: Callable[[], T], errors: CallErrors, fault: str, *, is_first: bool
    ) -> T:
        """Send a call once, with this fault, if any."""
        name = f"{service}:{action}"
        before, after = self._stall(name) if is_first and not fault else (0.0, 0.0)
        self.runtime.pause(self._latency(service) + before, f"{name} is sent")
        if fault in _BEFORE_EFFECT:
            raise _error_of(fault, errors)(name)
        try:
            answer = effect()
        finally:
            self.runtime.pause(self._latency(service) + after, f"{name} took effect")
        if fault:
            raise _error_of(fault, errors)(name)
        return answer

    def fail_by_chance(self, service: str, action: str, share: float, errors: CallErrors) -> None:
        """Fail a call for good that is made at once otherwise; it draws from a stream of its own, and moves no other.

        Raises:
            ClientError: it failed.
        """
        invocation = self.runtime.current
        name = f"{service}:{action}"
        note = f"{invocation.function}#{invocation.number}" if invocation is not None else ""
        if invocation is None or not self.chance.strikes("call-refused", share, site=name, note=note):
            return
        invocation.failed_calls += 1
        self.failed_at[name].append(self.runtime.clock.now())
        raise errors.refused(name)

    def _retries_of(self, service: str, config: Config) -> SdkRetries:
        key = (service, id(config), self.chance.apart())
        if key not in self._retries:
            self._retries[key] = SdkRetries(service, config, self.chance.stream("sdk-retries").random)
        return self._retries[key]

    def _choose(self, invocation: Invocation, name: str, share: float) -> str:
        if self.chance.is_calm:
            return ""
        draw = self.chance.stream(f"calls/{invocation.function}").random()
        if draw >= share:
            return ""
        draw *= _ANY_FAULT / share
        for kind, share_of_kind in _FAULTS:
            if draw < share_of_kind:
                note = f"{invocation.function}#{invocation.number} {name}"
                struck = self.chance.strikes(kind, 2.0, site=f"{invocation.function}/{name}", note=note)
                return kind if struck else ""
            draw -= share_of_kind
        return ""

    def _stall(self, name: str) -> tuple[float, float]:
        """Return how long the function stalls before and after the call takes effect."""
        invocation = self.runtime.current
        share = _STALLS.get(name, 0.0)
        if not share or invocation is None or self.chance.is_calm:
            return 0.0, 0.0
        note = f"{invocation.function}#{invocation.number}"
        if not self.chance.strikes("function-stalled", share, site=f"{invocation.function}/{name}", note=note):
            return 0.0, 0.0
        stream = self.chance.stream("stalls")
        seconds = stream.uniform(2.0, _LONGEST_STALL_SECONDS)
        is_before = stream.random() < 0.5
        self.on_stall("before" if is_before else "after")
        return (seconds, 0.0) if is_before else (0.0, max(seconds, _LONGEST_STALL_SECONDS - 10.0))

    def _latency(self, service: str) -> float:
        return self.chance.stream(f"latency/{service}").uniform(0.002, 0.06)


def _error_of(fault: str, errors: CallErrors) -> Callable[[str], Exception]:
    return {
        "call-refused": errors.refused,
        "call-throttled": errors.throttled,
        "call-answer-lost": errors.disconnected,
        "call-denied": errors.denied,
    }.get(fault, errors.unanswered)
