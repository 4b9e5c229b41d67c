"""Note how far running trainings are, by their newest checkpoints: for lists of jobs, and to find those that hang."""

import zlib
from collections.abc import Callable, Iterable
from datetime import datetime

from relaunch.core.jobs.job import Job
from relaunch.core.jobs.progress import SavedCheckpoint
from relaunch.core.jobs.rates import observe_rate
from relaunch.core.jobs.state import JobState
from relaunch.core.jobs.training import note_progress
from relaunch.core.lifecycle.decision import is_polled
from relaunch.core.lifecycle.events import ProgressNoted
from relaunch.core.lifecycle.metrics import Metric, MetricDatum
from relaunch.core.lifecycle.turns import in_turn
from relaunch.core.selection.rates import with_rate
from relaunch.ports import PortError, ReconcileDependencies
from relaunch.ports.checkpoints import TooManyObjectsError
from relaunch.usecases.advance_job import advance_job
from relaunch.usecases.find_checkpoints import newest_of

_TRIES = 3
POLLED_EVERY = 5
"""In one of so many minutes the checkpoints of a job are listed that is looked at every minute."""


FEW_PAGES = 10
"""How many pages of a thousand objects are listed of each job, before those that have more get what time is left."""
MOST_PAGES = 100
"""As many as a source of checkpoints lists."""
_PAGE = 1_000


def note_progress_of(
    jobs: Iterable[Job], minute: datetime, deps: ReconcileDependencies, has_time_for: Callable[[int], bool]
) -> int:
    """Note how far the jobs are that were looked at, while there is time; return how many were looked for in S3.

    A bucket that cannot be read is no matter here: the next launch of its job says so. What is left out for lack of
    time is counted, and looked for when the job is due again. `has_time_for` returns whether so many pages can be
    listed.
    """
    due = in_turn([job for job in jobs if _is_due(job, minute)], minute)
    large: list[Job] = []
    seen = 0
    for job in due:
        if not has_time_for(FEW_PAGES) or (large and _must_stop_for_large(has_time_for)):
            break
        seen += 1
        if not _note(job, deps, FEW_PAGES):
            large.append(job)
    left_out = len(due) - seen
    # Drawn: at the minute at which neighbours are reached, the same one would always be the first.
    for job in sorted(large, key=lambda each: zlib.crc32(f"{minute.timestamp():.0f} {each.job_id}".encode())):
        if has_time_for(MOST_PAGES):
            _note(job, deps, MOST_PAGES)
        else:
            left_out += 1
    if left_out:
        deps.metrics.record(MetricDatum(Metric.PROGRESS_LEFT_OUT, left_out))
        deps.log.decided("progress left out", reason=f"{left_out} of {len(due)} jobs, for lack of time")
    return seen


def _must_stop_for_large(has_time_for: Callable[[int], bool]) -> bool:
    """Return whether there is just time left to list a job that has many pages."""
    return has_time_for(MOST_PAGES) and not has_time_for(MOST_PAGES + 2 * FEW_PAGES)


def _is_due(job: Job, minute: datetime) -> bool:
    """Return whether a job runs that saves checkpoints: it is looked at every ten minutes, or by the minute."""
    if job.state is not JobState.RUNNING or job.definition.checkpoint_uri is None:
        return False
    return not is_polled(job) or (zlib.crc32(job.job_id.encode()) + minute.minute) % POLLED_EVERY == 0


def _note(job: Job, deps: ReconcileDependencies, pages: int) -> bool:
    """Note how far a job is; return False if it has more than these pages and might be looked for in more of them."""
    try:
        newest = newest_of(job, deps.checkpoints, at_most=pages * _PAGE)
        if newest is not None:
            advance_job(job.job_id, lambda now: ProgressNoted(note_progress(now, newest, deps.clock.now())), deps)
            if job.noted is None or (job.noted.step, job.noted.attempt) != (newest.step, newest.attempt):
                _learn(job, newest, deps)
    except PortError as error:
        if isinstance(error, TooManyObjectsError) and pages < MOST_PAGES:
            return False
        deps.log.decided("progress not noted", job_id=job.job_id, reason=str(error))
    return True


def _learn(job: Job, newest: SavedCheckpoint, deps: ReconcileDependencies) -> None:
    """Save what the newest checkpoint shows of the speed; where others are quicker several times, the next one does.

    An attempt counts once, whatever is noted of it how often (core.selection.rates).
    """
    rate = observe_rate(job, newest)
    if rate is None:
        return
    for _ in range(_TRIES):
        record = deps.rates.load_rate(job.definition.name, job.progress.accelerators)
        after = with_rate(record, rate)
        if after is record or deps.rates.save_rate(after):
            return
