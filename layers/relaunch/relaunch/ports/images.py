"""Container images in ECR."""

from typing import Protocol

from relaunch.core.revisions.images import FoundImage


class ImageSource(Protocol):
    """Container images (ECR)."""

    def find_image(self, repository: str, reference: str, account: str | None = None) -> FoundImage | None:
        """Return the image of this tag or digest (`sha256:…`), None when there is none.

        `account` names another account's registry. What machines the image is for is told where it can be: that it
        cannot is no error.

        Raises:
            PermanentError: the registry may not be read.
            TransientError: throttled or unreachable.
        """
        ...
