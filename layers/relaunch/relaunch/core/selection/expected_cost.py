"""What a job is expected to cost until it has finished: a low price does not pay when the work is lost again and again.

Assumptions, each a constant or a field below, to be replaced by what is measured of a job family:

- Interruptions come at a constant rate, whatever happened before (a Poisson process). On-demand machines have none.
- A task that is interrupted begins again from its newest checkpoint, or from nothing when it keeps none. Checkpoints
  are `CHECKPOINT_INTERVAL` apart, so that half an interval is lost on average. The save on SIGTERM, which loses nothing
  when its warning comes in time, is not counted on: warnings are best effort.
- Each start takes `START_OVERHEAD` that is paid and useless: the machine boots, the image is pulled, data are loaded.
- After its last task a machine is paid for `IDLE_TAIL` more.
- The time without a machine, between an interruption and the next start, costs nothing.

The time paid for is then `start + segments * (e^(rate * segment) - 1) * (1 / rate + start)` (Daly, "A higher order
estimate of the optimum checkpoint interval for restart dumps", 2006), where a job without checkpoints is one segment.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.offering import Offering

START_OVERHEAD = timedelta(minutes=8)
# A scale-in alarm wants 15 data points of a minute ("Amazon ECS cluster auto scaling", Developer Guide).
IDLE_TAIL = timedelta(minutes=15)
CHECKPOINT_INTERVAL = timedelta(minutes=30)
GP3_USD_PER_GIB_MONTH = 0.08
"""gp3 in us-east-1 (EBS price page, November 2026): reckoned with where the region's own price is not known."""
_HOURS_PER_MONTH = 730
# Beyond it nothing ever finishes, and e^x leaves the range of numbers not much later.
_HOPELESS = 50.0


@dataclass(frozen=True, slots=True)
class WorkAhead:
    """What is to be computed: for how long without interruptions, with or without checkpoints, on a disk of which size.

    `gp3_usd_per_gib_month` is what the disk costs. `start_overhead`, `idle_tail` and `checkpoint_interval` are the
    assumptions of the module unless they are measured.
    """

    duration: timedelta
    has_checkpoint: bool
    disk_gib: int = 0
    gp3_usd_per_gib_month: float = GP3_USD_PER_GIB_MONTH
    start_overhead: timedelta = START_OVERHEAD
    idle_tail: timedelta = IDLE_TAIL
    checkpoint_interval: timedelta = CHECKPOINT_INTERVAL

    def paid_hours(self, interruptions_per_hour: float) -> float:
        """Return the hours of machine time to be paid for until the work is done; infinite when it never will be."""
        work, start = _hours(self.duration), _hours(self.start_overhead)
        tail = _hours(self.idle_tail)
        if interruptions_per_hour <= 0 or work <= 0:
            return start + work + tail
        segment = min(_hours(self.checkpoint_interval), work) if self.has_checkpoint else work
        exponent = interruptions_per_hour * segment
        if exponent > _HOPELESS:
            return math.inf
        per_segment = math.expm1(exponent) * (1 / interruptions_per_hour + start)
        return start + work / segment * per_segment + tail

    @property
    def disk_usd_per_hour(self) -> float:
        """Return what the disk costs for each hour of the machine."""
        return self.disk_gib * self.gp3_usd_per_gib_month / _HOURS_PER_MONTH


def derive_work(definition: JobDefinition, gp3_usd_per_gib_month: float = GP3_USD_PER_GIB_MONTH) -> WorkAhead | None:
    """Read the work of one job out of its definition; None when it does not estimate its duration."""
    if definition.estimated_duration is None:
        return None
    has_checkpoint = definition.checkpoint_uri is not None
    return WorkAhead(definition.estimated_duration, has_checkpoint, definition.disk_gib or 0, gp3_usd_per_gib_month)


CostOf = Callable[[Offering], float | None]


def cost_of(work: WorkAhead | None) -> CostOf:
    """Return what tells the expected cost to finish in USD by offering: None where price or duration is unknown.

    Many offerings have the same rate of interruptions: the hours are reckoned once for each.
    """
    if work is None:
        return lambda _offering: None
    hours: dict[float, float] = {}
    disk_usd_per_hour = work.disk_usd_per_hour

    def cost(offering: Offering) -> float | None:
        price, rate = offering.expected_usd_per_hour, offering.interruption_rate
        if price is None:
            return None
        if rate not in hours:
            hours[rate] = work.paid_hours(rate)
        return hours[rate] * (price + disk_usd_per_hour)

    return cost


def _hours(time: timedelta) -> float:
    return time / timedelta(hours=1)
