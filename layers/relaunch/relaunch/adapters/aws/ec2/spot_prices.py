"""Spot prices per zone from EC2's DescribeSpotPriceHistory ("DescribeSpotPriceHistory", EC2 API Reference)."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from relaunch.ports import Clock, TransientError

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import SpotPriceTypeDef

MAX_AGE = timedelta(minutes=10)
# After a failed call the next one is not made at once: a batch of jobs shall not wait for EC2 one after the other.
PAUSE_AFTER_FAILURE = timedelta(minutes=1)

Prices = Mapping[tuple[str, str], tuple[float, datetime]]


class Ec2SpotPrices:
    """Asks EC2 for the prices in effect now and keeps them ten minutes, as long as this container lives."""

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
        if wanted in self._kept and now - self._kept[wanted][0] < MAX_AGE:
            return self._kept[wanted][1]
        if self._failure and now - self._failure[0] < PAUSE_AFTER_FAILURE:
            raise TransientError(self._failure[1])
        prices = self._ask(wanted, now)
        self._kept[wanted] = (now, prices)
        return prices

    def _ask(self, wanted: frozenset[str], now: datetime) -> Prices:
        try:
            prices = _newest_per_zone(self._entries(wanted, now))
        except (BotoCoreError, ClientError) as error:
            message = f"spot prices of {', '.join(sorted(wanted))} cannot be had: {error}"
            self._failure = (now, message)
            raise TransientError(message) from error
        self._failure = None
        return prices

    def _entries(self, wanted: frozenset[str], now: datetime) -> "Iterator[SpotPriceTypeDef]":
        # A history that starts now holds the price in effect in each zone, whenever it was set.
        pages = self._client.get_paginator("describe_spot_price_history").paginate(
            InstanceTypes=sorted(wanted),  # type: ignore[arg-type]  # names come from the stack's settings
            ProductDescriptions=["Linux/UNIX"],
            StartTime=now,
        )
        for page in pages:
            yield from page["SpotPriceHistory"]


def _newest_per_zone(entries: "Iterator[SpotPriceTypeDef]") -> Prices:
    newest: dict[tuple[str, str], tuple[float, datetime]] = {}
    for entry in entries:
        place = (entry["InstanceType"], entry["AvailabilityZone"])
        if place not in newest or newest[place][1] < entry["Timestamp"]:
            newest[place] = (float(entry["SpotPrice"]), entry["Timestamp"])
    return MappingProxyType(newest)
