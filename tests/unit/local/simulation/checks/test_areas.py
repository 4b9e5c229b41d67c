import pytest

from relaunch.core.jobs.effects import StopTask
from relaunch.ports import TransientError
from relaunch.usecases import cancel_job as cancelling
from relaunch.usecases.advance_job import JobLifecycle
from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.runtime import Invocation, Runtime
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.checks.areas import (
    LEAST_DISTURBED,
    WHY_NOT_ENTERED,
    AreaCounts,
    Areas,
    SeedAreas,
    effects,
    use_cases,
)

USE_CASE = "cancel_job.cancel_job"


class World:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = Clock()
        self.chance = Chance(1, self.clock.now)
        self.runtime = Runtime(self.clock, self.chance, lambda _line: None)
        self.areas = Areas(self.runtime, self.chance)
        self.monkeypatch = monkeypatch

    def run(self, *, calls: bool = False, fault: str = "", error: Exception | None = None) -> SeedAreas:
        """Run the use case in a function, which makes a call, meets a fault, or fails."""

        def cancel(*_arguments: object) -> None:
            if calls:
                self.runtime.pause(1.0, "a call is sent")
            if fault:
                self.chance.strikes(fault, 2.0)
            if error is not None:
                raise error

        # Also where they are imported, use cases are found by what they are.
        self.monkeypatch.setattr(cancelling, "cancel_job", cancel)
        self.monkeypatch.setitem(use_cases(), USE_CASE, cancel)  # type: ignore[arg-type]
        with self.areas.watch():
            self.runtime.start(Invocation(1, "job_api"), lambda: cancelling.cancel_job("", "", None), lambda *_: None)  # type: ignore[arg-type]
            self.clock.advance(10)
        assert cancelling.cancel_job is cancel  # type: ignore[comparison-overlap]
        return self.areas.result()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_a_use_case_is_counted_where_it_is_called(world: World) -> None:
    assert world.run() == SeedAreas(frozenset({USE_CASE}))


def test_one_that_makes_a_call_has_steps(world: World) -> None:
    assert world.run(calls=True).stepped == {USE_CASE}


@pytest.mark.parametrize("fault", ["call-answer-lost", "function-stalled"])
def test_a_fault_of_its_function_is_between_its_steps(world: World, fault: str) -> None:
    assert world.run(calls=True, fault=fault).disturbed == {USE_CASE}


def test_a_fault_of_something_else_is_not(world: World) -> None:
    assert world.run(calls=True, fault="machine-interrupted").disturbed == frozenset()


def test_a_temporary_error_is_a_fault_whatever_it_came_of(world: World) -> None:
    assert world.run(error=TransientError("EC2 is away")).disturbed == {USE_CASE}


def test_every_effect_is_counted_by_its_name(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JobLifecycle, "perform", lambda _lifecycle, _item, _effect: None)
    with world.areas.watch():
        JobLifecycle.perform(None, None, StopTask("task", "not needed"))  # type: ignore[arg-type]

    assert world.areas.entered == {"StopTask"}


def test_what_occurs_too_rarely_or_without_faults_is_named() -> None:
    seeds = 2_000
    counts = AreaCounts()
    names = [name for name in (*use_cases(), *effects()) if name not in WHY_NOT_ENTERED]
    for counter in (counts.entered, counts.stepped, counts.disturbed):
        counter.update(dict.fromkeys(names, seeds))
    assert counts.too_rare(seeds) == []

    counts.entered["StopTask"] = seeds // 100 - 1
    counts.disturbed["CountRun"] = LEAST_DISTURBED - 1
    counts.stepped["TellJobs"] = counts.disturbed["TellJobs"] = 0
    assert counts.too_rare(seeds) == ["StopTask", "CountRun"]


def test_only_use_cases_have_a_reason_not_to_be_entered() -> None:
    assert set(WHY_NOT_ENTERED) <= set(use_cases())
