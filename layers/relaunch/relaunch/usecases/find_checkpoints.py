"""Find the checkpoint that a job which retries another one resumes from."""

from collections.abc import Callable, Iterable

from relaunch.core.jobs.job import Job
from relaunch.core.jobs.progress import SavedCheckpoint
from relaunch.core.jobs.trigger_facts import ResumePoint
from relaunch.ports import CheckpointSource, PermanentError
from relaunch.ports.checkpoints import ignore_unusable


class MissingCheckpointError(PermanentError):
    """The checkpoint that was asked for is not there, or not complete."""


def find_resume_uri(
    points: Iterable[ResumePoint],
    checkpoints: CheckpointSource,
    on_unusable: Callable[[str], None] = ignore_unusable,
) -> str | None:
    """Return the checkpoint of the first point that has one, None if none has.

    `on_unusable` is called with the reason for each that was passed over.

    Raises:
        MissingCheckpointError: certain checkpoints were asked for, and none of them is complete.
        TransientError, PermanentError: checkpoints cannot be read.
    """
    for point in points:
        unusable: list[str] = []
        found = checkpoints.newest_complete(
            point.checkpoint_uri, point.job_id, step=point.step, attempt=point.attempt, on_unusable=unusable.append
        )
        for each in unusable:
            on_unusable(each)
        if found is not None:
            return found
        if point.is_chosen:
            raise MissingCheckpointError("; ".join((f"there is no complete {point}", *unusable[:1])))
    return None


def newest_of(
    job: Job,
    checkpoints: CheckpointSource,
    on_unusable: Callable[[str], None] = ignore_unusable,
    at_most: int | None = None,
) -> SavedCheckpoint | None:
    """Return the newest complete checkpoint that the job itself left; None before its first launch.

    Raises:
        TooManyObjectsError: it has more than `at_most` objects, or than are listed in any case.
        TransientError, PermanentError: its checkpoints cannot be read.
    """
    uri = job.definition.checkpoint_uri
    if uri is None or job.attempt is None:
        return None
    return checkpoints.newest_saved(uri, job.job_id, at_most=at_most, on_unusable=on_unusable)
