"""Bugs that the simulation must find: each breaks the running application in one place.

`within` is the number of seeds, from `first`, of which at least one finds the bug; it has a margin for the day the
simulation draws other numbers. `invariant` is the check that fails. If no invariant finds a bug, an invariant is
missing.
"""

from contextlib import nullcontext
from dataclasses import dataclass

from simulation.broken_parts import Planting


@dataclass(frozen=True, slots=True)
class PlantedBug:
    """A bug: what is broken, how it is planted, which invariant finds it, and within how many seeds.

    `world` makes a rare fault frequent, for a bug that shows only after it.
    """

    name: str
    broken: str
    plant: Planting
    invariant: str
    within: int = 8
    first: int = 0
    world: Planting = nullcontext
