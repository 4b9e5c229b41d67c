"""A function's call of AWS: it takes time, other functions run meanwhile, and it may fail."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from botocore.exceptions import ClientError

from relaunch.adapters.aws.errors import is_throttled
from relaunch_local.simulation.aws.runtime import Runtime
from relaunch_local.simulation.faults.chance import Chance

T = TypeVar("T")

# The probability of each fault per call.
_FAULTS: tuple[tuple[str, float], ...] = (
    ("call-refused", 0.008),
    ("call-throttled", 0.008),
    ("call-unanswered", 0.006),
    ("call-answer-lost", 0.012),
    ("call-answer-late", 0.004),
    ("call-repeated-by-sdk", 0.008),
)
_SLOW = frozenset({"call-unanswered", "call-answer-late", "call-repeated-by-sdk"})
_ANY_FAULT = sum(share for _, share in _FAULTS)
# A function may stall at any moment, because its virtual machine or its network does. These calls are where it
# matters most: between the call and what follows from it.
_STALLS = {"ecs:run_task": 0.08, "dynamodb:save_job": 0.0005}
_LONGEST_STALL_SECONDS = 58.0
# A client that never repeats what is not answered.
_NOT_REPEATED = frozenset({"ec2:create_fleet"})
# The read time-out of the application's clients.
_READ_TIMEOUT_SECONDS = 8.0


@dataclass(frozen=True, slots=True)
class CallErrors:
    """The exceptions that a client raises for a call that failed in one of these ways."""

    refused: Callable[[str], Exception]
    throttled: Callable[[str], Exception]
    unanswered: Callable[[str], Exception]


@dataclass(slots=True)
class Calls:
    """Makes calls."""

    runtime: Runtime
    chance: Chance
    on_stall: Callable[[bool], None] = lambda _is_before: None
    """Called when a function stalls, with whether it does so before its call takes effect."""

    def perform(self, service: str, action: str, effect: Callable[[], T], errors: CallErrors) -> T:
        """Perform a call, possibly late, twice or not at all, and return its answer."""
        invocation = self.runtime.current
        if invocation is None:
            return effect()
        name = f"{service}:{action}"
        fault = self._choose(name)
        before, after = (0.0, 0.0) if fault else self._stall(name)
        self.runtime.pause(self._latency(service) + before, f"{name} is sent")
        if fault in ("call-refused", "call-throttled", "call-unanswered"):
            raise self._fail(fault, name, errors)
        try:
            answer = effect()
            if fault == "call-repeated-by-sdk" and name not in _NOT_REPEATED:
                self.runtime.pause(_READ_TIMEOUT_SECONDS, f"{name} is sent again by the SDK")
                answer = effect()
        except ClientError as error:
            if is_throttled(error):
                # Not by a fault of this call: others use up the rate limit.
                invocation.disturb(wholly=False)
            raise
        finally:
            self.runtime.pause(self._latency(service) + after, f"{name} took effect")
        if fault in ("call-answer-lost", "call-answer-late"):
            raise self._fail(fault, name, errors)
        return answer

    def _choose(self, name: str) -> str:
        invocation = self.runtime.current
        if invocation is None or self.chance.is_calm or not invocation.may_be_disturbed(wholly=False):
            return ""
        draw = self.chance.stream(f"calls/{invocation.function}").random()
        if draw >= _ANY_FAULT * self.chance.intensity:
            return ""
        draw /= self.chance.intensity
        for kind, share in _FAULTS:
            if draw < share:
                note = f"{invocation.function}#{invocation.number} {name}"
                # A slow call may time out the whole batch.
                wholly = kind in _SLOW
                if not invocation.may_be_disturbed(wholly=wholly):
                    return ""
                if self.chance.strikes(kind, 2.0, site=f"{invocation.function}/{name}", note=note):
                    invocation.disturb(wholly=wholly)
                    return kind
                return ""
            draw -= share
        return ""

    def _stall(self, name: str) -> tuple[float, float]:
        """Return how long the function stalls before and after the call takes effect."""
        invocation = self.runtime.current
        share = _STALLS.get(name, 0.0)
        if not share or invocation is None or self.chance.is_calm or not invocation.may_be_disturbed(wholly=True):
            return 0.0, 0.0
        note = f"{invocation.function}#{invocation.number}"
        if not self.chance.strikes("function-stalled", share, site=f"{invocation.function}/{name}", note=note):
            return 0.0, 0.0
        invocation.disturb(wholly=True)
        stream = self.chance.stream("stalls")
        seconds = stream.uniform(2.0, _LONGEST_STALL_SECONDS)
        is_before = stream.random() < 0.5
        self.on_stall(is_before)
        return (seconds, 0.0) if is_before else (0.0, max(seconds, _LONGEST_STALL_SECONDS - 10.0))

    def _fail(self, fault: str, name: str, errors: CallErrors) -> Exception:
        if fault == "call-refused":
            return errors.refused(name)
        if fault == "call-throttled":
            return errors.throttled(name)
        if fault in ("call-unanswered", "call-answer-late"):
            self.runtime.pause(_READ_TIMEOUT_SECONDS * 3, f"{name} is waited for")
        return errors.unanswered(name)

    def _latency(self, service: str) -> float:
        return self.chance.stream(f"latency/{service}").uniform(0.002, 0.06)
