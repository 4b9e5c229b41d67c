"""Current spot prices by zone (DescribeSpotPriceHistory, EC2 API Reference)."""

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from relaunch.adapters.aws.errors import readable_answer
from relaunch.ports import Clock, TransientError

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import SpotPriceTypeDef

MAX_AGE = timedelta(minutes=10)
# After a failure the next request is delayed, so that a batch of jobs does not wait for EC2 once for each of them.
PAUSE_AFTER_FAILURE = timedelta(minutes=1)

Prices = Mapping[tuple[str, str], tuple[float, datetime]]


class Ec2SpotPrices:
    """Implements SpotPriceSource; caches the prices for ten minutes, also for requests of fewer instance types."""

    def __init__(self, client: "EC2Client", clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._kept: dict[frozenset[str], tuple[datetime, Prices]] = {}
        self._failure: tuple[datetime, str] | None = None

    def spot_prices(self, instance_types: Iterable[str]) -> Prices:
        wanted = frozenset(instance_types)
        now = self._clock.now()
        if not wanted:
            return MappingProxyType({})
        for names, (loaded_at, prices) in self._kept.items():
            if wanted <= names and now - loaded_at < MAX_AGE:
                return prices if wanted == names else _of_types(wanted, prices)
        if self._failure and now - self._failure[0] < PAUSE_AFTER_FAILURE:
            raise TransientError(self._failure[1])
        prices = self._ask(wanted, now)
        self._kept[wanted] = (now, prices)
        return prices

    def _ask(self, wanted: frozenset[str], now: datetime) -> Prices:
        try:
            with readable_answer("reading spot prices"):
                prices = _newest_per_zone(self._entries(wanted, now))
        except (BotoCoreError, ClientError, TransientError) as error:
            message = f"spot prices of {', '.join(sorted(wanted))} cannot be loaded: {error}"
            self._failure = (now, message)
            raise TransientError(message) from error
        self._failure = None
        return prices

    def _entries(self, wanted: frozenset[str], now: datetime) -> "Iterator[SpotPriceTypeDef]":
        # A history that starts now contains the current price of each zone.
        pages = self._client.get_paginator("describe_spot_price_history").paginate(
            InstanceTypes=sorted(wanted),  # type: ignore[arg-type]  # names are from the stack's settings
            ProductDescriptions=["Linux/UNIX"],
            StartTime=now,
        )
        for page in pages:
            yield from page["SpotPriceHistory"]


def read_history(client: "EC2Client", instance_type: str, zone: str, since: datetime) -> list[tuple[datetime, float]]:
    """Return the price of a type in a zone that is in effect at a time, and every later one, oldest first.

    Raises:
        TransientError: the answer cannot be read.
        ClientError, BotoCoreError: the call failed.
    """
    pages = client.get_paginator("describe_spot_price_history").paginate(
        InstanceTypes=[instance_type],  # type: ignore[list-item]  # EC2 launched one
        ProductDescriptions=["Linux/UNIX"],
        AvailabilityZone=zone,
        StartTime=since,
    )
    with readable_answer("reading spot prices"):
        prices = {each["Timestamp"]: float(each["SpotPrice"]) for page in pages for each in page["SpotPriceHistory"]}
        if not all(0 <= price < math.inf for price in prices.values()):
            raise ValueError("a price is not a number")
    return sorted(prices.items())


def _of_types(wanted: frozenset[str], prices: Prices) -> Prices:
    return MappingProxyType({key: price for key, price in prices.items() if key[0] in wanted})


def _newest_per_zone(entries: "Iterator[SpotPriceTypeDef]") -> Prices:
    newest: dict[tuple[str, str], tuple[float, datetime]] = {}
    for entry in entries:
        key = (entry["InstanceType"], entry["AvailabilityZone"])
        if key not in newest or newest[key][1] < entry["Timestamp"]:
            newest[key] = (float(entry["SpotPrice"]), entry["Timestamp"])
    if not all(0 <= price < math.inf for price, _ in newest.values()):
        raise ValueError("a price is not a number")
    return MappingProxyType(newest)
