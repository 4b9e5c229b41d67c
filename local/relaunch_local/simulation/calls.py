"""A call of AWS as a function makes it: it takes time, others run meanwhile, and it may fail in every known way."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.runtime import Runtime

T = TypeVar("T")

# Of a hundred calls so many fail in each way.
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
# The read time-out of our clients, and how often the SDK tries.
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

    def perform(self, service: str, action: str, effect: Callable[[], T], errors: CallErrors) -> T:
        """Let a call take effect, sooner or later, once, twice or not at all; return what is answered."""
        if self.runtime.current is None:
            return effect()
        name = f"{service}:{action}"
        fault = self._choose(name)
        self.runtime.pause(self._latency(service), f"{name} is sent")
        if fault in ("call-refused", "call-throttled", "call-unanswered"):
            raise self._fail(fault, name, errors)
        try:
            answer = effect()
            if fault == "call-repeated-by-sdk":
                self.runtime.pause(_READ_TIMEOUT_SECONDS, f"{name} is sent again by the SDK")
                answer = effect()
        finally:
            self.runtime.pause(self._latency(service), f"{name} took effect")
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
                # What takes long may cost the whole batch its time.
                wholly = kind in _SLOW
                if not invocation.may_be_disturbed(wholly=wholly):
                    return ""
                if self.chance.strikes(kind, 2.0, site=f"{invocation.function}/{name}", note=note):
                    invocation.disturb(wholly=wholly)
                    return kind
                return ""
            draw -= share
        return ""

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
