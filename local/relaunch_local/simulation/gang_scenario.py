"""Trainings over several machines, for scenarios: how many ranks, how they behave, and what their machines suffer.

No seed has them yet: a definition has to say how many nodes it needs. Then a scenario takes `draw_gang` for some of its
definitions, from a stream of its own, and `with_group_faults` for its machines.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

from relaunch_local.simulation.aws.group_faults import GROUP_FAULTS
from relaunch_local.simulation.aws.rank_environment import SHUTDOWN_VARIABLE
from relaunch_local.simulation.aws.recipes import GangRecipe, Recipe
from relaunch_local.simulation.machine_scenario import MachineScenario

_NODES = (2, 2, 2, 3, 4, 4, 8)
_NCCL = (0.0, 1.0, 1.0)
_EARLY_SHARE = 0.05
_SLOW_SAVE_SHARE = 0.15
_SLOW_SAVE_SECONDS = (31.0, 80.0)
"""Longer than torchrun waits by default, shorter than the stop time-out that definitions have."""


@dataclass(frozen=True, slots=True)
class PlannedGang:
    """A training over several machines: `recipe` is that of its ranks, `environment` what its definition sets."""

    nodes: int
    recipe: Recipe
    environment: Mapping[str, str]


def draw_gang(dice: random.Random, recipe: Recipe) -> PlannedGang:
    """Draw a training over several machines, in the place of one that has this recipe on one machine."""
    nodes = dice.choice(_NODES)
    gang = GangRecipe(
        nccl_share=dice.choice(_NCCL),
        failing_rank=dice.randrange(nodes),
        early_rank=dice.randrange(nodes) if dice.random() < _EARLY_SHARE else None,
    )
    drawn = replace(recipe, gang=gang, save_seconds=min(recipe.save_seconds, 25.0))
    if dice.random() >= _SLOW_SAVE_SHARE:
        return PlannedGang(nodes, drawn, {})
    slow = replace(drawn, save_seconds=dice.uniform(*_SLOW_SAVE_SECONDS))
    # torchrun before 2.12 kills such a save whatever the launcher sets: a definition that says so stands for it.
    is_killed = dice.random() < 0.5
    return PlannedGang(nodes, slow, {SHUTDOWN_VARIABLE: "30"} if is_killed else {})


def with_group_faults(machines: MachineScenario) -> MachineScenario:
    """Return the machines of a scenario with everything that happens to those that are launched together."""
    return replace(machines, group_faults=GROUP_FAULTS)
