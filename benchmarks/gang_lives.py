"""What a life of a gang is, whichever way it is lived: its machines and its losses, and how long its parts take."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from benchmarks import gang_steps as steps
from relaunch_local.simulation.faults.group_losses import lost_of

NODES = (2, 4, 8, 16)
SEED = 20261129
HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Machine:
    """How long a machine boots and pulls, in seconds."""

    boot: float
    pull: float


@dataclass(frozen=True, slots=True)
class Life:
    """A life of a gang with one interruption in seconds: from the event, from the warning, from its last step.

    `own_start` and `own_again` are neither boot nor pull, saving nor training. `idle` is the time of all machines that
    is paid without a step, and `lost` what they have done for nothing.
    """

    start: float
    sigterm: float
    again: float
    own_start: float
    own_again: float
    idle: float
    lost: float


@dataclass(frozen=True, slots=True)
class Draw:
    """What a life is given, whichever way it is lived: the machines of both generations, and how many are lost."""

    first: list[Machine]
    second: list[Machine]
    lost: int
    seed: str

    @property
    def dice(self) -> Random:
        """Return the dice for the steps of a way: the same ones for each."""
        return Random(f"{self.seed}/steps")  # noqa: S311 - the same lives every time


def draw(nodes: int, number: int, seed: int = SEED) -> Draw:
    """Draw what a life of a gang of so many nodes is given."""
    name = f"{seed}/{nodes}/{number}"
    dice = Random(name)  # noqa: S311 - as above
    first, second = ([Machine(steps.boot(dice), steps.pull(dice)) for _ in range(nodes)] for _generation in range(2))
    return Draw(first, second, lost_of(nodes, dice.random(), dice.random()), name)


MEASURES: Mapping[str, Callable[[Life], float]] = {
    "event to all running": lambda life: life.start,
    "own of that": lambda life: life.own_start,
    "warning to last SIGTERM": lambda life: life.sigterm,
    "last step to first step": lambda life: life.again,
    "own of those": lambda life: life.own_again,
}
