"""Find the checkpoint that a job which retries another one resumes from."""

from collections.abc import Iterable

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
