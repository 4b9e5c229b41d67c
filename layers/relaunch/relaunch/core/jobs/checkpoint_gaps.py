"""How long a training takes from one checkpoint to the next, by those that it saved in its own time.

A checkpoint that it saved because it was to leave came early: saves two hours apart would seem to be minutes apart, and
a training that goes on as before to have stalled. Left out are those after the warning, the intent to stop or the stop
of an attempt, and the last one of an attempt that is over, of which that is no longer known.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from statistics import median

from relaunch.core.jobs.attempt import Attempt
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.progress import SavedCheckpoint, resumed_step
from relaunch.core.jobs.state import NotedProgress

ENOUGH_GAPS = 4
"""How many must be known before their median is believed: some trainings save twice at their start, then every hour."""
_KEPT_GAPS = 5
"""A training may save more seldom from some point on, or on a slower machine: three that are longer are the median."""


def latest_gaps(job: Job, newest: SavedCheckpoint, before: NotedProgress | None) -> tuple[float, ...]:
    """Return the latest times between two checkpoints of a job in seconds, oldest first, with those noted before.

    The time from the start of an attempt to what it saves first is one of them, for want of a better one, unless it is
    shorter than what is usual: the step that it resumed from may be close to one at which it saves.
    """
    gaps = list(_known(before))
    for gap, is_first in _new_gaps(job.attempt, newest, before):
        if gap > 0 and (not is_first or gap >= usual_gap(gaps)):
            gaps.append(gap)
    return tuple(gaps[-_KEPT_GAPS:])


def usual_gap(gaps: Sequence[float]) -> float:
    """Return the usual time between two checkpoints in seconds, 0 if none is known.

    It is the median: one that hung once is not expected to hang as long again, and one save that came early makes none
    of the next ones late. While fewer than ENOUGH_GAPS are known, it is the longest: an odd one could be the median.
    """
    if len(gaps) >= ENOUGH_GAPS:
        return median(gaps)
    return max(gaps, default=0.0)


def retrained_at(job: Job, newest: SavedCheckpoint) -> datetime | None:
    """Return when the current attempt last saved a step below the newest one, which it could not resume from.

    None if it saved none.
    """
    if job.attempt is None or newest.attempt == job.attempt.number:
        return None
    return max((at for _, at in newest.retrained), default=None)


def has_trained(job: Job, newest: SavedCheckpoint) -> bool:
    """Return whether the newest checkpoint is a step that the current attempt gained."""
    attempt = job.attempt
    if attempt is None or attempt.number != newest.attempt:
        return False
    return newest.step > resumed_step(attempt.placement.resume_uri)


def _known(before: NotedProgress | None) -> tuple[float, ...]:
    if before is None:
        return ()
    # An earlier version kept one figure alone.
    return before.gaps_seconds or ((before.interval_seconds,) if before.interval_seconds else ())


def _new_gaps(
    attempt: Attempt | None, newest: SavedCheckpoint, before: NotedProgress | None
) -> Iterable[tuple[float, bool]]:
    """Yield the times before each checkpoint that was not known yet, and whether the attempt saved none before it."""
    current = attempt if attempt is not None and attempt.number == newest.attempt else None
    saves = [*newest.earlier, (newest.step, newest.saved_at)]
    since = None if current is None else current.started_at
    resumed = 0 if current is None else resumed_step(current.placement.resume_uri)
    is_first = True
    if before is not None and before.attempt == newest.attempt:
        saves = [each for each in saves if each[0] > before.step]
        since = before.at
        is_first = before.step <= resumed
    leaves_at = _leaves_at(current)
    own = saves[:-1] if current is None else saves
    for step, at in own:
        if leaves_at is not None and at >= leaves_at:
            return
        # At its start it may save the step again that it resumed from.
        if since is not None and step > resumed:
            yield (at - since).total_seconds(), is_first
        since = at
        is_first = is_first and step <= resumed


def _leaves_at(attempt: Attempt | None) -> datetime | None:
    """Return from when on an attempt may save because it is to leave; None if nothing says so."""
    if attempt is None:
        return None
    ends = (each.at for each in (attempt.intent, attempt.stop) if each is not None)
    return min((at for at in (attempt.warned_at, *ends) if at is not None), default=None)
