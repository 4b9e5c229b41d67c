"""What a machine of our own costs, and which jobs pay it: all of it, from its launch until it is gone.

In each time between two changes of its claims the machine is paid by the jobs that claim it, in proportion to what each
reserved of the scarce resource: the one of which all of them together reserved the largest fraction. What nobody claims
is paid by those who left it last: they were asked for nothing more, but the machine is there because of them. So are
the time that it is kept warm, and its end.

Sources. Seconds `running` are billed, 60 at least; `pending` and `shutting-down` are not ("Amazon EC2 instance state
changes", EC2 User Guide). When an instance is running no call or event of those that Relaunch gets says, so that it is
charged from its launch, some seconds too many. Spot costs the price that is in effect at the beginning of each
instance-hour (FAQs of EC2). The usage of a spot instance that EC2 interrupts within its first hour costs nothing
("Billing for interrupted Spot Instances", EC2 User Guide); its volume and its address do.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import UTC, date, datetime, time, timedelta

from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.machines.decision import MachineDecision
from relaunch.core.machines.machine import NOTHING, ChargeJobs, Claim, Holding, Machine, MachineState, Resources
from relaunch.core.offerings.offering import GP3_USD_PER_GIB_MONTH
from relaunch.core.offerings.reservations import ReservationType
from relaunch.core.records import dataclass

_HOUR = timedelta(hours=1)
_LEAST = timedelta(seconds=60)
# "StateReason", Amazon EC2 API Reference: EC2 took it away, and it ended during its launch.
_INTERRUPTED = "Server.SpotInstanceTermination"
_NOT_LAUNCHED = (
    *("Client.InternalError", "Client.InvalidSnapshot.NotFound", "Client.VolumeLimitExceeded"),
    *("Server.InsufficientInstanceCapacity", "Server.InternalError"),
)
# A machine is left to EC2 for three minutes, and interrupted two minutes after its warning, or sooner.
_SHORTEST_LEFT = timedelta(seconds=30)
_LONGEST_LEFT = timedelta(minutes=3)
# A machine is one item, which should stay small. So many changes of claims has one that is kept warm for days.
_KEPT_HOLDINGS = 60
_HOURS_A_MONTH = 730
# What a month of gp3 costs in us-east-1 ("Amazon EBS pricing") per operation and MiB per second beyond what is part of
# every volume; and an hour of a public IPv4 address ("Amazon VPC pricing"), the same in all regions.
_USD_PER_IOPS = 0.005
_USD_PER_THROUGHPUT = 0.04
_FREE_IOPS = 3_000
_FREE_THROUGHPUT = 125
_ADDRESS_USD_PER_HOUR = 0.005

PriceChanges = Sequence[tuple[datetime, float]]
"""USD per hour since each time, oldest first."""


@dataclass(frozen=True, slots=True)
class Charge:
    """What one job pays of a machine in USD, and what that would have been on demand.

    `is_limit`: the price is an upper limit. `is_unknown`: it is not known, and counts as 0. `hours` are those of its
    part of the machine; an earlier release stored none.
    """

    machine_id: str
    usd: float
    on_demand_usd: float = 0.0
    is_limit: bool = False
    is_unknown: bool = False
    hours: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class DayCost:
    """What was paid on a day (UTC) in USD, what that would have been on demand, and for how many hours of machines.

    A machine that was shared is paid for its part of the hours. `unpriced_hours` are those of unknown prices, which
    count as 0.
    """

    day: date
    usd: float
    on_demand_usd: float
    hours: float
    unpriced_hours: float = 0.0


def usd_beside(
    disk_gib: int,
    iops: int = _FREE_IOPS,
    throughput: int = _FREE_THROUGHPUT,
    usd_per_gib_month: float | None = None,
) -> float:
    """Return what a root volume (gp3, throughput in MiB per second) and a public IPv4 address cost per hour.

    Operations and throughput are to their price in us-east-1 what a GiB is to its price there, which is taken if that
    of the region is not known.
    """
    extra = max(iops - _FREE_IOPS, 0) * _USD_PER_IOPS + max(throughput - _FREE_THROUGHPUT, 0) * _USD_PER_THROUGHPUT
    volume = (disk_gib + extra / GP3_USD_PER_GIB_MONTH) * (usd_per_gib_month or GP3_USD_PER_GIB_MONTH)
    return volume / _HOURS_A_MONTH + _ADDRESS_USD_PER_HOUR


def shares_of(claims: Iterable[Claim], capacity: Resources) -> dict[str, float]:
    """Return the part of a machine that each job pays, which are 1 together; by its share of the scarce resource."""
    known = tuple(claims)
    total = sum((each.resources for each in known), NOTHING)
    wanted = _amounts(total)
    offered = _amounts(capacity)
    # Of several that are as scarce the first one: an accelerator.
    scarce = max(range(len(wanted)), key=lambda place: wanted[place] / offered[place] if offered[place] else 0.0)
    if not wanted[scarce]:
        return {each.job_id: 1 / len(known) for each in known}
    return {each.job_id: _amounts(each.resources)[scarce] / wanted[scarce] for each in known}


def _amounts(resources: Resources) -> tuple[float, ...]:
    return resources.gpus, resources.neuron_devices, resources.memory_mib, resources.cpu_units


def first_holdings(claim: Claim, now: datetime) -> tuple[Holding, ...]:
    """Return who pays a machine that is requested: the job that it is for."""
    return (Holding(now, {claim.job_id: 1.0}),)


def with_holdings(machine: Machine, _event: object, decision: MachineDecision, now: datetime) -> MachineDecision:
    """Return the decision with who pays the machine from now on, and the effect that charges them once it is gone.

    A machine of an earlier release, which did not keep who claimed it, is charged to nobody.
    """
    after = decision.machine
    if decision.is_ignored or after.holdings is None:
        return decision
    holdings = after.holdings
    if after.claims:
        shares = shares_of(after.claims, after.capacity)
        if shares != holdings[-1].shares:
            changed = (*holdings, Holding(max(now, holdings[-1].since), shares))
            holdings = _bounded(changed, after.paid_since or holdings[0].since)
    is_gone = after.state is MachineState.GONE and machine.state is not MachineState.GONE
    effects = (ChargeJobs(),) if is_gone and after.instance_id else ()
    return replace(decision, machine=replace(after, holdings=holdings, pending=(*after.pending, *effects)))


def _bounded(holdings: tuple[Holding, ...], began_at: datetime) -> tuple[Holding, ...]:
    """Return the holdings; of too many the two oldest are one, with the same seconds of each job since it began."""
    if len(holdings) <= _KEPT_HOLDINGS:
        return holdings
    first, second, third = holdings[:3]
    before = max(second.since - began_at, timedelta(0))
    rest = third.since - second.since
    part = before / (before + rest) if before + rest else 1.0
    shares = {
        job_id: part * first.shares.get(job_id, 0.0) + (1 - part) * second.shares.get(job_id, 0.0)
        for job_id in {**first.shares, **second.shares}
    }
    return (Holding(first.since, shares), *holdings[2:])


@dataclass(frozen=True, slots=True)
class _Rate:
    since: datetime
    until: datetime
    usd_per_hour: float


@dataclass(frozen=True, slots=True)
class _Rates:
    """What a machine costs: its usage, that on demand, and its volume and address; `hours` costs 1 an hour of usage."""

    usage: tuple[_Rate, ...]
    on_demand: tuple[_Rate, ...]
    hours: _Rate
    beside: _Rate


def may_be_free(machine: Machine) -> bool:
    """Return whether why it ended decides if EC2 bills the usage of a machine.

    It bills none of a spot instance that it interrupts in its first hour, and none of one that was never running.
    """
    return machine.registered_at is None or _is_in_free_hour(machine)


def _is_in_free_hour(machine: Machine) -> bool:
    is_spot = machine.request.purchase is PurchaseOption.SPOT
    return is_spot and bool(machine.paid_since and machine.ended_at and machine.ended_at - machine.paid_since < _HOUR)


def is_free(machine: Machine, end_reason: str | None) -> bool:
    """Return whether EC2 does not bill the usage of a machine (`may_be_free`).

    Without a reason it is what a warning announced, if the machine was left to EC2: it ends two minutes after that.
    As long as EC2 was not asked for one (None), it may also have ended by itself, and is taken to be billed.
    """
    if end_reason is None:
        return False
    if machine.registered_at is None and end_reason.startswith(_NOT_LAUNCHED):
        return True
    if not _is_in_free_hour(machine) or machine.ended_at is None:
        return False
    if end_reason:
        return end_reason.startswith(_INTERRUPTED)
    left_for = machine.left_until - machine.ended_at if machine.left_until is not None else timedelta(0)
    return _SHORTEST_LEFT < left_for < _LONGEST_LEFT


def charges_of(
    machine: Machine, changes: PriceChanges, now: datetime, end_reason: str | None = None
) -> dict[str, Charge]:
    """Return what each job pays of a machine until now, or until it was gone.

    `changes` are the spot prices of its zone since before its launch; empty if they are not known, and on demand.
    `end_reason` is why EC2 says that it ended, empty if it does not, None if it was not asked. It is nothing before EC2
    launched it.
    """
    rates = _rates(machine, changes, now, end_reason)
    if rates is None:
        return {}
    paid = _split(machine, (*rates.usage, rates.beside))
    instead = _split(machine, (*rates.on_demand, rates.beside))
    hours = _split(machine, (rates.hours,))
    is_limit = machine.request.purchase is PurchaseOption.SPOT and not changes and bool(rates.usage)
    is_unknown = _is_unpriced(machine, changes)
    return {
        job_id: Charge(machine.machine_id, usd, instead[job_id], is_limit, is_unknown, hours[job_id])
        for job_id, usd in paid.items()
    }


def days_of(
    machine: Machine, changes: PriceChanges, now: datetime, end_reason: str | None = None
) -> dict[str, tuple[DayCost, ...]]:
    """Return the days of `charges_of`, which together are the charge of each job."""
    rates = _rates(machine, changes, now, end_reason)
    if rates is None:
        return {}
    is_unpriced = _is_unpriced(machine, changes)
    found: dict[str, list[DayCost]] = {}
    for since, until in days_between(rates.beside.since, rates.beside.until):
        usd, instead, used = (
            _split(machine, (replace(each, since=max(each.since, since), until=min(each.until, until)) for each in of))
            for of in ((*rates.usage, rates.beside), (*rates.on_demand, rates.beside), (rates.hours,))
        )
        for job_id, paid in usd.items():
            unpriced = used[job_id] if is_unpriced else 0.0
            day = DayCost(since.astimezone(UTC).date(), paid, instead[job_id], used[job_id], unpriced)
            found.setdefault(job_id, []).append(day)
    return {job_id: tuple(each for each in days if each.usd or each.hours) for job_id, days in found.items()}


def days_between(since: datetime, until: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Yield the times of each day (UTC) between two times."""
    while since < until:
        midnight = datetime.combine(since.astimezone(UTC).date() + timedelta(days=1), time(), UTC)
        yield since, min(midnight, until)
        since = midnight


def cost_so_far(machine: Machine, now: datetime) -> float:
    """Return what a machine has cost in USD until now, by its price when it was launched; 0 if nobody pays it."""
    return sum(each.usd for each in charges_of(machine, (), now).values())


def _rates(machine: Machine, changes: PriceChanges, now: datetime, end_reason: str | None) -> _Rates | None:
    """Return what a machine costs until now, or until it was gone; None before EC2 launched it, and if nobody pays."""
    began_at = machine.paid_since
    if machine.holdings is None or began_at is None:
        return None
    gone_at = (machine.state_since or now) if machine.state is MachineState.GONE else now
    ended_at = max(min(machine.ended_at or gone_at, gone_at), began_at + _LEAST)
    is_spot = machine.request.purchase is PurchaseOption.SPOT
    usage = (
        () if is_free(machine, end_reason) else tuple(_usage(machine, changes if is_spot else (), began_at, ended_at))
    )
    is_reserved = machine.request.purchase is PurchaseOption.RESERVED
    return _Rates(
        usage,
        # A reservation is paid for whether or not it is used: nobody knows what was saved.
        usage if is_reserved else (_Rate(began_at, ended_at, _on_demand_price(machine)),),
        _Rate(began_at, ended_at, 1.0),
        _Rate(began_at, max(gone_at, began_at + _LEAST), machine.beside_usd_per_hour),
    )


def _is_unpriced(machine: Machine, changes: PriceChanges) -> bool:
    return not machine.usd_per_hour and not changes and machine.request.purchase is not PurchaseOption.RESERVED


def _usage(machine: Machine, changes: PriceChanges, since: datetime, until: datetime) -> Iterator[_Rate]:
    reservation = machine.request.reservation
    if reservation is not None and reservation.type is ReservationType.ON_DEMAND and reservation.ends_at is not None:
        # Its instances run on ("Capacity Reservation pricing and billing", EC2 User Guide).
        over_at = max(since, min(reservation.ends_at, until))
        yield _Rate(since, over_at, machine.usd_per_hour)
        yield _Rate(over_at, until, _on_demand_price(machine))
        return
    if not changes:
        yield _Rate(since, until, machine.usd_per_hour)
        return
    for number in range(math.ceil((until - since) / _HOUR)):
        begin = since + number * _HOUR
        usd = next((usd for at, usd in reversed(changes) if at <= begin), changes[0][1])
        yield _Rate(begin, min(begin + _HOUR, until), usd)


def _on_demand_price(machine: Machine) -> float:
    """Return the on-demand price of the type that EC2 chose; the price that is paid if it is not known."""
    name = machine.offering.instance_type if machine.offering else ""
    return machine.on_demand.get(name, machine.usd_per_hour)


def _split(machine: Machine, rates: Iterable[_Rate]) -> Mapping[str, float]:
    """Return what each job pays of these times: whoever holds the machine first also pays what is before that."""
    holdings = machine.holdings or ()
    usd = {job_id: 0.0 for each in holdings for job_id in each.shares}
    ends = [*(each.since for each in holdings[1:]), None]
    for rate in rates:
        for number, (holding, end) in enumerate(zip(holdings, ends, strict=True)):
            since = rate.since if number == 0 else max(rate.since, holding.since)
            until = rate.until if end is None else min(rate.until, end)
            paid = max((until - since) / _HOUR, 0.0) * rate.usd_per_hour
            for job_id, share in holding.shares.items():
                usd[job_id] += paid * share
    return usd


@dataclass(frozen=True, slots=True)
class Rate:
    """What a job pays of a machine per hour in USD, what that is on demand, and the part of the instance alone."""

    usd_per_hour: float
    on_demand_usd_per_hour: float
    usage_usd_per_hour: float


def rate_of(machine: Machine, job_id: str) -> Rate | None:
    """Return what a job pays per hour of a machine as it is now; None of one that is charged to nobody."""
    if machine.holdings is None or machine.paid_since is None:
        return None
    share = machine.holdings[-1].shares.get(job_id, 0.0)
    usage = share * machine.usd_per_hour
    beside = share * machine.beside_usd_per_hour
    is_reserved = machine.request.purchase is PurchaseOption.RESERVED
    on_demand = usage if is_reserved else share * _on_demand_price(machine)
    return Rate(usage + beside, on_demand + beside, usage)
