"""What a market policy knows when it chooses, and what it may choose.

A try is a launch: a refused one is free, and one that is granted is taken. Nothing else is known of a pool but what was
seen of it before, by this job or another.
"""

from collections.abc import Callable
from enum import StrEnum

from relaunch.core.records import dataclass

# Hours since an origin are not exact: two ticks of ten minutes may be a little less than 20 apart.
_ROUNDING = 1e-6


class Place(StrEnum):
    """Where a job is."""

    IDLE = "idle"
    SPOT = "spot"
    ON_DEMAND = "on-demand"


@dataclass(frozen=True, slots=True)
class Pool:
    """What is known of a spot pool at one moment.

    `has_capacity` is what was last seen, None if nothing ever was. `seen_ago` is how long ago that was, `state_age` how
    long before now the state began, as far as it was seen: `state_age >= seen_ago`. A pool that the job runs in has
    capacity, and is seen now. `outage_ends` and `spell_ends` are how often outages and spells end in this pool,
    compared with the usual: 1 if nothing was learned. `avoided_for` is how long launches leave it out anyway, for what
    else is known of it.
    """

    name: str
    usd_per_hour: float
    has_capacity: bool | None = None
    seen_ago: float = 0.0
    state_age: float = 0.0
    outage_ends: float = 1.0
    spell_ends: float = 1.0
    avoided_for: float = 0.0

    def is_to_be_had(self, retry_interval: float) -> bool:
        """Return whether the pool is known to have capacity: it was seen to, within the interval."""
        return self.has_capacity is True and self.seen_ago < retry_interval

    def may_be_tried_in(self, retry_interval: float) -> float:
        """Return the hours until a try is worth it: 0 but for a pool that refused less than the interval ago."""
        left = retry_interval - self.seen_ago
        return max(left if self.has_capacity is False and left > _ROUNDING else 0.0, self.avoided_for)


@dataclass(frozen=True, slots=True)
class Situation:
    """A job with a time limit, and what is known of the pools it may use.

    `work_done` and `work_left` are hours of running on any machine; their sum is an estimate that may be too low by
    the share `padding`. `elapsed` is the time since the job was accepted, `time_left` that until its deadline (for a
    job that has none but may wait for some time: the work left and the rest of that time); None without any limit.
    `overhead` is lost with each start. `reserve` is the time kept for on-demand starts that fail.
    `on_demand_usd_per_hour` is None if the job may not run on on-demand instances. `pool` is the one it runs in on
    spot. A pool that refused is tried again after `retry_interval`. A move loses the work that is `unsaved`, and an
    interruption half of what is done `between_checkpoints`: only a job without a limit is decided by them
    (core.market.returning).
    """

    place: Place
    work_done: float
    work_left: float
    elapsed: float
    time_left: float | None
    overhead: float
    on_demand_usd_per_hour: float | None
    pools: tuple[Pool, ...]
    pool: str = ""
    padding: float = 0.0
    reserve: float = 0.0
    retry_interval: float = 1 / 6
    unsaved: float = 0.0
    between_checkpoints: float = 0.0

    @property
    def slack(self) -> float | None:
        """Return the time that may pass without work, if the estimate of all work is too low by the whole padding."""
        if self.time_left is None:
            return None
        return self.time_left - self.work_left - self.padding * (self.work_done + self.work_left)

    @property
    def spare(self) -> float | None:
        """Return the hours until the safety net: then only an on-demand instance, started at once, meets the deadline.

        One start may have been in vain already: the deadline needs the overhead twice ("Can't Be Late", section 3.3).
        """
        slack = self.slack
        return None if slack is None else slack - 2 * self.overhead - self.reserve

    @property
    def on_demand_time(self) -> float | None:
        """Return for how many hours an on-demand start may be put off that still meets the deadline, if none fails."""
        slack = self.slack
        return None if slack is None else slack - self.overhead

    @property
    def pools_to_try(self) -> tuple[Pool, ...]:
        """Return the pools that may be tried now, the cheapest first."""
        may = (each for each in self.pools if each.may_be_tried_in(self.retry_interval) <= 0)
        return tuple(sorted(may, key=lambda each: each.usd_per_hour))

    @property
    def next_try_in(self) -> float | None:
        """Return the hours until the next pool may be tried; None if there is no pool."""
        return min((each.may_be_tried_in(self.retry_interval) for each in self.pools), default=None)


class Action(StrEnum):
    """What a policy chooses."""

    STAY = "stay"
    TRY = "try spot"
    ON_DEMAND = "on-demand"
    WAIT = "wait"


class Rule(StrEnum):
    """The rule that a choice follows, for `relaunch explain`."""

    RUNS_ON_SPOT = "runs-on-spot"
    SAFETY_NET = "safety-net"
    SPOT_MAY_BE_HAD = "spot-may-be-had"
    BEHIND = "behind"
    AHEAD = "ahead"
    OUTAGE = "outage"
    COMES_BACK = "comes-back"
    STAYS_ON_DEMAND = "stays-on-demand"
    NO_ON_DEMAND = "no-on-demand"
    ON_DEMAND_FIRST = "on-demand-first"
    EARNS = "earns"
    EARNS_TOO_LITTLE = "earns-too-little"
    REFUSED_LATELY = "refused-lately"


@dataclass(frozen=True, slots=True)
class Choice:
    """What is to be done now.

    TRY launches in `pool`, or in one of the `alternatives`, which pay too; while the job runs elsewhere that is a move.
    If the try is refused, the policy chooses again, with the refusal among what is known. `until` is in how many hours
    it chooses again if nothing happens; None if only an event changes the choice. `value` and `threshold` are what the
    rule compared, in its own unit.
    """

    action: Action
    rule: Rule
    pool: str = ""
    until: float | None = None
    value: float = 0.0
    threshold: float = 0.0
    alternatives: tuple[str, ...] = ()


Policy = Callable[[Situation], Choice]
"""What decides where a job is to be."""
