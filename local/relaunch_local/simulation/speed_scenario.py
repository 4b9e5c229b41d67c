"""Trainings that are not as fast on each model, in one of six seeds: within what published peaks bound."""

import math
import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from relaunch.adapters.offerings.bundled import load_catalogue, load_peaks
from relaunch.core.definitions.accelerator import MeasuredOn
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.selection.requirements import derive_requirements
from relaunch.core.selection.speeds import speed_of, used_accelerators
from relaunch_local.simulation.aws.recipes import Recipe
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.scenario import Scenario, TrueSpeed

_UNEQUAL_EVERY = 6
_LONGEST_WORK_SECONDS = 1e6
# A slower training would take days.
_LEAST = 0.3
_MOST = 3.0
_STEPS_SHARE = 0.6
_SHORTEST_WORK_SECONDS = (1_500.0, 4_000.0)
_SAVED_OFTEN_SECONDS = (60.0, 200.0)


def with_speeds(chance: Chance, scenario: Scenario) -> Scenario:
    """Let trainings be as fast as drawn on each model, and definitions say where their duration was measured."""
    if chance.seed % _UNEQUAL_EVERY or scenario.burst_family:
        return scenario
    dice = chance.stream("scenario/speeds")
    types = sorted({*scenario.machines.types, *(each.instance_type for each in scenario.providers)})
    known = {load_catalogue()[name].accelerator_model for name in types} & load_peaks().keys()
    if not known:
        return scenario
    drawn = [_draw(dice, scenario, each, types, sorted(known)) for each in scenario.definitions]
    return replace(
        scenario,
        definitions=tuple(each.definition for each in drawn),
        recipes={**scenario.recipes, **{each.definition.name: each.recipe for each in drawn}},
        speeds={each.definition.name: each.speeds for each in drawn},
    )


@dataclass(frozen=True, slots=True)
class _Drawn:
    definition: JobDefinition
    recipe: Recipe
    speeds: Mapping[str, TrueSpeed]


def _draw(
    dice: random.Random, scenario: Scenario, definition: JobDefinition, types: Iterable[str], models: list[str]
) -> _Drawn:
    """Return a definition that says where it was measured, and how fast its trainings are on each instance type."""
    required = derive_requirements(definition, None)
    on = MeasuredOn(dice.choice(models))
    bounds_of = speed_of(on, required, load_peaks())
    by_accelerators: dict[str, TrueSpeed] = {}
    speeds = {}
    for name in types:
        machine = load_catalogue()[name]
        bounds = bounds_of(machine)
        slow, fast = (bounds.slow, bounds.fast) if bounds is not None else (1.0, 1.0)
        least = min(max(slow, _LEAST), fast)
        most = max(min(fast, _MOST), least)
        true = math.exp(dice.uniform(math.log(least), math.log(most)))
        key = used_accelerators(required, machine).key
        speeds[name] = by_accelerators.setdefault(key, TrueSpeed(key, true, slow))
    recipe = scenario.recipes[definition.name]
    if definition.estimated_duration is not None:
        definition = replace(definition, estimated_on=on)
    elif definition.checkpoint_uri is not None and recipe.work_seconds < _LONGEST_WORK_SECONDS:
        # So many that they say how fast it is.
        work_seconds = max(recipe.work_seconds, dice.uniform(*_SHORTEST_WORK_SECONDS))
        recipe = replace(recipe, work_seconds=work_seconds, checkpoint_seconds=dice.uniform(*_SAVED_OFTEN_SECONDS))
    saves = definition.checkpoint_uri is not None and recipe.work_seconds < _LONGEST_WORK_SECONDS
    if saves and dice.random() < _STEPS_SHARE:
        definition = replace(definition, total_steps=round(recipe.work_seconds))
    return _Drawn(definition, recipe, speeds)
