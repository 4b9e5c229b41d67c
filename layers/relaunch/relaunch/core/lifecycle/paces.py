"""The machine in whose hours the work of a job is reckoned, where not all models are equally fast.

A market policy has one figure of the work that is left. It is in hours on one machine (docs/decisions/0035), at the
slow end of its speed there, of what peaks or its jobs say; what may be slower is left out, and the price of what is
faster is that of the same work. Where nobody said on what the duration was measured and no job has shown a speed, there
is no pace: all are taken to be equally fast.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.progress import Progress, SavedCheckpoint, measure_progress
from relaunch.core.market.situation import Pool
from relaunch.core.offerings.offering import Offering
from relaunch.core.records import dataclass
from relaunch.core.selection.expected_cost import cost_of
from relaunch.core.selection.rejection import Rejection
from relaunch.core.selection.selection import Selection
from relaunch.core.selection.speeds import SpeedOf, same_speed

_NONE = timedelta(0)
# Of two quotients of the same figures.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Pace:
    """The offering in whose hours work is reckoned, and the least speed there, in multiples of what was measured.

    `duration` is that of all the work where the speed is 1.
    """

    offering: Offering
    speed: float
    speed_of: SpeedOf
    duration: timedelta

    def compared(self, offering: Offering) -> float:
        """Return how many times as fast as this a job is on an offering at least; 0 if that is not known."""
        speed = self.speed_of(offering.instance_type)
        return 0.0 if speed is None else speed.slow / self.speed

    def is_kept_on(self, offering: Offering) -> bool:
        """Return whether a job is as fast there at least, or has paid for it anyway."""
        return offering.purchase is PurchaseOption.RESERVED or self.compared(offering) >= 1 - _ROUNDING

    def rejection(self, offering: Offering) -> Rejection:
        """Return why an offering is left out."""
        model = offering.instance_type.accelerator_model
        by = self.offering.instance_type
        return Rejection(
            f"a job may be slower on {model} than on {by.name} ({by.accelerator_model}), where its work is reckoned",
            is_permanent=False,
        )


def find_paces(selection: Selection, *, has_steps: bool) -> tuple[Pace | None, ...]:
    """Return the paces that a job may be reckoned at, the slowest first: the first that leaves it time to spare counts.

    The last one is that of the best on-demand offering, also if there is none for a moment; where nothing kept is
    as fast, of the best that was kept. Before it is that of the best that was kept, if a job may be slower there: who
    is on time at that pace is so on whatever is faster. That takes steps: hours on different machines do not say how
    much is done. It is None alone if all are taken to be equally fast, or if no
    speed is known.
    """
    if selection.work is None or selection.work.speed_of is same_speed:
        return (None,)
    awaited = (each.offering for each in selection.rejected if each.rejection.retry_at is not None)
    on_demand = [each for each in (*selection.kept, *awaited) if each.purchase is PurchaseOption.ON_DEMAND]
    best = _best_pace(selection, selection.kept)
    latest = _best_pace(selection, on_demand)
    if best is None or latest is None or not any(latest.is_kept_on(each) for each in selection.kept):
        return (best,)
    return (best, latest) if has_steps and best.speed < latest.speed else (latest,)


def _best_pace(selection: Selection, offerings: Iterable[Offering]) -> Pace | None:
    costs = cost_of(selection.work)
    known = [(usd, each) for each in offerings if (usd := costs(each)) is not None]
    best = min(known, key=lambda each: each[0], default=None)
    return None if best is None else _pace_on(selection, best[1])


def running_pace(job: Job, selection: Selection) -> Pace | None:
    """Return the pace of a job on the machine that it runs on; None where `find_paces` has none."""
    name = job.current_attempt.placement.offering.instance_type
    ran_on = next((each for each in _offered(selection) if each.instance_type.name == name), None)
    return None if ran_on is None else _pace_on(selection, ran_on)


def _pace_on(selection: Selection, offering: Offering) -> Pace | None:
    work = selection.work
    speed = None if work is None else work.speed_of(offering.instance_type)
    if work is None or speed is None or work.speed_of is same_speed:
        return None
    return Pace(offering, speed.slow, work.speed_of, work.duration)


def _offered(selection: Selection) -> Iterator[Offering]:
    yield from selection.kept
    yield from (each.offering for each in selection.rejected)


def pools_at_pace(pools: tuple[Pool, ...], selection: Selection, pace: Pace | None) -> tuple[Pool, ...]:
    """Return the pools on which a job is as fast at least, at the price of the work that the pace does in an hour."""
    if pace is None:
        return pools
    offerings = {str(each.key): each for each in _offered(selection)}
    return tuple(
        replace(each, usd_per_hour=each.usd_per_hour / pace.compared(offerings[each.name]))
        for each in pools
        if pace.is_kept_on(offerings[each.name])
    )


def at_pace(definition: JobDefinition, pace: Pace | None) -> JobDefinition:
    """Return the definition with its duration at the pace, estimated or learned."""
    if pace is None:
        return definition
    return replace(definition, estimated_duration=pace.duration / pace.speed)


def progress_at_pace(
    job: Job, newest: SavedCheckpoint | None, selection: Selection, pace: Pace | None, now: datetime
) -> Progress | None:
    """Return the work done and left at the pace; None if nothing says how much work the job is.

    What the first attempt measured on a machine as fast is taken as it is. Later attempts may have been on others: the
    share of the steps that is left is held against the estimate, and the longer time counts. Without steps an hour on a
    machine that is slower than the pace counts less.
    """
    paced = replace(job, definition=at_pace(job.definition, pace))
    progress = measure_progress(paced, newest, now)
    estimate = paced.definition.estimated_duration
    if progress is None or pace is None or estimate is None or job.attempt is None:
        return progress
    before = running_pace(job, selection)
    speed = pace.speed if before is None else before.speed
    total = job.definition.total_steps
    if total is None or newest is None:
        done = progress.done * min(speed / pace.speed, 1.0)
        return progress if speed == pace.speed else Progress(done, max(estimate - done, _NONE))
    by_share = estimate * (max(total - newest.step, 0) / total)
    if before is None or speed != pace.speed:
        return replace(progress, left=by_share)
    return progress if job.attempt.number == 1 else replace(progress, left=max(progress.left, by_share))
