"""Where `relaunch amis` finds machine images."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from relaunch.core.offerings.instance_types import Ami, AmiKind, AmiSystem


class AmiSource(Protocol):
    """Machine images that ECS recommends in one region."""

    @property
    def region(self) -> str:
        """Return the region's name."""

    def recommended(self, kinds: "Iterable[AmiKind]", system: "AmiSystem") -> "list[Ami]":
        """Return an image for each kind, without an ID where the region has none.

        Raises:
            PermanentError: access is denied.
            TransientError: throttled or unreachable.
        """
