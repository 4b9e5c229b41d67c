"""Checkpoints in S3."""

from typing import Protocol


class CheckpointSource(Protocol):
    """Checkpoints in S3."""

    def newest_complete(self, checkpoint_uri: str, job_id: str) -> str | None:
        """Return the URI of the newest complete checkpoint of the job, None if there is none."""
        ...
