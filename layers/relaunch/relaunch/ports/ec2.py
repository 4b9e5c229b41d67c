"""EC2: instance types, the zones that offer them, spot prices and spot placement scores."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from relaunch.core.offerings.instance_types import InstanceType


class InstanceTypeSource(Protocol):
    """What EC2 says of instance types."""

    def instance_types(self) -> Mapping[str, InstanceType]:
        """Return the region's types with accelerators; one that cannot be read is left out.

        Raises:
            TransientError: throttled or unreachable.
        """
        ...


class ZoneSource(Protocol):
    """Where EC2 offers instance types."""

    def zones(self, instance_types: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
        """Return the region's zones by type, of those of the types that it offers.

        Raises:
            TransientError: throttled or unreachable.
        """
        ...


class SpotPriceSource(Protocol):
    """Current spot prices."""

    def spot_prices(self, instance_types: Iterable[str]) -> Mapping[tuple[str, str], tuple[float, datetime]]:
        """Return (type, zone) → (USD per hour, since when), for Linux.

        Raises:
            TransientError: throttled or unreachable.
        """
        ...


class ZoneScoreSource(Protocol):
    """EC2's odds of spot machines, zone by zone, as the command asks for them."""

    def zone_scores(self, instance_types: Iterable[str]) -> Mapping[str, int]:
        """Return zone → odds, 1 (hardly) to 10 (very likely), that one of these types can be launched there on spot.

        What is not known is not there: no error is raised.
        """
        ...


class RegionScoreSource(Protocol):
    """EC2's odds of spot machines in the whole region."""

    def region_score(self, instance_types: Sequence[str], vcpus: int) -> int | None:
        """Return the odds, 1 to 10, that so many vCPU of any of these types can be launched; None: EC2 gives none.

        Raises:
            PermanentError: EC2 refuses the question: its limit of new questions a day, or of capacity asked about.
            TransientError: throttled or unreachable.
        """
        ...
