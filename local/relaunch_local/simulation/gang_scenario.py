"""Trainings over several machines, for scenarios: how many ranks, how they behave, and what their machines suffer.

A scenario takes them for one of its definitions, from a stream of its own, so that seeds without them keep theirs.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace

from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, PurchasePolicy
from relaunch.core.offerings.instance_types import AmiKind
from relaunch_local.simulation.aws.group_faults import GROUP_FAULTS
from relaunch_local.simulation.aws.rank_environment import SHUTDOWN_VARIABLE
from relaunch_local.simulation.aws.recipes import GangRecipe, Recipe
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.definition_scenario import is_constrained
from relaunch_local.simulation.machine_scenario import MachineScenario, draw_any_machines
from relaunch_local.simulation.scenario import CHECKPOINTS, INSTANCE_TYPES, ZONES, Scenario

_EVERY = 14
_FIRST = 134
_NODES = (2, 2, 2, 3, 4, 4, 8)
_HUNDREDS = 100
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


def has_gang(seed: int) -> bool:
    """Return whether the jobs of one definition of a seed have several nodes, if it has machines for them.

    Each fourteenth, so that all others are as without: what a gang draws, it draws from streams of its own.
    """
    return seed >= _FIRST and (seed - _FIRST) % _EVERY == 0


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


def with_gang(chance: Chance, scenario: Scenario) -> Scenario:
    """Let the jobs of one definition have several nodes, on machines of our own, of which EC2 may have a part only."""
    is_spared = len(scenario.events) >= _HUNDREDS or scenario.burst_family
    if is_spared or scenario.machines.ami is AmiKind.NEURON or is_constrained(chance.seed):
        return scenario
    dice = chance.stream("scenario/gang")
    machines = draw_any_machines(dice, INSTANCE_TYPES, ZONES)
    # Of those that events start, as often as they do.
    started = [each for event in scenario.events for each in scenario.definitions if each.name == event.definition]
    chosen = dice.choice(started or scenario.definitions)
    recipe = replace(scenario.recipes[chosen.name], checkpoint_seconds=dice.uniform(60.0, 600.0))
    planned = draw_gang(dice, recipe)
    nodes = planned.nodes
    limits = replace(machines.limits, max_machines=dice.choice((nodes + 3, 2 * nodes + 3, 60)))
    gang = replace(
        chosen,
        nodes=nodes,
        container="main",
        accelerator=AcceleratorRequirement(gpu=GpuRequirement(count=1)),
        environment={**chosen.environment, **planned.environment},
        purchase=dice.choice((PurchasePolicy.SPOT_THEN_ON_DEMAND, PurchasePolicy.SPOT, PurchasePolicy.ON_DEMAND)),
        checkpoint_uri=f"s3://{CHECKPOINTS}/{chosen.name}/",
        deadline=None,
        patience=None,
        max_price_usd_per_hour=None,
    )
    family = {**scenario.task_definitions.get(chosen.name, {}), "networkMode": "host"}
    return replace(
        scenario,
        providers=(),
        capacity={},
        definitions=tuple(gang if each is chosen else each for each in scenario.definitions),
        recipes={**scenario.recipes, chosen.name: planned.recipe},
        limits=replace(scenario.limits, machines=limits),
        machines=with_group_faults(replace(machines, limits=limits)),
        task_definitions={**scenario.task_definitions, chosen.name: family},
        unpullable=scenario.unpullable - {chosen.name},
        sidecars={name: each for name, each in scenario.sidecars.items() if name != chosen.task_definition},
    )
