"""Invokes every sample, and checks what came of it."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from relaunch.ports import PortError
from relaunch_local.sam_local.samples import SampleError, fill_in, read_sample
from relaunch_local.sam_local.scene import Answer, Outcome, UnmetExpectationError, expect
from relaunch_local.sam_local.stage import Stage, StageError

# Answers of another form than expected are failures of the sample, too.
_FAILURES = (
    UnmetExpectationError,
    StageError,
    SampleError,
    PortError,
    ClientError,
    BotoCoreError,
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
)


class Invocable(Protocol):
    """Functions that can be invoked by their logical ids."""

    def invoke(self, function: str, payload: bytes) -> tuple[Answer, str]:
        """Return the answer of a function, and what was logged meanwhile."""
        ...


@dataclass(frozen=True)
class Result:
    """What came of a sample; `log` is what its function logged."""

    sample: str
    function: str
    effect: str
    has_failed: bool
    what: str
    seconds: float
    answer: Answer = None
    log: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "sample": self.sample,
            "function": self.function,
            "effect": self.effect,
            "failed": self.has_failed,
            "what": self.what,
            "seconds": round(self.seconds, 2),
            "answer": self.answer,
            "log": self.log.splitlines(),
        }


def run_samples(
    functions: Invocable,
    stage: Stage,
    samples: Mapping[str, str],
    outcomes: Mapping[str, tuple[Outcome, ...]],
    report: Callable[[Result], None],
) -> list[Result]:
    """Invoke the samples, given with the logical ids of their functions, in the order of the outcomes.

    A sample without an outcome, and an outcome without a sample, are failures.
    """
    results = []
    for sample, expected in outcomes.items():
        for outcome in expected:
            results.append(run_sample(functions, stage, sample, samples.get(sample), outcome))
            report(results[-1])
    for sample in samples.keys() - outcomes.keys():
        what = "no row of the table of outcomes says what must come of it"
        results.append(Result(sample, samples[sample], "unknown", has_failed=True, what=what, seconds=0.0))
        report(results[-1])
    return results


def run_sample(functions: Invocable, stage: Stage, sample: str, function: str | None, outcome: Outcome) -> Result:
    """Invoke one sample, and check what came of it."""
    began = time.monotonic()
    answer = None
    log = ""
    has_failed = True
    what = "events/ has no such sample"
    if function is not None:
        try:
            scene = outcome.scene(stage)
            names = next(scene)
            dead_letters = stage.dead_letters()
            before = stage.table() if outcome.changes_nothing else {}
            payload = fill_in(read_sample(sample), names, stage.deps.clock.now() - outcome.age)
            answer, log = functions.invoke(function, payload.encode())
            expect("dead letters", stage.dead_letters(), dead_letters)
            try:
                scene.send(answer)
            except StopIteration as end:
                has_failed = False
                what = str(end.value)
            if outcome.changes_nothing:
                expect_unchanged(before, stage.table())
            expect(f"that {outcome.logged!r} is logged", outcome.logged in log, expected=True)
        except _FAILURES as error:
            has_failed = True
            what = describe(error, answer)
    return Result(sample, function or "", outcome.effect, has_failed, what, time.monotonic() - began, answer, log)


def expect_unchanged(before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
    """Expect that no item of the table was changed.

    Raises:
        UnmetExpectationError: some were.
    """
    changed = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    if changed:
        raise UnmetExpectationError(f"these items were changed, although nothing may be: {', '.join(changed)}")


def describe(error: Exception, answer: Answer) -> str:
    """Return what is wrong, with what the function answered."""
    kind = "" if isinstance(error, UnmetExpectationError | StageError | SampleError) else f"{type(error).__name__}: "
    return f"{kind}{error}; the function answered {json.dumps(answer)[:500]}"
