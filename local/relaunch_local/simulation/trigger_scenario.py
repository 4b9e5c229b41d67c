"""The triggers that the definitions of some seeds have besides pushes, uploads and requests, and their events."""

import random
from dataclasses import replace

from relaunch.core.definitions.definition import GithubTrigger, ImageTrigger, JobDefinition, Trigger
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.scenario import IMAGES, PlannedEvent, Scenario

_SHARE_OF_SEEDS = 0.3
WORKFLOW = "Build image"
WORKFLOW_FILE = "train.yml"
DISPATCH_TYPE = "train"
PACKAGE = "trainer"
GITHUB_KINDS = ("tag", "release", "workflow_run", "workflow_dispatch", "repository_dispatch", "package")
_MOST_EVENTS = 4


def with_triggers(chance: Chance, scenario: Scenario) -> Scenario:
    """Let definitions watch releases, workflows, dispatches, packages, tags and images, and some of these happen."""
    dice = chance.stream("scenario/triggers")
    if dice.random() >= _SHARE_OF_SEEDS or scenario.burst_family:
        return scenario
    definitions = tuple(replace(each, triggers=(*each.triggers, *triggers_of(each))) for each in scenario.definitions)
    events = [_draw_event(dice, scenario) for _ in range(dice.randint(1, _MOST_EVENTS))]
    return replace(scenario, definitions=definitions, events=(*scenario.events, *events))


def triggers_of(definition: JobDefinition) -> tuple[Trigger, ...]:
    """Return the triggers that a definition has besides those that every definition has."""
    repository = f"acme/{definition.name}"
    return (
        GithubTrigger(repository, "push", tags=("v*",)),
        GithubTrigger(repository, "release"),
        GithubTrigger(repository, "workflow_run", branches=("main",), workflows=(WORKFLOW,)),
        GithubTrigger(repository, "workflow_dispatch", workflows=(WORKFLOW_FILE,)),
        GithubTrigger(repository, "repository_dispatch", types=(DISPATCH_TYPE,)),
        GithubTrigger(repository, "package", packages=(PACKAGE,)),
        ImageTrigger(IMAGES, tag=f"{definition.name}-*"),
    )


def _draw_event(dice: random.Random, scenario: Scenario) -> PlannedEvent:
    definition = dice.choice(scenario.definitions).name
    kinds = GITHUB_KINDS if definition in scenario.unpullable else (*GITHUB_KINDS, "image", "image")
    kind = dice.choice(kinds)
    at_seconds = dice.uniform(5.0, scenario.chaos_seconds * 0.6)
    token = f"{dice.getrandbits(160):040x}" if kind == "tag" else f"{dice.randint(10**11, 10**12 - 1)}"
    return PlannedEvent(at_seconds, kind, definition, token)
