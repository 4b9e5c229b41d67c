"""The machine in whose hours the work of a job is reckoned, where not all models are equally fast.

A market policy has one figure of the work that is left. It is in hours on one machine (docs/decisions/0035), at the
slow end of its speed there, of what peaks or its jobs say; what may be slower is left out, and the price of what is
faster is that of the same work. A deadline is promised if any on-demand machine makes it by that end, and the machine
is the cheapest one that does. Where nobody said on what the duration was measured and no job has shown a speed, there
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
from relaunch.core.selection.expected_cost import START_OVERHEAD, cost_of
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

    def is_kept_on_any(self, offerings: Iterable[Offering]) -> bool:
        """Return whether a job is as fast on any of the offerings at least."""
        return any(self.is_kept_on(each) for each in offerings)

    def wait_for(self, selection: Selection, now: datetime) -> timedelta:
        """Return for how long on-demand machines as fast are refused; none if anything as fast was kept."""
        if self.is_kept_on_any(selection.kept):
            return _NONE
        awaited = (
            each.rejection.retry_at - now
            for each in selection.rejected
            if each.rejection.retry_at is not None
            and each.offering.purchase is PurchaseOption.ON_DEMAND
            and self.is_kept_on(each.offering)
        )
        return max(min(awaited), _NONE)

    def rejection(self, offering: Offering) -> Rejection:
        """Return why an offering is left out."""
        model = offering.instance_type.accelerator_model
        by = self.offering.instance_type
        return Rejection(
            f"a job may be slower on {model} than on {by.name} ({by.accelerator_model}), where its work is reckoned",
            is_permanent=False,
        )


def find_paces(definition: JobDefinition, selection: Selection) -> tuple[Pace | None, ...]:
    """Return the paces that a job may be reckoned at, the slowest first: the first that keeps its limit counts.

    They are those of on-demand machines, of which patience takes the cheapest. Before them is that of the best that was
    kept, if a job may be slower there: who is on time at that pace is so on whatever is faster.

    To go on at another pace takes steps: hours on different machines do not say how much is done. Without them it is
    one for the whole job, of the first on-demand machine that makes its deadline from its acceptance on, or else of the
    cheapest; the best that was kept is before it only where nothing kept is as fast. It is None alone if all are taken
    to be equally fast, or if no speed is known.
    """
    paces = on_demand_paces(selection)
    has_steps = definition.total_steps is not None
    if definition.deadline is None:
        paces = paces[:1]
    elif not has_steps:
        paces = (promised_pace(definition, paces),)
    best = _best_pace(selection, selection.kept)
    first = paces[0]
    if best is None or first is None or best.speed >= first.speed:
        return paces
    return (best, *paces) if has_steps or not first.is_kept_on_any(selection.kept) else paces


def on_demand_paces(selection: Selection) -> tuple[Pace | None, ...]:
    """Return the paces of on-demand machines, the cheapest and slowest first: no other is cheaper and as fast.

    What is refused for a time counts too. Where nothing is sold on demand it is the pace of the best that was kept, and
    None where none is known.
    """
    if selection.work is None or selection.work.speed_of is same_speed:
        return (None,)
    awaited = (each.offering for each in selection.rejected if each.rejection.retry_at is not None)
    costs = cost_of(selection.work)
    known = (
        (usd, each)
        for each in (*selection.kept, *awaited)
        if each.purchase is PurchaseOption.ON_DEMAND and (usd := costs(each)) is not None
    )
    found: list[Pace] = []
    for _, each in sorted(known, key=lambda each: each[0]):
        pace = _pace_on(selection, each)
        if pace is not None and (not found or found[-1].compared(each) > 1 + _ROUNDING):
            found.append(pace)
    return tuple(found) or (_best_pace(selection, selection.kept),)


def is_promised(definition: JobDefinition) -> bool:
    """Return whether on-demand from the first moment on meets the deadline, if the estimate lacks all its padding.

    So does a definition of which the deadline, or the duration, is not known. For a machine the definition is to be
    that `at_pace`.
    """
    needed = time_needed(definition)
    return needed is None or definition.deadline is None or definition.deadline > needed


def time_needed(definition: JobDefinition) -> timedelta | None:
    """Return the time for the work with its padding and a start; None if it is not known."""
    estimate = definition.estimated_duration
    return None if estimate is None else estimate * (1 + definition.padding) + START_OVERHEAD


def promised_pace(definition: JobDefinition, paces: tuple[Pace | None, ...]) -> Pace | None:
    """Return the first of the paces at which the deadline is promised; the first one if there is none."""
    return next((each for each in paces if is_promised(at_pace(definition, each))), paces[0])


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
