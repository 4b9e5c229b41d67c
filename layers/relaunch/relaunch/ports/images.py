"""Container images in ECR."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from relaunch.core.revisions.images import FoundImage


class ImageSource(Protocol):
    """Container images (ECR)."""

    def find_image(self, repository: str, reference: str, account: str | None = None) -> FoundImage | None:
        """Return the image of this tag or digest (`sha256:…`), None if there is none.

        `account` is the account of another registry. The platforms of the image are empty if they cannot be read.

        Raises:
            PermanentError: the registry may not be read.
        """
