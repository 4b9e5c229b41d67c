"""How many steps per second the newest attempt of a job does: only where its checkpoints agree on it.

The times between its checkpoints are compared, with the saves and evaluations that are in them; of a training that
keeps few, those between steps of the series that it saved, thinned to as many. The start is in none of them. The usual
time of a step is the median by steps, and the rate that of all times near it: a hang, a slow neighbour or an attempt
before it that the series has are left out. An attempt that has just begun has too few of them, and where most are far
from the median nobody knows how fast it is: then nothing is learned.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import pairwise

from relaunch.core.jobs.job import Job
from relaunch.core.jobs.progress import SavedCheckpoint
from relaunch.core.jobs.reported import thin
from relaunch.core.selection.rates import ObservedRate, quantile, work_of

_LEAST_POINTS = 4
_MOST_POINTS = 21
_NEAR = 0.25
LEAST_TIME = timedelta(minutes=5)
"""In less than that, what one save or one slow batch takes is much of it."""


def observe_rate(job: Job, newest: SavedCheckpoint) -> ObservedRate | None:
    """Return the rate of the job's current attempt until its newest checkpoint; None if that is not known."""
    attempt = job.attempt
    if attempt is None or attempt.started_at is None or newest.attempt != attempt.number:
        return None
    if not job.progress.accelerators or not job.definition.target.capabilities.offers_instance_types:
        return None
    began_at = attempt.started_at.timestamp()
    saved = [(step, at.timestamp()) for step, at in (*newest.earlier, (newest.step, newest.saved_at))]
    points = saved[-_MOST_POINTS:]
    if len(points) < _LEAST_POINTS:
        own = [each for each in newest.reported.series if each.at >= began_at]
        points = [(each.step, each.at) for each in thin(own, _MOST_POINTS)]
    rate = _steady_rate(points)
    if rate is None:
        return None
    return ObservedRate(
        job_id=job.job_id,
        attempt=attempt.number,
        step=newest.step,
        at=newest.saved_at,
        steps_per_second=rate,
        work=work_of(job.definition),
        save_seconds=newest.reported.save_seconds,
    )


def _steady_rate(points: Sequence[tuple[int, float]]) -> float | None:
    between = [(later[0] - sooner[0], later[1] - sooner[1]) for sooner, later in pairwise(points)]
    between = [(steps, seconds) for steps, seconds in between if steps > 0 and seconds > 0]
    if len(between) < _LEAST_POINTS - 1 or _total(seconds for _, seconds in between) < LEAST_TIME.total_seconds():
        return None
    usual = quantile([(seconds / steps, steps) for steps, seconds in between], 0.5)
    near = [(steps, seconds) for steps, seconds in between if abs(seconds / steps - usual) <= _NEAR * usual]
    if 2 * _total(steps for steps, _ in near) <= _total(steps for steps, _ in between):
        return None
    return _total(steps for steps, _ in near) / _total(seconds for _, seconds in near)


def _total(values: Iterable[float]) -> float:
    return sum(values)
