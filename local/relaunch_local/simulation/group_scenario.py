"""The concurrency groups that the definitions of some seeds have, and pushes that come close together."""

import random
from dataclasses import replace

from relaunch.core.definitions.concurrency import Concurrency
from relaunch.core.definitions.definition import JobDefinition
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.scenario import PlannedEvent, Scenario

# Remainders of seeds by 50 that find no other planted bug, so that those keep what they find.
_GROUPED = frozenset({37, 43, 48})
_SEEDS = 50
BY_BRANCH = "{branch}"
FOR_ALL = "one at a time"
"""The group of everything that starts jobs of a definition."""


def with_groups(chance: Chance, scenario: Scenario) -> Scenario:
    """Let the jobs of definitions have groups, and pushes of the same branch come within minutes.

    Not where deadlines are promised to the minute: a job that waits for its group cannot meet them.
    """
    dice = chance.stream("scenario/groups")
    is_spared = scenario.has_close_deadlines or scenario.returning or scenario.burst_family
    if chance.seed % _SEEDS not in _GROUPED or is_spared:
        return scenario
    definitions = tuple(_with_group(dice, each) for each in scenario.definitions)
    events = [each for definition in definitions for each in _draw_pushes(dice, scenario, definition)]
    return replace(scenario, definitions=definitions, events=(*scenario.events, *events), has_groups=True)


def _with_group(dice: random.Random, definition: JobDefinition) -> JobDefinition:
    group = dice.choice((BY_BRANCH, BY_BRANCH, FOR_ALL))
    return replace(definition, concurrency=Concurrency(group, cancel_in_progress=dice.random() < 0.5))


def _draw_pushes(dice: random.Random, scenario: Scenario, definition: JobDefinition) -> list[PlannedEvent]:
    begins_at = dice.uniform(5.0, scenario.chaos_seconds * 0.5)
    return [
        PlannedEvent(begins_at + dice.uniform(0.0, 900.0), "push", definition.name, f"{dice.getrandbits(160):040x}")
        for _ in range(dice.randint(2, 5))
    ]
