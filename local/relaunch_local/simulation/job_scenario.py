"""What the jobs of some seeds are: under a market policy, close to a deadline, hours long, stalled, or many at once."""

import random
from dataclasses import replace
from datetime import timedelta

from relaunch.core.definitions.accelerator import PurchasePolicy
from relaunch_local.simulation.aws.recipes import work_of
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.definition_scenario import is_constrained
from relaunch_local.simulation.limit_scenario import (
    draw_close_deadlines,
    draw_limits,
    draw_moves,
    draws_moves,
    with_estimates,
)
from relaunch_local.simulation.machine_scenario import draw_any_machines
from relaunch_local.simulation.scenario import CHECKPOINTS, INSTANCE_TYPES, ZONES, PlannedEvent, Scenario

_LIMITED_EVERY = 4
_CLOSE_EVERY = 12
_SHORTAGES_SHARE = 0.5
_STALLED_EVERY = 20
_FIRST_STALLED = 13
_RETURNING_EVERY = 20
_FIRST_RETURNING = 7
_SELDOM_EVERY = 40
_FIRST_SELDOM = 15
_BURST_EVERY = 40
_FIRST_BURST = 36
_BURST = 16


def with_limits(chance: Chance, scenario: Scenario) -> Scenario:
    """Let market policies launch the jobs of some definitions, which have a deadline or patience."""
    if chance.seed % _LIMITED_EVERY != _LIMITED_EVERY // 2:
        return scenario
    if chance.seed % _CLOSE_EVERY == _CLOSE_EVERY - _LIMITED_EVERY // 2:
        return _with_close_deadlines(chance.stream("scenario/close-deadlines"), scenario)
    limited = _with_policies(chance.stream("scenario/limits"), scenario)
    # By a stream of its own, so that seeds keep what they draw otherwise.
    return replace(limited, definitions=with_estimates(chance.stream("scenario/estimates"), limited.definitions))


def with_returns(chance: Chance, scenario: Scenario) -> Scenario:
    """Let the jobs of one definition take so long that they go back to spot, which there is none of at first."""
    is_chosen = chance.seed % _RETURNING_EVERY == _FIRST_RETURNING and not is_constrained(chance.seed)
    if not is_chosen or not scenario.machines.types:
        return scenario
    dice = chance.stream("scenario/returns")
    chosen = dice.choice(scenario.definitions)
    recipe = replace(
        scenario.recipes[chosen.name],
        work_seconds=dice.uniform(9.0, 11.0) * 3_600,
        checkpoint_seconds=dice.uniform(100.0, 600.0),
        failures=0,
        leaves_on_warning=False,
    )
    definition = replace(
        chosen,
        purchase=PurchasePolicy.SPOT_THEN_ON_DEMAND,
        checkpoint_uri=f"s3://{CHECKPOINTS}/{chosen.name}/",
        estimated_duration=dice.choice((None, work_of(recipe))),
        deadline=None,
        max_runtime=timedelta(hours=48),
        # One after the other they would take days.
        max_running_jobs=20,
        max_price_usd_per_hour=None,
    )
    limits = replace(scenario.machines.limits, max_machines=20, max_usd_per_hour=0.0)
    return replace(
        scenario,
        definitions=tuple(definition if each is chosen else each for each in scenario.definitions),
        recipes={**scenario.recipes, chosen.name: recipe},
        limits=replace(scenario.limits, max_running_jobs=20, machines=limits),
        machines=replace(scenario.machines, limits=limits),
        unpullable=scenario.unpullable - {chosen.name},
        returning=chosen.name,
    )


def with_stalled_trainings(chance: Chance, scenario: Scenario) -> Scenario:
    """Let some jobs of one definition with checkpoints run without gaining a step, from the start or from later on."""
    saving = [each for each in scenario.definitions if each.checkpoint_uri is not None]
    if chance.seed % _STALLED_EVERY != _FIRST_STALLED or not saving:
        return scenario
    dice = chance.stream("scenario/stalled")
    chosen = dice.choice(saving)
    # One after the other they would take days.
    stalled = replace(chosen, deadline=None, max_runtime=timedelta(hours=48), max_running_jobs=5)
    work_seconds = dice.uniform(600.0, 4_000.0)
    recipe = replace(
        scenario.recipes[chosen.name],
        work_seconds=work_seconds,
        failures=0,
        leaves_on_warning=False,
        stalls_after_seconds=dice.choice((0.0, dice.uniform(0.0, 1.0) * work_seconds)),
        stalled_share=dice.choice((0.5, 1.0)),
    )
    limits = replace(scenario.machines.limits, max_machines=20, max_usd_per_hour=0.0)
    return replace(
        scenario,
        definitions=tuple(stalled if each is chosen else each for each in scenario.definitions),
        recipes={**scenario.recipes, chosen.name: recipe},
        limits=replace(scenario.limits, max_running_jobs=20, machines=limits),
        machines=replace(scenario.machines, limits=limits),
    )


def with_seldom_saves(chance: Chance, scenario: Scenario) -> Scenario:
    """Let the jobs of one definition save every hour or two, and on SIGTERM, and be interrupted."""
    if chance.seed % _SELDOM_EVERY != _FIRST_SELDOM:
        return scenario
    dice = chance.stream("scenario/seldom")
    chosen = dice.choice(scenario.definitions)
    between = dice.uniform(0.7, 2.0) * 3_600
    recipe = replace(
        scenario.recipes[chosen.name],
        work_seconds=dice.uniform(2.0, 4.0) * between,
        checkpoint_seconds=between,
        failures=0,
        saves_on_sigterm=True,
        ignores_sigterm=False,
        leaves_on_warning=False,
    )
    seldom = replace(
        chosen,
        checkpoint_uri=f"s3://{CHECKPOINTS}/{chosen.name}/",
        estimated_duration=None,
        deadline=None,
        max_runtime=timedelta(hours=48),
        # One after the other they would take days.
        max_running_jobs=20,
        max_price_usd_per_hour=None,
    )
    limits = replace(scenario.machines.limits, max_machines=20, max_usd_per_hour=0.0)
    return replace(
        scenario,
        definitions=tuple(seldom if each is chosen else each for each in scenario.definitions),
        recipes={**scenario.recipes, chosen.name: recipe},
        limits=replace(scenario.limits, max_running_jobs=20, machines=limits),
        machines=replace(scenario.machines, limits=limits),
        unpullable=scenario.unpullable - {chosen.name},
        seldom=chosen.name,
    )


def with_burst(chance: Chance, scenario: Scenario) -> Scenario:
    """Let more jobs of one family come within minutes than one cause may cost machines in a day, each to have one."""
    if chance.seed % _BURST_EVERY != _FIRST_BURST:
        return scenario
    dice = chance.stream("scenario/burst")
    machines = draw_any_machines(dice, INSTANCE_TYPES, ZONES)
    machines = replace(machines, limits=replace(machines.limits, max_machines=3 * _BURST))
    chosen = dice.choice(scenario.definitions)
    burst = replace(chosen, deadline=None, max_running_jobs=_BURST, max_price_usd_per_hour=None)
    recipe = replace(scenario.recipes[chosen.name], work_seconds=dice.uniform(200.0, 900.0), failures=0)
    begins_at = dice.uniform(60.0, 900.0)
    uploads = (
        PlannedEvent(begins_at + dice.uniform(0.0, 300.0), "upload", chosen.name, f"burst-{number}")
        for number in range(100, 100 + _BURST)
    )
    return replace(
        scenario,
        # Few machines get as far as a refusal at a higher rate.
        intensity=min(scenario.intensity, 0.4),
        providers=(),
        capacity={},
        definitions=tuple(burst if each is chosen else each for each in scenario.definitions),
        recipes={**scenario.recipes, chosen.name: recipe},
        events=(*scenario.events, *uploads),
        limits=replace(scenario.limits, max_running_jobs=2 * _BURST, machines=machines.limits),
        machines=machines,
        unpullable=frozenset(),
        burst_family=chosen.task_definition,
    )


def _with_policies(dice: random.Random, scenario: Scenario) -> Scenario:
    machines = scenario.machines
    if not machines.types or not draws_moves(dice):
        return replace(scenario, definitions=draw_limits(dice, scenario.definitions, scenario.recipes))
    definitions, recipes = draw_moves(dice, scenario.definitions, scenario.recipes, CHECKPOINTS)
    limits = replace(machines.limits, max_machines=20, max_usd_per_hour=0.0)
    owned = replace(
        scenario, machines=replace(machines, limits=limits), limits=replace(scenario.limits, machines=limits)
    )
    return replace(owned, definitions=definitions, recipes=recipes)


def _with_close_deadlines(dice: random.Random, scenario: Scenario) -> Scenario:
    """Let the company have machines of its own alone, trainings of hours, and deadlines close to their work."""
    machines = draw_any_machines(dice, INSTANCE_TYPES, ZONES)
    has_shortages = dice.random() < _SHORTAGES_SHARE
    definitions, recipes = draw_close_deadlines(
        dice, scenario.definitions, scenario.recipes, CHECKPOINTS, save_seldom=not has_shortages
    )
    return replace(
        scenario,
        intensity=min(scenario.intensity, 1.0),
        chaos_seconds=dice.uniform(9_000.0, 20_000.0),
        providers=(),
        capacity={},
        definitions=definitions,
        recipes=recipes,
        limits=replace(scenario.limits, max_running_jobs=20, machines=machines.limits),
        machines=machines,
        unpullable=frozenset(),
        has_close_deadlines=True,
        has_shortages=has_shortages,
    )
