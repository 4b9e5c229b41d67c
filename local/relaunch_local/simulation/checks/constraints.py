"""Whether ECS would place a task on an instance, by the task definition's own constraints and the simulator's rules."""

from collections.abc import Mapping, Sequence

from relaunch_local.ecs import EcsSimulator
from relaunch_local.ecs.engine.model import Instance
from relaunch_local.ecs.engine.placement import matches_constraints
from relaunch_local.ecs.rules.placement import placement_of


def constraints_of(simulator: EcsSimulator, family: str) -> Sequence[Mapping[str, str]]:
    """Return the constraints of a family's newest revision."""
    constraints: Sequence[Mapping[str, str]] = simulator.definitions.if_known(family).get("placementConstraints", ())
    return constraints


def find_violated(simulator: EcsSimulator, family: str, host: Instance) -> str:
    """Return the constraints of a family's newest revision, if ECS places no task of it on an instance; else empty."""
    definition = simulator.definitions.if_known(family)
    if matches_constraints(host, placement_of({}, definition)):
        return ""
    return " and ".join(each["expression"] for each in definition["placementConstraints"])
