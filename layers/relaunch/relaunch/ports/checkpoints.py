"""Checkpoints in S3, or in OSS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from relaunch.ports.errors import PermanentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from relaunch.core.definitions.checkpoint_bucket import BucketFacts
    from relaunch.core.jobs.progress import SavedCheckpoint


def ignore_unusable(_: str) -> None:
    """Do nothing with the reason for which a checkpoint cannot be used."""


class TooManyObjectsError(PermanentError):
    """A job has more objects than were to be listed."""


class CheckpointSource(Protocol):
    """Checkpoints in S3, or in OSS.

    Trainings write them: one that is not what it should be is passed over, and the one before it taken. `on_unusable`
    is called with the reason for each that was, a line of printable words: `attempt-2/step-0000300 cannot be used: …`.
    """

    def newest_complete(
        self,
        checkpoint_uri: str,
        job_id: str,
        *,
        step: int | None = None,
        attempt: int | None = None,
        on_unusable: Callable[[str], None] = ignore_unusable,
    ) -> str | None:
        """Return the URI of the newest complete checkpoint of the job, None if there is none.

        With `step` it is the newest of that step, with `attempt` of those that this attempt wrote.

        Raises:
            PermanentError: checkpoints cannot be read.
        """

    def newest_saved(
        self,
        checkpoint_uri: str,
        job_id: str,
        *,
        at_most: int | None = None,
        on_unusable: Callable[[str], None] = ignore_unusable,
    ) -> SavedCheckpoint | None:
        """Return the newest complete checkpoint of the job with its step and time, None if there is none.

        Raises:
            TooManyObjectsError: the job has more than `at_most` objects, or than are listed in any case.
            PermanentError: checkpoints cannot be read.
        """

    def probe(self, checkpoint_uri: str, job_id: str) -> None:
        """Check, before a job without checkpoints is launched, that its checkpoints could be read.

        Raises:
            PermanentError: they could not.
        """


class BucketSource(Protocol):
    """The settings of buckets, as far as the caller may see them."""

    def describe(self, bucket: str) -> BucketFacts:
        """Return what is known of a bucket."""
