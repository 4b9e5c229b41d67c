"""Bugs in how task definitions are read, which the simulation must find."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from relaunch.adapters.aws.ecs import revisions
from relaunch.core.selection import offering_filters
from relaunch.core.task_definitions.reservation import Reservation
from simulation.broken_parts import changed
from simulation.planted_bugs import PlantedBug
from simulation.planting import patched


def _limits_for_reservations() -> AbstractContextManager[object]:
    def reserve(definition: Mapping[str, Any]) -> Reservation:
        containers = definition["containerDefinitions"]
        return Reservation(sum(each["cpu"] for each in containers), sum(each["memory"] for each in containers))

    return patched(revisions, reserve=reserve)


DEFINITION_BUGS = (
    PlantedBug(
        "placement-constraints-unread",
        "the placement constraints of task definitions reject no offering",
        changed(offering_filters, find_unsatisfied=lambda _constraints, _offering: None),
        "no machine is bought on which ECS places no task of its job",
        10,
        first=20,
    ),
    PlantedBug(
        "limits-for-reservations",
        "the hard limit of a container is taken for what ECS reserves",
        _limits_for_reservations,
        "every end is deserved",
        10,
        first=20,
    ),
)
