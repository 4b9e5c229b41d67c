"""The complete checkpoints of a job that are known, and when the training was there.

The series of a training has its steps, of which only some are checkpoints. Known as one are: what an attempt was given
to resume from, what was noted with the job, and the newest ones that were found. One of an earlier attempt has a time
if the series has its step: it has those steps alone that the training went on from, as docs/checkpoints.md says.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from relaunch.core.jobs.attempt import Attempt
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.progress import SavedCheckpoint
from relaunch.core.jobs.reported import SeriesPoint

MOST_DRAWN = 60
"""How many checkpoints a drawing has at most."""
_FOLDER = re.compile(r"(?:.*/)?(?P<job>[^/]+)/attempt-(?P<attempt>[0-9]{1,6})/step-(?P<step>[0-9]{1,19})/?")
# The clock of the training's machine, and that of the cluster which says when it started.
_CLOCKS_DIFFER = timedelta(seconds=5)


@dataclass(frozen=True, slots=True, order=True)
class KnownCheckpoint:
    """A checkpoint: the attempt that wrote it, its step, when the training was there or it was saved, and its loss."""

    step: int
    attempt: int
    at: datetime | None = None
    loss: float | None = None


def read_folder(uri: str | None, job_id: str) -> tuple[int, int] | None:
    """Return the attempt and the step of a checkpoint of this job; None for another job's, and for no URI of one."""
    found = _FOLDER.fullmatch(uri or "")
    if found is None or found["job"] != job_id:
        return None
    return int(found["attempt"]), int(found["step"])


def find_checkpoints(
    job: Job, attempts: Sequence[Attempt], series: Sequence[SeriesPoint], saved: SavedCheckpoint | None
) -> tuple[KnownCheckpoint, ...]:
    """Return the checkpoints of a job that are known, by step."""
    points = {each.step: each for each in series}
    windows = {each.number: _window(each) for each in attempts}
    found: dict[tuple[int, int], KnownCheckpoint] = {}
    for known in (*_resumed(job, attempts), *_noted(job), *_saved(attempts, saved)):
        key = (known.attempt, known.step)
        before = found.get(key)
        at = known.at or (before.at if before is not None else None)
        found[key] = replace(known, at=at)
    return tuple(sorted(_with_point(each, points.get(each.step), windows.get(each.attempt)) for each in found.values()))


def _resumed(job: Job, attempts: Sequence[Attempt]) -> Iterable[KnownCheckpoint]:
    uris = {placement.resume_uri for each in attempts for placement in (*each.closed_placements, each.placement)}
    for folder in (read_folder(uri, job.job_id) for uri in uris):
        if folder is not None:
            yield KnownCheckpoint(folder[1], folder[0])


def _noted(job: Job) -> Iterable[KnownCheckpoint]:
    if job.noted is not None:
        yield KnownCheckpoint(job.noted.step, job.noted.attempt, job.noted.at)


def _saved(attempts: Sequence[Attempt], saved: SavedCheckpoint | None) -> Iterable[KnownCheckpoint]:
    if saved is None:
        return
    for step, at in (*saved.earlier, (saved.step, saved.saved_at)):
        yield KnownCheckpoint(step, saved.attempt, at)
    for step, at in saved.retrained:
        started = (each.number for each in attempts if each.started_at is not None and each.started_at <= at)
        yield KnownCheckpoint(step, max(started, default=saved.attempt), at)


_Window = tuple[datetime, datetime | None]


def _window(attempt: Attempt) -> _Window | None:
    """Return when the attempt ran."""
    if attempt.started_at is None:
        return None
    ends = [each for each in (attempt.program_ended_at, attempt.stop and attempt.stop.at) if each]
    return attempt.started_at - _CLOCKS_DIFFER, max(ends) + _CLOCKS_DIFFER if ends else None


def _with_point(known: KnownCheckpoint, point: SeriesPoint | None, window: _Window | None) -> KnownCheckpoint:
    """Return the checkpoint with the loss and the time of its step, if it is the one that the series has."""
    at = point_time(point) if point is not None else None
    if point is None or at is None or window is None or at < window[0] or (window[1] is not None and at > window[1]):
        return known
    return replace(known, at=at, loss=finite(point.loss))


def point_time(point: SeriesPoint) -> datetime | None:
    """Return when a step was done; None if its number is no moment."""
    try:
        return datetime.fromtimestamp(point.at, tz=UTC)
    except (ValueError, OverflowError, OSError):
        return None


def finite(number: float | None) -> float | None:
    """Return the number, None if it is not finite."""
    return number if number is not None and math.isfinite(number) else None
