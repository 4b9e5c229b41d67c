"""Find the checkpoint that a job which retries another one resumes from."""

from collections.abc import Iterable

from relaunch.core.jobs.job import Job
from relaunch.core.jobs.progress import SavedCheckpoint
from relaunch.core.jobs.trigger_facts import ResumePoint
from relaunch.ports import CheckpointSource, PermanentError


class MissingCheckpointError(PermanentError):
    """The checkpoint that was asked for is not there, or not complete."""


def find_resume_uri(points: Iterable[ResumePoint], checkpoints: CheckpointSource) -> str | None:
    """Return the checkpoint of the first point that has one, None if none has.

    Raises:
        MissingCheckpointError: certain checkpoints were asked for, and none of them is complete.
        TransientError, PermanentError: checkpoints cannot be read.
    """
    for point in points:
        found = checkpoints.newest_complete(point.checkpoint_uri, point.job_id, step=point.step, attempt=point.attempt)
        if found is not None:
            return found
        if point.is_chosen:
            raise MissingCheckpointError(f"there is no complete {point}")
    return None


def newest_of(job: Job, checkpoints: CheckpointSource) -> SavedCheckpoint | None:
    """Return the newest complete checkpoint that the job itself left; None before its first launch.

    Raises:
        TransientError, PermanentError: its checkpoints cannot be read.
    """
    uri = job.definition.checkpoint_uri
    if uri is None or job.attempt is None:
        return None
    return checkpoints.newest_saved(uri, job.job_id)
