"""Several sources of offerings as one: machines of our own and capacity providers compete with each other."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.offering import Offering
from relaunch.core.offerings.peaks import Peaks
from relaunch.core.offerings.snapshot import OfferingsSnapshot, PriceOrigin, SnapshotPart
from relaunch.ports import ANY_OPTION, OfferingSource


class CombinedOfferings:
    """Implements OfferingSource with the offerings of all sources, which have the same snapshot.

    The source of most instance types should be the first one: the prices that it loads serve the others too.
    """

    def __init__(self, first: OfferingSource, *others: OfferingSource) -> None:
        self._first = first
        self._sources: Sequence[OfferingSource] = (first, *others)

    def offerings(self, now: datetime, options: Collection[PurchaseOption] = ANY_OPTION) -> tuple[Offering, ...]:
        return tuple(offering for source in self._sources for offering in source.offerings(now, options))

    def catalogue(self) -> Mapping[str, InstanceType]:
        return {name: row for source in self._sources for name, row in source.catalogue().items()}

    def peaks(self) -> Mapping[str, Peaks]:
        return {model: row for source in self._sources for model, row in source.peaks().items()}

    def price_origins(self, now: datetime) -> tuple[PriceOrigin, ...]:
        origins: dict[SnapshotPart, PriceOrigin] = {}
        for source in self._sources:
            for each in source.price_origins(now):
                origins.setdefault(each.part, each)
        return tuple(origins[part] for part in SnapshotPart if part in origins)

    def snapshot(self, now: datetime) -> OfferingsSnapshot:
        return self._first.snapshot(now)
