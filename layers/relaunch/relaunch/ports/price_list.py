"""AWS Price List."""

from collections.abc import Iterable, Mapping
from typing import Protocol


class PriceListSource(Protocol):
    """List prices of the region, in USD, for Linux."""

    def on_demand_prices(self, instance_types: Iterable[str]) -> Mapping[str, float]:
        """Return prices per hour by type, for the types that have one.

        Raises:
            PermanentError: the prices are in another currency, or access is denied.
            TransientError: throttled or unreachable.
        """
        ...

    def gp3_price(self) -> float:
        """Return the price of a gp3 volume per GiB and month.

        Raises:
            PermanentError: there is none in USD, or access is denied.
            TransientError: throttled or unreachable.
        """
        ...
