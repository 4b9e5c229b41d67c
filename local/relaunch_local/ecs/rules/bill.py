"""What EC2 bills for an instance, by its launch, its states, its end and the prices alone. It knows no application.

Sources. Billed are the seconds `running`; `pending` and `shutting-down` are not ("Amazon EC2 instance state changes",
EC2 User Guide), with a minimum of 60 seconds (per-second billing, October 2017). Spot costs the price in effect at the
beginning of each instance-hour (the announcement of the pricing model of November 2017, and the FAQs of EC2). Nothing
is billed for the usage of a spot instance that EC2 interrupts within its first hour, and the seconds used of one that
its user ends ("Billing for interrupted Spot Instances", EC2 User Guide). A volume is billed by the second, 60 seconds
at least, whatever its instance does ("Amazon EBS pricing"); so is a public IPv4 address ("Amazon VPC pricing").
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count

_LEAST = timedelta(seconds=60)
_HOUR = timedelta(hours=1)
HOURS_A_MONTH = 730
"""The hours of an average month: prices per month are divided by them."""
_FREE_IOPS = 3_000
_FREE_THROUGHPUT = 125


@dataclass(frozen=True, slots=True)
class Volume:
    """A gp3 volume: GiB, operations and MiB per second, and us-east-1's prices for a month of each."""

    gib: int = 0
    iops: int = _FREE_IOPS
    throughput: int = _FREE_THROUGHPUT
    usd_per_gib: float = 0.08
    usd_per_iops: float = 0.005
    usd_per_throughput: float = 0.04

    @property
    def usd_per_hour(self) -> float:
        """Return its price per hour: 3,000 operations and 125 MiB per second are part of its size."""
        more_iops = max(self.iops - _FREE_IOPS, 0) * self.usd_per_iops
        more_throughput = max(self.throughput - _FREE_THROUGHPUT, 0) * self.usd_per_throughput
        return (self.gib * self.usd_per_gib + more_iops + more_throughput) / HOURS_A_MONTH


@dataclass(frozen=True, slots=True)
class Reservation:
    """The reservation that an instance was launched into, and when it was over, None while it holds."""

    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Life:
    """An instance: when it was launched, was running, began to shut down, and was terminated; None: not yet.

    `is_interrupted`: EC2 took a spot instance away.
    """

    launched_at: datetime
    running_at: datetime | None
    ended_at: datetime | None
    terminated_at: datetime | None
    is_spot: bool = False
    is_interrupted: bool = False
    reservation: Reservation | None = None


@dataclass(frozen=True, slots=True)
class Prices:
    """USD per hour: on demand; on spot in the zone since each change, the first for all time before, oldest first."""

    on_demand: float
    spot: Sequence[tuple[datetime | None, float]] = ()
    beside: float = 0.0
    """The volume and the public address."""

    def spot_at(self, at: datetime) -> float:
        """Return the spot price that is in effect then; on demand if there is none."""
        known = [usd for since, usd in self.spot if since is None or since <= at]
        return known[-1] if known else self.on_demand


@dataclass(frozen=True, slots=True)
class Part:
    """A time of an instance at one rate in USD per hour."""

    since: datetime
    until: datetime
    usd_per_hour: float

    def usd_within(self, since: datetime, until: datetime) -> float:
        """Return what the part of it between two times costs."""
        time = min(until, self.until) - max(since, self.since)
        return max(time, timedelta(0)) / _HOUR * self.usd_per_hour


@dataclass(frozen=True, slots=True)
class Bill:
    """What is billed of an instance, in parts.

    `pending` is at the price of its usage, and is not billed: whoever asked for an instance may not see when it runs.
    """

    usage: tuple[Part, ...]
    beside: tuple[Part, ...]
    pending: tuple[Part, ...] = ()

    @property
    def usd(self) -> float:
        """Return what it is all together."""
        return sum(part.usd_within(part.since, part.until) for part in (*self.usage, *self.beside))


def bill_of(life: Life, prices: Prices, now: datetime) -> Bill:
    """Return the bill of an instance until now."""
    ended_at = life.ended_at or now
    gone_at = max(life.terminated_at or now, life.launched_at + _LEAST)
    beside = (Part(life.launched_at, gone_at, prices.beside),)
    if life.reservation is not None:
        # What is reserved is paid for anyway.
        since = life.reservation.ended_at or ended_at
        return Bill((Part(since, max(ended_at, since), prices.on_demand),), beside)
    running_at = life.running_at
    is_free = life.is_interrupted and life.is_spot and ended_at - life.launched_at < _HOUR
    first = prices.spot_at(life.launched_at) if life.is_spot else prices.on_demand
    if running_at is None or is_free:
        until = max(ended_at, life.launched_at + _LEAST)
        return Bill((), beside, () if is_free else (Part(life.launched_at, until, first),))
    until = max(ended_at, running_at + _LEAST)
    pending = (Part(life.launched_at, running_at, first),)
    if not life.is_spot:
        return Bill((Part(running_at, until, prices.on_demand),), beside, pending)
    return Bill(tuple(_spot_hours(running_at, until, prices)), beside, pending)


def _spot_hours(since: datetime, until: datetime, prices: Prices) -> Iterator[Part]:
    for number in count():
        begin = since + number * _HOUR
        if begin >= until:
            return
        yield Part(begin, min(begin + _HOUR, until), prices.spot_at(begin))
