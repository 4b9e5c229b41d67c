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
from relaunch.core.selection.rates import with_rate
from relaunch.ports import PortError, ReconcileDependencies
from relaunch.usecases.advance_job import advance_job
from relaunch.usecases.find_checkpoints import newest_of

_TRIES = 3
POLLED_EVERY = 5
"""In one of so many minutes the checkpoints of a job are listed that is looked at every minute."""


def note_progress_of(
    jobs: Iterable[Job], minute: datetime, deps: ReconcileDependencies, has_time: Callable[[], bool]
) -> int:
    """Note how far the jobs are that were looked at, while there is time; return how many were looked for in S3.

    A bucket that cannot be read is no matter here: the next launch of its job says so. What is left out for lack of
    time is looked for when the job is due again.
    """
    noted = 0
    for job in jobs:
        if not _is_due(job, minute):
            continue
        if not has_time():
            break
        noted += 1
        try:
            _note(job, deps)
        except PortError as error:
            deps.log.decided("progress not noted", job_id=job.job_id, reason=str(error))
    return noted


def _is_due(job: Job, minute: datetime) -> bool:
    """Return whether a job runs that saves checkpoints: it is looked at every ten minutes, or by the minute."""
    if job.state is not JobState.RUNNING or job.definition.checkpoint_uri is None:
        return False
    return not is_polled(job) or (zlib.crc32(job.job_id.encode()) + minute.minute) % POLLED_EVERY == 0


def _note(job: Job, deps: ReconcileDependencies) -> None:
    newest = newest_of(job, deps.checkpoints)
    if newest is None:
        return
    advance_job(job.job_id, lambda now: ProgressNoted(note_progress(now, newest, deps.clock.now())), deps)
    if job.noted is None or (job.noted.step, job.noted.attempt) != (newest.step, newest.attempt):
        _learn(job, newest, deps)


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
