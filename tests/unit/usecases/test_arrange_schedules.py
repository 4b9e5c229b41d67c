"""Schedules around the registration of definitions, also when calls fail and others apply at the same time."""

from collections.abc import Callable

import pytest

from fakes.builders import make_definition
from fakes.schedules import FakeSchedules
from relaunch.core.definitions.definition import JobDefinition, ScheduleTrigger
from relaunch.ports import PermanentError, TransientError
from relaunch.usecases.arrange_schedules import add_schedules, are_left_behind, plan_schedules, settle_schedules
from relaunch_local.in_memory.definitions import InMemoryDefinitions


def every(hours: int) -> JobDefinition:
    return make_definition(name=f"every-{hours}", triggers=(ScheduleTrigger(f"rate({hours} hours)"),))


def stored(*definitions: JobDefinition) -> InMemoryDefinitions:
    store = InMemoryDefinitions()
    for definition in definitions:
        store.save_definition(definition)
    return store


def expressions(schedules: FakeSchedules) -> set[str]:
    return {each.schedule.expression for each in schedules.list_schedules()}


def fail(error: Exception) -> Callable[[], None]:
    def on_change() -> None:
        raise error

    return on_change


def no_pause(_seconds: float) -> None:
    raise AssertionError("nothing failed")


def test_schedules_are_added_before_and_removed_after_the_registration() -> None:
    schedules = FakeSchedules()
    settle_schedules(stored(every(2), every(3)), schedules, no_pause)

    add_schedules([every(3), every(4)], schedules, no_pause)
    assert expressions(schedules) == {"rate(2 hours)", "rate(3 hours)", "rate(4 hours)"}
    settle_schedules(stored(every(3), every(4)), schedules, no_pause)

    assert expressions(schedules) == {"rate(3 hours)", "rate(4 hours)"}
    assert plan_schedules([every(3), every(4)], schedules) == ()


def test_what_fails_for_a_moment_is_repeated_and_a_refusal_is_not() -> None:
    schedules = FakeSchedules(on_change=[fail(TransientError("throttled"))])
    pauses: list[float] = []
    settle_schedules(stored(every(2)), schedules, pauses.append)
    assert expressions(schedules) == {"rate(2 hours)"}

    schedules.on_change = [fail(PermanentError("refused"))]
    with pytest.raises(PermanentError, match="refused"):
        add_schedules([every(5)], schedules, no_pause)


def test_a_definition_that_another_one_registers_meanwhile_has_its_schedule() -> None:
    schedules = FakeSchedules()
    store = stored(every(2))
    settle_schedules(store, schedules, no_pause)
    add_schedules([every(2), every(3)], schedules, no_pause)  # by the other one, who registers during our removal
    schedules.on_change = [lambda: store.save_definition(every(3))]

    pauses: list[float] = []
    settle_schedules(store, schedules, pauses.append)

    assert expressions(schedules) == {"rate(2 hours)", "rate(3 hours)"}


def test_a_stack_without_a_group_needs_none() -> None:
    assert plan_schedules([every(2)], FakeSchedules(takes_schedules=False)) == ()


@pytest.mark.parametrize(
    ("error", "noted"),
    [
        (
            TransientError("no answer"),
            ["no answer; what an `apply` that was cut short left there stays until the next one"],
        ),
        (PermanentError("not authorized"), []),
    ],
)
def test_schedules_that_cannot_be_read_are_not_left_behind(error: Exception, noted: list[str]) -> None:
    schedules = FakeSchedules()
    schedules.list_schedules = fail(error)  # type: ignore[assignment,method-assign]
    notes: list[str] = []

    assert not are_left_behind(schedules, notes.append)
    assert notes == noted


def test_schedules_are_left_behind_by_an_apply_that_was_cut_short_in_a_stack_that_takes_some() -> None:
    schedules = FakeSchedules()
    add_schedules([every(2)], schedules, no_pause)

    assert are_left_behind(schedules, no_note)
    schedules.takes_schedules = False
    assert not are_left_behind(schedules, no_note)
    assert not are_left_behind(FakeSchedules(), no_note)


def no_note(line: str) -> None:
    raise AssertionError(line)
