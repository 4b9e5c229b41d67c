"""Checkpoints in S3."""

from typing import Protocol


class CheckpointSource(Protocol):
    """Checkpoints in S3."""

    def newest_complete(self, checkpoint_uri: str, job_id: str) -> str | None:
        """Return the URI of the job's newest complete checkpoint, None when there is none."""
        ...
