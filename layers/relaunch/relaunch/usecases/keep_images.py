"""Read the images that jobs have held for long, so that a registry which archives unused ones takes them for used."""

from collections.abc import Callable
from datetime import datetime, timedelta

from relaunch.core.revisions.images import held_images
from relaunch.ports import PortError, ReconcileDependencies

HELD_FOR = timedelta(days=30)
"""Half of the least UnusedImageDays of infrastructure/training.yaml: of four reads in time, three may fail."""

_MAX_JOBS = 1000
_FAR_AHEAD = timedelta(days=3650)


def is_reading_due(now: datetime) -> bool:
    """Return whether the call at this minute reads images: once a week."""
    return (now.weekday(), now.hour, now.minute) == (2, 3, 33)


def keep_images(deps: ReconcileDependencies, has_time: Callable[[], bool] = lambda: True) -> int:
    """Read the images of jobs that were accepted a month ago while there is time; return how many are there.

    ECR takes BatchGetImage for a pull (aws/containers-roadmap#2390), as it takes that of the agent at each launch. What
    fails is read a week later.
    """
    now = deps.clock.now()
    held: set[tuple[str, str]] = set()
    for job_id in deps.jobs.load_due(now + _FAR_AHEAD, _MAX_JOBS):
        job = deps.jobs.load_job(job_id) if has_time() else None
        if job is not None and job.accepted_at <= now - HELD_FOR:
            held |= held_images(job.revision, job.images)
    count = 0
    for repository, digest in sorted(held):
        try:
            count += has_time() and deps.images.find_image(repository, digest) is not None
        except PortError as error:
            deps.log.decided("image not read", reason=f"{repository}@{digest}: {error}")
    return count
