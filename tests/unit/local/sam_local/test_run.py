from typing import Any, cast

import pytest

from fakes.clock import FakeClock
from relaunch_local.sam_local.run import Result, run_samples
from relaunch_local.sam_local.scene import Outcome, Scene, expect, expect_handled
from relaunch_local.sam_local.stage import Stage, StageError

HANDLED = {"batchItemFailures": []}
SAMPLE, FUNCTION = "sqs.attempts.launch-request", "LaunchAttemptFunction"
JOB = {"resnet-1f2e3d4c": "resnet-00000001"}


class _Dependencies:
    clock = FakeClock()


class FakeStage:
    """A table that the function may write to."""

    deps = _Dependencies()

    def __init__(self) -> None:
        self.items: dict[str, str] = {}
        self.letters: dict[str, int] = {}

    def table(self) -> dict[str, str]:
        return dict(self.items)

    def dead_letters(self) -> dict[str, int]:
        return dict(self.letters)


class FakeFunctions:
    """Answers every invocation the same, writes an item and dead-letters the message if it is told to."""

    def __init__(self, stage: FakeStage, answer: Any = None, *, writes: bool = False, refuses: bool = False) -> None:
        self.stage, self.answer, self.writes = stage, HANDLED if answer is None else answer, writes
        self.refuses = refuses
        self.payloads: list[bytes] = []

    def invoke(self, function: str, payload: bytes) -> tuple[Any, str]:
        assert function == FUNCTION
        self.payloads.append(payload)
        if self.writes:
            self.stage.items["JOB#1"] = "LAUNCHING"
        if self.refuses:
            self.stage.letters["AttemptsDeadLetterQueue"] = 1
        return self.answer, "what the function logged"


def handled(_stage: Stage) -> Scene:
    answer = yield JOB
    expect_handled(answer)
    return "it was handled"


def impossible(_stage: Stage) -> Scene:
    raise StageError("no machine in time")
    yield JOB


def of_another_form(_stage: Stage) -> Scene:
    answer = yield JOB
    expect("the state", answer["job"]["state"], "RUNNING")
    return "it is shown"


def run(functions: FakeFunctions, outcome: Outcome) -> Result:
    reported: list[Result] = []
    stage = cast("Stage", functions.stage)
    results = run_samples(functions, stage, {SAMPLE: FUNCTION}, {SAMPLE: (outcome,)}, reported.append)
    assert results == reported
    return results[0]


def test_a_sample_is_invoked_about_what_is_there_and_its_effect_is_told() -> None:
    functions = FakeFunctions(FakeStage())

    result = run(functions, Outcome("handled", handled))

    assert (result.has_failed, result.what) == (False, "it was handled")
    assert b"resnet-00000001" in functions.payloads[0]


@pytest.mark.parametrize(
    ("answer", "scene", "what"),
    [
        ({"batchItemFailures": [{"itemIdentifier": "1"}]}, handled, "the answer: {'batchItemFailures'"),
        ({"errorType": "ImportError", "errorMessage": "no module"}, handled, "no module"),
        (None, impossible, "no machine in time"),
        ({"error": {"code": "UnknownJob"}}, of_another_form, "KeyError: 'job'; the function answered {\"error\""),
    ],
)
def test_another_answer_or_nothing_to_be_about_is_a_failure_in_words(answer: Any, scene: Any, what: str) -> None:
    result = run(FakeFunctions(FakeStage(), answer), Outcome("handled", scene))

    assert result.has_failed
    assert what in result.what
    assert result.log == ("" if scene is impossible else "what the function logged")


def test_what_must_change_nothing_fails_if_an_item_is_changed() -> None:
    result = run(FakeFunctions(FakeStage(), writes=True), Outcome("ignored", handled, changes_nothing=True))

    assert result.has_failed
    assert "JOB#1" in result.what
    assert not run(FakeFunctions(FakeStage(), writes=True), Outcome("saved", handled)).has_failed


def test_a_message_that_is_dead_lettered_was_not_handled_whatever_the_answer_says() -> None:
    result = run(FakeFunctions(FakeStage(), refuses=True), Outcome("handled", handled))

    assert result.has_failed
    assert "AttemptsDeadLetterQueue" in result.what


def test_what_must_be_logged_fails_if_it_is_not() -> None:
    functions = FakeFunctions(FakeStage())

    assert run(functions, Outcome("ignored", handled, logged="means nothing")).has_failed
    assert not run(functions, Outcome("ignored", handled, logged="the function logged")).has_failed


def test_a_sample_without_a_row_and_a_row_without_a_sample_are_failures() -> None:
    functions = FakeFunctions(FakeStage())
    stage = cast("Stage", functions.stage)

    results = run_samples(functions, stage, {"new": FUNCTION}, {"old": (Outcome("", handled),)}, lambda _: None)

    assert [(each.sample, each.has_failed) for each in results] == [("old", True), ("new", True)]
    assert functions.payloads == []
