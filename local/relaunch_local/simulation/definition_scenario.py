"""The task definitions of a seed: what their containers reserve, and the placement constraints of some."""

import random
from collections.abc import Mapping, Sequence
from typing import Any

from relaunch.core.definitions.definition import JobDefinition
from relaunch.ports import CapacityProviderOffer

MAIN_MEMORY = {"memory": 8_192}
# More than most instance types have: ECS reserves memoryReservation.
_LIMIT_ABOVE_RESERVATION = {"memory": 131_072, "memoryReservation": 8_192}
# Remainders of seeds by 30 that find no planted bug, so that those keep what they find.
_CONSTRAINED = frozenset({20, 22, 29})
_SEEDS = 30

Members = Mapping[str, Any]


def is_constrained(seed: int) -> bool:
    """Return whether the task definitions of a seed have constraints, and limits above what they reserve."""
    return seed % _SEEDS in _CONSTRAINED


def draw_constraints(
    dice: random.Random,
    definition: JobDefinition,
    providers: Sequence[CapacityProviderOffer],
    machines: tuple[Sequence[str], Sequence[str]],
    on_demand_usd_per_hour: Mapping[str, float],
) -> list[dict[str, str]]:
    """Return placement constraints that some offering satisfies; `machines` are types and zones of machines of our own.

    A zone is constrained only where all instances are machines of our own, of which it is known.
    """
    types, zones = machines
    affordable = _affordable(definition, providers, types, on_demand_usd_per_hour)
    if not affordable:
        return []
    chosen = dice.choice(affordable)
    of_type = dice.choice(
        (
            f"attribute:ecs.instance-type == {chosen}",
            f"attribute:ecs.instance-type =~ {chosen.partition('.')[0]}.*",
            f"attribute:ecs.instance-type in [{chosen}, p3.2xlarge] and attribute:ecs.os-type == linux",
            f"not(attribute:ecs.instance-type !~ {chosen.partition('.')[0]}[.].*)",
        )
    )
    of_zone = f"attribute:ecs.availability-zone == {dice.choice(zones)}" if zones else ""
    is_zonal = dice.random() < 0.5 and of_zone and not providers
    return [{"type": "memberOf", "expression": each} for each in (of_type, of_zone if is_zonal else "") if each]


def draw_memory(dice: random.Random) -> Members:
    """Return the memory of a container: a hard limit, or one far above what is reserved."""
    return dice.choice((MAIN_MEMORY, _LIMIT_ABOVE_RESERVATION))


def _affordable(
    definition: JobDefinition,
    providers: Sequence[CapacityProviderOffer],
    own: Sequence[str],
    on_demand_usd_per_hour: Mapping[str, float],
) -> list[str]:
    """Return the types that the definition can always be launched on, whatever spot costs."""
    cap = definition.max_price_usd_per_hour
    names = {each.instance_type for each in providers if each.purchase in definition.purchase.options} | set(own)
    return sorted(name for name in names if cap is None or on_demand_usd_per_hour.get(name, cap + 1) <= cap)
