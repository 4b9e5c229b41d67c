"""The options of a simulated run."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from relaunch_local.simulation.aws.outages import Outage
from relaunch_local.simulation.scenario import Scenario


@dataclass(frozen=True, slots=True)
class Options:
    """How a seed is run.

    `allowed` limits the faults to those it names (for the shrinker). `is_killed_at` is asked of each step, which its
    function and what it does name, whether the function is killed there. `steps` ends the run after this number of
    steps, `until` with the first violation of the invariant of this name. `dynamodb` uses the real adapter over an
    emulated table. `has_gangs` lets the jobs of one definition have several nodes. `scenario` is used instead of that
    drawn from the seed; `outages` come besides its own. `calm_limit` is how long after the last fault every job must
    have ended.
    """

    trace: bool = False
    allowed: frozenset[str] | None = None
    without_faults: bool = False
    is_killed_at: Callable[[str], bool] | None = None
    steps: int | None = None
    until: str | None = None
    dynamodb: bool = False
    has_gangs: bool = False
    scenario: Scenario | None = None
    outages: tuple[Outage, ...] = ()
    calm_limit: timedelta = field(default=timedelta(hours=24))
