"""How the trainings of a scenario behave: alone, as ranks of a gang, and the container beside them."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from relaunch_local.ecs.processes.port import SIGTERM_EXIT

_SOURCE_FAMILY = re.compile("--.*")
"""What a derived family has after the name of its source."""
SIDECAR = "log_router"
"""The name of the essential container beside the trainings of some definitions."""
MACHINE_EXIT_CODE = 93
"""With this exit code the trainings of every definition say that their machine is at fault."""
OUT_OF_MEMORY = "OutOfMemoryError: Container killed due to memory usage"


@dataclass(frozen=True, slots=True)
class GangRecipe:
    """How the ranks of a gang behave, beside what they have in common with a training on one machine."""

    nccl_share: float = 0.0
    """The share of gangs whose ranks hang when a peer is gone, as NCCL's do, until their watchdog ends them."""
    failing_rank: int = 0
    """The rank whose program fails, where the recipe has failures; counted modulo the number of ranks."""
    early_rank: int | None = None
    """The rank that has less data than the others, and exits 0 before they are done; None: no rank."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How the trainings of one definition behave.

    `failures` is how many of a job's attempts fail before one may finish, with `exit_code`.
    """

    work_seconds: float
    checkpoint_seconds: float | None
    save_seconds: float = 4.0
    failures: int = 0
    exit_code: int = 1
    failure_after_seconds: float = 120.0
    sigterm_exit_code: int = SIGTERM_EXIT
    saves_on_sigterm: bool = True
    ignores_sigterm: bool = False
    leaves_on_warning: bool = False
    """Whether it polls the instance metadata, and saves and exits 0 on an interruption notice before SIGTERM."""
    stalls_after_seconds: float | None = None
    """The work after which some of its jobs gain no step any more, though they run."""
    stalled_share: float = 0.0
    """The share of such jobs."""
    gang: GangRecipe = GangRecipe()


@dataclass(frozen=True, slots=True)
class MachineFault:
    """How a fault of its machine ends a training: so long after its start, with this code and reason."""

    after_seconds: float
    exit_code: int
    reason: str | None
    on_end: Callable[[], None]
    """Called if nothing else ended it before."""


@dataclass(frozen=True, slots=True)
class Sidecar:
    """How the essential container beside the trainings of one definition behaves.

    It ends by itself with `exit_code`, `dies_after_seconds` from its start, in the first `deaths` tasks of each job,
    and else when its task is stopped: with `sigterm_exit_code` after `sigterm_seconds`, or by SIGKILL if that is None.
    """

    deaths: int
    dies_after_seconds: float
    exit_code: int
    sigterm_exit_code: int | None
    sigterm_seconds: float


def source_family(family: str) -> str:
    """Return the family that a derived one is made from; itself if it is none."""
    return _SOURCE_FAMILY.sub("", family)


def work_of(recipe: Recipe, done_seconds: float = 0.0) -> timedelta:
    """Return how long a training runs from a step on, if nothing stops it, with its pauses to save."""
    left = max(recipe.work_seconds - done_seconds, 0.0)
    saves = 0.0 if recipe.checkpoint_seconds is None else left / recipe.checkpoint_seconds
    return timedelta(seconds=left + saves * recipe.save_seconds)


@dataclass(slots=True)
class TrainingLog:
    """How the trainings of one job actually ended."""

    started: int = 0
    failed: int = 0
    finished: int = 0
    deserted: set[str] = field(default_factory=set)
    """Tasks whose essential sidecar ended by itself while their program ran, or as it had just left at a notice."""
    endings: dict[str, str] = field(default_factory=dict)
    """How each task's program ended: finished, failed, out of memory, sigterm, sigkill, left (by itself, warned), or
    broken (by a fault of its machine)."""
