"""Jobs that train one after the other are waited for as long as their trainings take, and no longer."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from fakes.builders import make_definition, make_job
from relaunch.core.definitions.accelerator import PurchasePolicy
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState
from relaunch.core.machines.limits import MachineLimits
from relaunch_local.simulation.aws.recipes import Recipe
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.drawn_scenario import draw_scenario
from relaunch_local.simulation.machine_scenario import MachineScenario, PlannedReservation
from relaunch_local.simulation.turns import time_in_turn

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = 3_600.0
TYPES = ("g5.xlarge",)


@pytest.mark.parametrize(
    ("types", "max_machines", "slots", "work_seconds", "hours"),
    [
        # One of two is kept for the machines that EC2 takes away.
        (TYPES, 2, 3, 3 * HOUR, 9.75),
        (TYPES, 4, 3, 3 * HOUR, 3.25),
        (TYPES, 4, 1, 3 * HOUR, 9.75),
        (TYPES, 1, 3, 1_000 * HOUR, 3 * 48.25),
        (TYPES, 0, 3, 3 * HOUR, 3.25),
        ((), 2, 1, 3 * HOUR, 9.75),
    ],
)
def test_jobs_take_their_turns_in_the_slots_and_on_the_machines_that_may_live(
    types: tuple[str, ...], max_machines: int, slots: int, work_seconds: float, hours: float
) -> None:
    scenario = replace(
        draw_scenario(Chance(1, lambda: NOW)),
        machines=MachineScenario(types=types, limits=MachineLimits(max_machines)),
        recipes={make_job().definition.name: Recipe(work_seconds, checkpoint_seconds=None)},
        limits=StackLimits(),
    )
    definition = make_definition(max_running_jobs=slots)
    others = [make_job(name, definition=definition) for name in "abc"]
    over, since_then = (
        replace(make_job(name, definition=definition), state=JobState.SUCCEEDED, ended_at=NOW + timedelta(hours=hour))
        for name, hour in (("over", -1), ("since then", 1))
    )

    assert time_in_turn([*others, over], scenario, NOW) == timedelta(hours=hours)
    assert time_in_turn([*others[:2], over, since_then], scenario, NOW) == timedelta(hours=hours)


def test_jobs_that_stall_train_until_they_fail_for_it() -> None:
    recipe = Recipe(HOUR, checkpoint_seconds=600.0, stalls_after_seconds=0.0)
    scenario = replace(draw_scenario(Chance(1, lambda: NOW)), recipes={make_job().definition.name: recipe})

    assert time_in_turn([make_job("a", definition=make_definition(max_running_jobs=1))], scenario, NOW) == timedelta(
        hours=4.25
    )


@pytest.mark.parametrize(("max_machines", "hours"), [(4, 13), (9, 6.5)])
def test_of_jobs_of_several_nodes_as_many_train_at_once_as_have_all_their_machines(
    max_machines: int, hours: float
) -> None:
    scenario = replace(
        draw_scenario(Chance(1, lambda: NOW)),
        machines=MachineScenario(types=TYPES, limits=MachineLimits(max_machines)),
        recipes={make_job().definition.name: Recipe(3 * HOUR, checkpoint_seconds=None)},
    )
    gangs = [make_job(name, definition=make_definition(nodes=4)) for name in "abcd"]

    assert time_in_turn(gangs, scenario, NOW) == timedelta(hours=hours)


@pytest.mark.parametrize(("total", "hours"), [(2, 13), (5, 6.5), (1, 13)])
def test_of_jobs_that_take_only_what_is_reserved_as_many_train_at_once_as_have_their_instances_there(
    total: int, hours: float
) -> None:
    reserved = PlannedReservation("cr-1", *TYPES, "a", total, is_block=False, starts_at=0.0)
    over = replace(reserved, reservation_id="cr-2", total=9, ends_at=HOUR)
    scenario = replace(
        draw_scenario(Chance(1, lambda: NOW)),
        machines=MachineScenario(types=TYPES, limits=MachineLimits(9), reservations=(reserved, over)),
        recipes={make_job().definition.name: Recipe(3 * HOUR, checkpoint_seconds=None)},
    )
    definition = make_definition(nodes=2, purchase=PurchasePolicy.RESERVED)

    assert time_in_turn([make_job(name, definition=definition) for name in "abcd"], scenario, NOW) == timedelta(
        hours=hours
    )
