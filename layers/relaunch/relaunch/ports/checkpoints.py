"""Checkpoints in S3, or in OSS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from relaunch.core.definitions.checkpoint_bucket import BucketFacts
    from relaunch.core.jobs.progress import SavedCheckpoint


class CheckpointSource(Protocol):
    """Checkpoints in S3, or in OSS."""

    def newest_complete(
        self, checkpoint_uri: str, job_id: str, *, step: int | None = None, attempt: int | None = None
    ) -> str | None:
        """Return the URI of the newest complete checkpoint of the job, None if there is none.

        With `step` it is the newest of that step, with `attempt` of those that this attempt wrote.

        Raises:
            PermanentError: checkpoints cannot be read.
        """

    def newest_saved(self, checkpoint_uri: str, job_id: str) -> SavedCheckpoint | None:
        """Return the newest complete checkpoint of the job with its step and time, None if there is none.

        Raises:
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
