"""The job definitions of a seed that have a deadline or patience, which their market policies keep."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from relaunch.core.definitions.accelerator import PurchasePolicy
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.market.policies import PolicyName
from relaunch_local.simulation.aws.trainings import Recipe
from relaunch_local.simulation.checks.market import work_of

_LIMITED_SHARE = 0.8
_MOVED_SHARE = 0.5
_LONGEST_SPARE = timedelta(seconds=20_000)
_PATIENT_SHARE = 0.4
_LONGEST_ESTIMATE = timedelta(hours=4)


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


def _with_limit(
    dice: random.Random, definition: JobDefinition, recipe: Recipe, longest_spare: timedelta
) -> JobDefinition:
    work, policy, padding = work_of(recipe), dice.choice(tuple(PolicyName)), dice.choice((0.0, 0.1, 0.2))
    spare, draw = dice.random() * longest_spare, dice.random()
    if draw > _LIMITED_SHARE or work > _LONGEST_ESTIMATE:
        return definition
    limited = replace(definition, estimated_duration=work, policy=policy, padding=padding)
    if definition.checkpoint_uri is not None and draw < _LIMITED_SHARE / 2:
        limited = replace(limited, total_steps=round(recipe.work_seconds))
    is_patient = definition.deadline is None and dice.random() < _PATIENT_SHARE
    return replace(limited, patience=spare) if is_patient else replace(limited, deadline=work + spare)
