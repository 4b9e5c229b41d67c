"""The expected cost of a job until it has finished, including the work lost by interruptions.

Assumptions, each a constant or a field below, to be replaced by measurements:

- Interruptions of spot instances are a Poisson process with a constant rate; on-demand instances have none.
- An interrupted task starts again from its latest checkpoint, or from the beginning without checkpoints. Checkpoints
  are `CHECKPOINT_INTERVAL` apart, so half an interval is lost on average. The checkpoint on SIGTERM is not counted on,
  because interruption warnings are best effort.
- Each start costs `START_OVERHEAD`: the instance boots, the image is pulled, data are loaded.
- After its last task an instance of a capacity provider is paid for another `IDLE_TAIL`; a machine of our own is
  terminated with it.
- The time between an interruption and the next start costs nothing.
- On accelerators that nobody measured the work takes as long as the speed says that is expected there, unless its slow
  end (core.selection.speeds) costs so much that a try is not worth its risk: `order_cost_of`.

The time paid for is `start + segments * (e^(rate * segment) - 1) * (1 / rate + start)` (Daly, "A higher order
estimate of the optimum checkpoint interval for restart dumps", 2006), where a job without checkpoints is one segment.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from operator import attrgetter
from types import MappingProxyType

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.offering import GP3_USD_PER_GIB_MONTH, Offering
from relaunch.core.offerings.peaks import Peaks, peaks_in
from relaunch.core.records import dataclass
from relaunch.core.selection.requirements import Requirements
from relaunch.core.selection.speeds import (
    NO_RATES,
    Rates,
    Speed,
    SpeedOf,
    best_known,
    learned_speeds,
    measured_gpus,
    same_speed,
    speed_of,
)

START_OVERHEAD = timedelta(minutes=8)
# The scale-in alarm requires 15 one-minute data points ("Amazon ECS cluster auto scaling", Developer Guide).
IDLE_TAIL = timedelta(minutes=15)
CHECKPOINT_INTERVAL = timedelta(minutes=30)
_HOURS_PER_MONTH = 730
# With more expected interruptions per segment a job never finishes; math.expm1 overflows above 709.
_MAX_EXPONENT = 50.0
# A timedelta has no more than 999,999,999 days.
_MOST_DAYS = 10.0**6
_DAY_SECONDS = 86_400
NO_PEAKS: Mapping[str, Peaks] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class WorkAhead:
    """The duration of a job without interruptions, whether it has checkpoints, and the size of its disk.

    `duration` is on the accelerators that `speed_of` compares with, of which the share `left` is still to be done, on
    all `nodes` together: an interruption of one of them interrupts it, and all of them are paid. The
    defaults of `start_overhead`, `idle_tail` and `checkpoint_interval` are the assumptions of this module. `jobs` is
    by how many jobs of the definition speeds were learned. `runtime_left` is for how long its tasks may still run, by
    its `max_runtime`, None if nothing bounds it. `slower_in_bf16` are the models on which the speed depends on whether
    the job computes in FP16 or in BF16, where nobody said it.
    """

    duration: timedelta
    has_checkpoint: bool
    disk_gib: int = 0
    gp3_usd_per_gib_month: float = GP3_USD_PER_GIB_MONTH
    start_overhead: timedelta = START_OVERHEAD
    idle_tail: timedelta = IDLE_TAIL
    checkpoint_interval: timedelta = CHECKPOINT_INTERVAL
    speed_of: SpeedOf = same_speed
    jobs: int = 0
    left: float = 1.0
    nodes: int = 1
    slower_in_bf16: frozenset[str] = frozenset()
    runtime_left: timedelta | None = None

    @property
    def duration_left(self) -> timedelta:
        """Return what is left of the duration."""
        return self.duration * self.left

    def at_speed(self, speed: float) -> "WorkAhead":
        """Return the same work where the job is so many times as fast."""
        if speed == 1:
            return self
        return replace(self, duration=timedelta(days=min(self.duration / timedelta(days=1) / speed, _MOST_DAYS)))

    def paid_hours(self, interruptions_per_hour: float, *, has_idle_tail: bool = True) -> float:
        """Return the expected hours of each instance to be paid for until the job has finished; it may be infinite.

        `interruptions_per_hour` is the rate of the job, on all its nodes.
        """
        work = _hours(self.duration_left)
        start = _hours(self.start_overhead)
        tail = _hours(self.idle_tail) if has_idle_tail else 0.0
        if interruptions_per_hour <= 0 or work <= 0:
            return start + work + tail
        segment = min(_hours(self.checkpoint_interval), work) if self.has_checkpoint else work
        exponent = interruptions_per_hour * segment
        if exponent > _MAX_EXPONENT:
            return math.inf
        per_segment = math.expm1(exponent) * (1 / interruptions_per_hour + start)
        return start + work / segment * per_segment + tail

    def ends_in_time(self, machine: InstanceType) -> bool:
        """Return whether what is left is to be expected to end within `max_runtime` there.

        It is not where the speed is unknown. What starts and interruptions add is not counted.
        """
        if self.runtime_left is None:
            return True
        speed = self.speed_of(machine)
        return speed is not None and self.at_speed(speed.middle).duration_left <= self.runtime_left

    @property
    def disk_usd_per_hour(self) -> float:
        """Return the cost of the disk per hour."""
        return self.disk_gib * self.gp3_usd_per_gib_month / _HOURS_PER_MONTH


def derive_work(
    definition: JobDefinition,
    gp3_usd_per_gib_month: float = GP3_USD_PER_GIB_MONTH,
    required: Requirements | None = None,
    peaks: Mapping[str, Peaks] = NO_PEAKS,
    rates: Rates = NO_RATES,
) -> WorkAhead | None:
    """Return the work of a job of this definition; None if neither it nor what its jobs have shown says how long it is.

    Without its requirements it is taken to be as long everywhere.
    """
    duration, rate = _duration_and_rate(definition, rates)
    if duration is None:
        return None
    has_checkpoint = definition.checkpoint_uri is not None
    work = WorkAhead(duration, has_checkpoint, definition.disk_gib or 0, gp3_usd_per_gib_month, nodes=definition.nodes)
    if required is None:
        return work
    if definition.precision is not None:
        peaks = peaks_in(definition.precision, peaks)
    learned = learned_speeds(rates, rate, measured_gpus(definition.estimated_on, required), peaks)
    if definition.estimated_on is None and not learned:
        return work
    compared = speed_of(definition.estimated_on, required, peaks, learned)
    slower = frozenset(model for model, each in peaks.items() if each.is_slower_in_bf16)
    return replace(work, speed_of=compared, jobs=sum(each.jobs for each in learned.values()), slower_in_bf16=slower)


def _duration_and_rate(definition: JobDefinition, rates: Rates) -> tuple[timedelta | None, float | None]:
    """Return the duration where the speed is 1, and how many steps per second that is; None for what is not known.

    It is what the definition says, or else what most jobs have shown.
    """
    duration = definition.estimated_duration
    steps = definition.total_steps
    if duration is not None:
        return duration, None if steps is None else steps / duration.total_seconds()
    if steps is None or not rates:
        return None, None
    rate = rates[best_known(rates)].middle
    return timedelta(days=min(steps / rate / _DAY_SECONDS, _MOST_DAYS)), rate


CostOf = Callable[[Offering], float | None]
RangeOf = Callable[[Offering], tuple[float, float] | None]


_SLOW: Callable[[Speed], float] = attrgetter("slow")
_FAST: Callable[[Speed], float] = attrgetter("fast")
_MIDDLE: Callable[[Speed], float] = attrgetter("middle")


def cost_of(work: WorkAhead | None, end: Callable[[Speed], float] = _SLOW) -> CostOf:
    """Return a function from an offering to its expected cost in USD, at the slow end of the speed of the job there.

    It is None if price, duration or speed is unknown. `end` takes another end of the speed. The hours are computed once
    per speed, interruption rate and kind of machine, which many offerings share.
    """
    if work is None:
        return lambda _offering: None
    hours: dict[tuple[float, float, bool], float] = {}
    speeds: dict[str, float | None] = {}
    disk_usd_per_hour = work.disk_usd_per_hour

    def cost(offering: Offering) -> float | None:
        price = offering.expected_usd_per_hour
        machine = offering.instance_type
        if machine.name not in speeds:
            known = work.speed_of(machine)
            speeds[machine.name] = None if known is None else end(known)
        speed = speeds[machine.name]
        if price is None or speed is None:
            return None
        kind = (speed, offering.interruption_rate_of(work.nodes), offering.is_own_machine)
        if kind not in hours:
            hours[kind] = work.at_speed(speed).paid_hours(kind[1], has_idle_tail=not offering.is_own_machine)
        return hours[kind] * (price + disk_usd_per_hour) * work.nodes

    return cost


LEAST_RISKED = 2.0
"""What nobody measured is tried where even the slow end of its speed costs at most so many times what is safe."""


def order_cost_of(work: WorkAhead | None, offerings: Iterable[Offering]) -> CostOf:
    """Return a function from one of these offerings to the cost that it is ordered by; None where `cost_of` has none.

    That is the one at the speed that is expected: one job tries what should cost less, and those after it know.
    Where the slow end costs more than LEAST_RISKED times the least at a slow end it is that one, which has to pay by
    itself. Each job that has shown a speed allows a try to risk what one more job costs, as it is also for those that
    are to come.
    """
    safe = cost_of(work)
    if work is None or work.speed_of is same_speed:
        return safe
    likely = cost_of(work, _MIDDLE)
    least = min((usd for each in offerings if (usd := safe(each)) is not None), default=math.inf)
    limit = max(LEAST_RISKED, 1.0 + work.jobs) * least

    def cost(offering: Offering) -> float | None:
        most = safe(offering)
        return most if most is None or most > limit else likely(offering)

    return cost


def is_late_of(work: WorkAhead | None) -> Callable[[Offering], bool]:
    """Return a function from an offering to whether the job may not end within its `max_runtime` there.

    It is asked once per instance type.
    """
    if work is None:
        return lambda _offering: False
    known: dict[str, bool] = {}

    def is_late(offering: Offering) -> bool:
        machine = offering.instance_type
        if machine.name not in known:
            known[machine.name] = not work.ends_in_time(machine)
        return known[machine.name]

    return is_late


def cost_range_of(work: WorkAhead | None) -> RangeOf:
    """Return a function from an offering to its least and its largest expected cost in USD.

    They are of the fast and of the slow end of the speed of the job there; None if price, duration or speed is unknown.
    """
    least = cost_of(work, _FAST)
    most = cost_of(work)

    def cost_range(offering: Offering) -> tuple[float, float] | None:
        low = least(offering)
        high = most(offering)
        return None if low is None or high is None else (low, high)

    return cost_range


def _hours(time: timedelta) -> float:
    return time / timedelta(hours=1)
