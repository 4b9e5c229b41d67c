"""What a training reads: its image and its checkpoints."""

from typing import Protocol


class ImageSource(Protocol):
    """Container images (ECR)."""

    def has_image(self, repository: str, tag: str) -> bool:
        """Tell whether the repository of the account's own registry has an image of this tag."""
        ...

    def digest(self, repository: str, tag: str, account: str | None = None) -> str | None:
        """Return the digest (`sha256:…`) of the image of this tag, None when there is none.

        `account` names another account's registry.

        Raises:
            PermanentError: the registry may not be read.
            TransientError: throttled or unreachable.
        """
        ...


class CheckpointSource(Protocol):
    """Checkpoints in S3."""

    def newest_complete(self, checkpoint_uri: str, job_id: str) -> str | None:
        """Return the URI of the job's newest complete checkpoint, None when there is none."""
        ...
