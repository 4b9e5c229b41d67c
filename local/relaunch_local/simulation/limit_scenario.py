"""The job definitions of a seed that have a deadline or patience, which their market policies keep."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from relaunch.core.definitions.accelerator import PurchasePolicy
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.lifecycle.market_choice import ON_DEMAND_RESERVE
from relaunch.core.market.policies import PolicyName
from relaunch.core.selection.expected_cost import START_OVERHEAD
from relaunch_local.simulation.aws.recipes import Recipe, work_of

_LIMITED_SHARE = 0.8
_MOVED_SHARE = 0.5
_LONGEST_SPARE = timedelta(seconds=20_000)
_PATIENT_SHARE = 0.4
_LONGEST_ESTIMATE = timedelta(hours=4)
_EXACT_SHARE = 0.4
_SAVED_SELDOM_SECONDS = (4_200.0, 8_000.0)
_CLOSE_SPARE = timedelta(seconds=3_600)


def draw_limits(
    dice: random.Random, definitions: Sequence[JobDefinition], recipes: Mapping[str, Recipe]
) -> tuple[JobDefinition, ...]:
    """Return the definitions, most of them with a limit."""
    return tuple(_with_limit(dice, each, recipes[each.name], _LONGEST_SPARE) for each in definitions)


def draws_moves(dice: random.Random) -> bool:
    """Return whether jobs of a company with machines of its own are to be moved between on-demand and spot."""
    return dice.random() < _MOVED_SHARE


def draw_moves(
    dice: random.Random, definitions: Sequence[JobDefinition], recipes: Mapping[str, Recipe], bucket: str
) -> tuple[tuple[JobDefinition, ...], dict[str, Recipe]]:
    """Return definitions and trainings that last long enough, and have time enough, for a move to spot to pay.

    `bucket` is that of their checkpoints.
    """
    longer = {
        name: replace(
            each, work_seconds=dice.uniform(5_000.0, 9_000.0), checkpoint_seconds=dice.uniform(100.0, 1_500.0)
        )
        for name, each in recipes.items()
    }
    moved = tuple(
        replace(
            _with_limit(dice, each, longer[each.name], 4 * _LONGEST_SPARE),
            purchase=PurchasePolicy.SPOT_THEN_ON_DEMAND,
            policy=dice.choice((PolicyName.CHEAPEST, PolicyName.UNIFORM_PROGRESS)),
            checkpoint_uri=f"s3://{bucket}/{each.name}/",
            max_runtime=timedelta(hours=48),
            # One after the other they would take days.
            max_running_jobs=5,
            max_price_usd_per_hour=None,
        )
        for each in definitions
    )
    return moved, longer


def draw_close_deadlines(
    dice: random.Random,
    definitions: Sequence[JobDefinition],
    recipes: Mapping[str, Recipe],
    bucket: str,
    *,
    save_seldom: bool,
) -> tuple[tuple[JobDefinition, ...], dict[str, Recipe]]:
    """Return trainings of hours, and deadlines close to their work; some or all of them save after an hour and more.

    `bucket` is that of their checkpoints.
    """
    longer = {name: _draw_long_recipe(dice, each, save_seldom=save_seldom) for name, each in recipes.items()}
    close = [_with_close_deadline(dice, each, longer[each.name], bucket) for each in definitions]
    if len(close) > 1 and not save_seldom:
        # One that always asks for on-demand learns for the others that there is none.
        close[0] = replace(close[0], policy=PolicyName.ON_DEMAND_FIRST)
    return tuple(close), longer


def _draw_long_recipe(dice: random.Random, recipe: Recipe, *, save_seldom: bool) -> Recipe:
    seldom = dice.uniform(*_SAVED_SELDOM_SECONDS)
    often = dice.uniform(200.0, 1_200.0)
    checkpoint_seconds = seldom if save_seldom else dice.choice((None, seldom, often, often))
    return replace(
        recipe,
        work_seconds=dice.uniform(8_000.0, 15_000.0),
        checkpoint_seconds=checkpoint_seconds,
        saves_on_sigterm=not save_seldom and dice.random() < 0.4,
        failures=0,
        leaves_on_warning=False,
    )


def _with_close_deadline(dice: random.Random, definition: JobDefinition, recipe: Recipe, bucket: str) -> JobDefinition:
    work = work_of(recipe)
    padding = dice.choice((0.0, 0.1, 0.2))
    estimate = draw_estimate(dice, work, padding)
    # Two starts, the reserve, and what one interruption loses: then it may run on spot at first.
    least = estimate * (1 + padding) + 2 * START_OVERHEAD + ON_DEMAND_RESERVE
    lost = estimate if recipe.checkpoint_seconds is None else timedelta(seconds=recipe.checkpoint_seconds)
    is_seldom = lost.total_seconds() >= _SAVED_SELDOM_SECONDS[0]
    spare = lost * dice.uniform(1.0, 1.6) if is_seldom else lost + dice.random() * _CLOSE_SPARE
    has_steps = recipe.checkpoint_seconds is not None and dice.random() < 0.5
    return replace(
        definition,
        estimated_duration=estimate,
        total_steps=round(recipe.work_seconds) if has_steps else None,
        padding=padding,
        policy=dice.choice((PolicyName.CHEAPEST, PolicyName.UNIFORM_PROGRESS, PolicyName.GREEDY)),
        deadline=least + spare,
        purchase=PurchasePolicy.SPOT_THEN_ON_DEMAND,
        checkpoint_uri=None if recipe.checkpoint_seconds is None else f"s3://{bucket}/{definition.name}/",
        max_runtime=timedelta(hours=48),
        max_running_jobs=8,
        max_price_usd_per_hour=None,
    )


def draw_estimate(dice: random.Random, work: timedelta, padding: float) -> timedelta:
    """Return an estimate of some work: the work itself, or one that is too low, by the padding at most."""
    too_low = 0.0 if dice.random() < _EXACT_SHARE else dice.random() * padding
    return work / (1 + too_low)


def with_estimates(dice: random.Random, definitions: Sequence[JobDefinition]) -> tuple[JobDefinition, ...]:
    """Return the definitions with estimates that are too low by some of their padding."""
    return tuple(
        each
        if each.estimated_duration is None
        else replace(each, estimated_duration=draw_estimate(dice, each.estimated_duration, each.padding))
        for each in definitions
    )


def _with_limit(
    dice: random.Random, definition: JobDefinition, recipe: Recipe, longest_spare: timedelta
) -> JobDefinition:
    work = work_of(recipe)
    policy = dice.choice(tuple(PolicyName))
    padding = dice.choice((0.0, 0.1, 0.2))
    spare = dice.random() * longest_spare
    draw = dice.random()
    if draw > _LIMITED_SHARE or work > _LONGEST_ESTIMATE:
        return definition
    limited = replace(definition, estimated_duration=work, policy=policy, padding=padding)
    if definition.checkpoint_uri is not None and draw < _LIMITED_SHARE / 2:
        limited = replace(limited, total_steps=round(recipe.work_seconds))
    is_patient = definition.deadline is None and dice.random() < _PATIENT_SHARE
    # A file has whole minutes.
    patience = max(spare, timedelta(minutes=1))
    return replace(limited, patience=patience) if is_patient else replace(limited, deadline=work + spare)
