"""Checks that jobs pay what EC2 bills for machines of our own: each its part, and all of them together all of it.

EC2's bill has the launch, the states, the end and the prices of each instance (relaunch_local.ecs.rules.bill), and is
split by the claims that were saved. No record of what anything cost is believed.

What cannot be said exactly is bounded. When an instance is running nobody says, so that its `pending` may be paid, too,
and each of its hours at the price of that much earlier. Whether EC2 took a spot instance within its first hour nobody
can say to the second: the clocks of functions differ from EC2's, and EC2 says in whole seconds when it ended.
A launch and an end that were noticed late are paid from, and until, then: other checks bound that. Whether
EC2 ended a spot instance in its first hour, for nothing, the application may not know that handled no warning.

Nobody pays for an instance of which EC2 said that it launched none while no sweep has found it, and what a reserved one
costs after the end of its reservation, which nothing announces.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta

from relaunch.core.jobs.cost import CostEntry, cost_so_far
from relaunch.core.jobs.job import Job
from relaunch.core.machines.charges import DayCost
from relaunch.core.machines.machine import Claim, Machine
from relaunch.core.machines.settings import JOB_TAG, MachineSettings
from relaunch_local.ecs import Clock, Purchase, SpotPrice
from relaunch_local.ecs.engine.model import BillLine, Instance, StateReason
from relaunch_local.ecs.rules.bill import Bill, Life, Part, Prices, Reservation, Volume, bill_of
from relaunch_local.simulation.checks.facts import AccountFacts
from relaunch_local.simulation.checks.members import machine_of

# For so long a function may keep a price, with the skew of its clock, and a request may be put off.
_PRICES_KEPT = timedelta(minutes=15)
# EC2 is asked for so long, once an instance is gone, why it ended.
_CHARGED_WITHIN = timedelta(minutes=9)
_HOUR = timedelta(hours=1)
_ANNOUNCED_WITHIN = timedelta(minutes=3)
"""An instance that ends so soon after its warning ended by it, as far as anybody knows: two minutes are announced."""
_LEAST = timedelta(seconds=60)
_ADDRESS_USD_PER_HOUR = 0.005
_TOLERANCE_USD = 0.001
# The clock of a function is up to three seconds off.
_SKEW = timedelta(seconds=6)
_LONGEST_FUNCTION = timedelta(seconds=67)

Shares = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class BillDifference:
    """By how many USD the record of a job and EC2's bill differ at most, in a seed or in many.

    `beyond_usd` is the part beyond the bounds of what nobody can know exactly; the check allows a tenth of a cent.
    """

    usd: float = 0.0
    beyond_usd: float = 0.0

    def worst(self, other: "BillDifference") -> "BillDifference":
        """Return the larger ones of both."""
        return BillDifference(max(self.usd, other.usd), max(self.beyond_usd, other.beyond_usd))


@dataclass(frozen=True, slots=True)
class _Bounds:
    least: float = 0.0
    most: float = 0.0

    def __add__(self, other: "_Bounds") -> "_Bounds":
        return _Bounds(self.least + other.least, self.most + other.most)


@dataclass(slots=True)
class Costs:
    """Compares what jobs say that machines cost with what EC2 bills."""

    _clock: Clock
    _check: Callable[[str, bool, str], None]
    _hosts: Mapping[str, Instance]
    _bills: Mapping[str, BillLine]
    _machines: Mapping[str, Machine]
    """The machines as they were saved last."""
    _settings: MachineSettings
    _spot_prices: Sequence[SpotPrice]
    _on_demand_usd_per_hour: Mapping[str, float]
    _facts: AccountFacts
    _misled: Collection[str]
    """Machines of which EC2 said that it launched none, and had."""
    _failed_at: Mapping[str, Sequence[datetime]]
    """When the calls of each action failed for good."""
    _load_costs: Callable[[date, date], Sequence[CostEntry]]
    """Returns what is in the sums of costs from one day to another."""
    _holders: dict[str, list[tuple[datetime, Shares]]] = field(default_factory=lambda: defaultdict(list))
    """By machine: since when which part of it was whose."""
    _slow: dict[str, timedelta] = field(default_factory=lambda: defaultdict(timedelta))
    """By machine: how long functions took, that had decided on a claim, until it was saved."""
    difference: BillDifference = field(default_factory=BillDifference)
    """What records and bill differed by at the end."""

    def machine_saved(self, machine: Machine) -> None:
        """Note who claims a machine from now on; what nobody claims stays that of those who claimed it last."""
        held = self._holders[machine.machine_id]
        if machine.claims:
            shares = _shares_of(machine.claims, machine)
            if not held or held[-1][1] != shares:
                now = self._clock.now()
                claimed_at = (each.since for each in machine.claims if held and each.job_id not in held[-1][1])
                slow = max((now - at for at in claimed_at), default=timedelta(0))
                self._slow[machine.machine_id] += min(max(slow, timedelta(0)), _LONGEST_FUNCTION)
                held.append((now, shares))

    def check_end(self, jobs: Mapping[str, Job]) -> None:
        """Check every job, and all of them together, once nothing is there any more."""
        expected: dict[str, _Bounds] = defaultdict(_Bounds)
        billed = self._billed()
        for host in self._hosts.values():
            for job_id, bounds in self._bounds_of(host):
                expected[job_id] += bounds
        now = self._clock.now()
        total = 0.0
        for job_id, job in jobs.items():
            bounds = expected[job_id]
            said = cost_so_far(job, now)[0] - (job.totals.cost_usd - job.charges.own_tasks_usd)
            total += said
            beyond = max(bounds.least - said, said - bounds.most, 0.0)
            self.difference = self.difference.worst(BillDifference(abs(said - billed[job_id]), beyond))
            is_right = bounds.least - _TOLERANCE_USD <= said <= bounds.most + _TOLERANCE_USD
            message = f"{job_id}: {said:.4f} USD, not {bounds.least:.4f} to {bounds.most:.4f}"
            self._check("a job pays what its machines were billed", is_right, message)
            message = f"{job_id}: {', '.join(each.machine_id for each in job.charges.open)}"
            self._check("no machine that is gone still costs", not job.charges.open, message)
        known = sum((expected[job_id] for job_id in jobs), _Bounds())
        is_right = known.least - _TOLERANCE_USD <= total <= known.most + _TOLERANCE_USD
        message = f"{total:.4f} USD, not {known.least:.4f} to {known.most:.4f}"
        self._check("jobs together pay what EC2 bills", is_right, message)
        self._check_sums(jobs)

    def _billed(self) -> dict[str, float]:
        """Return what EC2 bills for the machines of each job, to the second, whether or not it could be known."""
        billed: dict[str, float] = defaultdict(float)
        for host in self._hosts.values():
            machine = self._machines.get(machine_of(host, self._machines))
            if machine is not None:
                bill = self._bill_of(host)
                for job_id, usd in self._split((*bill.usage, *bill.beside), self._held(host, machine), None).items():
                    billed[job_id] += usd
        return billed

    def _held(self, host: Instance, machine: Machine) -> Sequence[tuple[datetime, Shares]]:
        return self._holders[machine.machine_id] or [(host.launched_at, {host.tags[JOB_TAG]: 1.0})]

    def least_spent(self) -> Mapping[str, float]:
        """Return what EC2 has billed each job at least, until now, for machines whose price could be read."""
        spent: dict[str, float] = defaultdict(float)
        for host in filter(self._is_priced, self._hosts.values()):
            for job_id, bounds in self._bounds_of(host, self._clock.now()):
                spent[job_id] += bounds.least
        return spent

    def rise_of(self, machine: Machine) -> float:
        """Return what EC2 has billed at least for a machine, beyond its price at the launch: the price has risen."""
        host = self._hosts.get(machine.instance_id or "")
        if host is None or machine.launched_at is None or not self._is_priced(host):
            return 0.0
        now = self._clock.now()
        usd_per_hour = machine.usd_per_hour + machine.beside_usd_per_hour
        at_launch = (now - machine.launched_at) / timedelta(hours=1) * usd_per_hour
        return max(sum(bounds.least for _, bounds in self._bounds_of(host, now)) - at_launch, 0.0)

    def is_paid(self, task_arn: str) -> bool:
        """Return whether a task runs on an instance whose price could be read."""
        host = self._hosts.get(self._facts.host_of(task_arn))
        return host is not None and host.is_alive and self._is_priced(host)

    def _is_priced(self, host: Instance) -> bool:
        """Return whether the price of an instance could be read when it was asked for.

        Of a type that is on no price list it is not while the history of spot prices cannot be read.
        """
        failed = self._failed_at["ec2:describe_spot_price_history"]
        is_unread = any(host.launched_at - _PRICES_KEPT < at <= host.launched_at for at in failed)
        return host.instance_type in self._on_demand_usd_per_hour or not is_unread

    def _check_sums(self, jobs: Mapping[str, Job]) -> None:
        """Check that the sums have, by definition, what its jobs cost, and in time what EC2 billed for each day."""
        now = self._clock.now()
        hosts = tuple(self._hosts.values())
        first = min([now, *(host.launched_at for host in hosts), *(each.accepted_at for each in jobs.values())])
        entries = self._load_costs(first.date(), now.date() + timedelta(days=1))
        for name in {job.definition.name for job in jobs.values()}:
            its = {job_id: job for job_id, job in jobs.items() if job.definition.name == name}
            days = [day for each in entries if each.key.definition == name for day in each.days]
            said = sum(cost_so_far(job, now)[0] for job in its.values())
            summed = sum(day.usd for day in days)
            is_right = abs(summed - said) <= _TOLERANCE_USD
            self._check("the sums have what jobs cost", is_right, f"{name}: {summed:.4f} USD, not {said:.4f}")
            elsewhere = sum(abs(job.totals.cost_usd - job.charges.own_tasks_usd) for job in its.values())
            if elsewhere <= _TOLERANCE_USD:
                self._check_days(name, its, days, hosts)

    def _check_days(self, name: str, jobs: Collection[str], days: Sequence[DayCost], hosts: Sequence[Instance]) -> None:
        """Check what machines cost until the end of each day."""
        for last in sorted({day.day for day in days}):
            until = datetime.combine(last + timedelta(days=1), time(), UTC)
            bounds = sum(
                (
                    its
                    for host in hosts
                    if host.launched_at < until
                    for job_id, its in self._bounds_of(host, until)
                    if job_id in jobs
                ),
                _Bounds(),
            )
            summed = sum(day.usd for day in days if day.day <= last)
            is_right = bounds.least - _TOLERANCE_USD <= summed <= bounds.most + _TOLERANCE_USD
            message = f"{name} until {last}: {summed:.4f} USD, not {bounds.least:.4f} to {bounds.most:.4f}"
            self._check("a day has what its machines were billed", is_right, message)

    def _bounds_of(self, host: Instance, until: datetime | None = None) -> Iterator[tuple[str, _Bounds]]:
        """Yield what each job may pay of an instance, in all or until a time."""
        machine = self._machines.get(machine_of(host, self._machines))
        if machine is None:
            return
        bill = self._bill_of(host)
        held = self._held(host, machine)
        is_found = machine.instance_id == host.instance_id
        usage = () if host.reservation_id or self._seems_free(host) else bill.usage
        least = self._split((*usage, *bill.beside), held, until) if is_found else {}
        maybe = self._split((*bill.pending, *self._free_usage(host, machine), *bill.usage, *bill.beside), held, until)
        late = self._late(host, machine, len(held)) if is_found else 0.0
        for job_id, usd in maybe.items():
            yield job_id, _Bounds(least.get(job_id, 0.0) - late, usd + late)

    def _bill_of(self, host: Instance) -> Bill:
        is_interrupted = host.state_reason is StateReason.SPOT_TERMINATION
        life = Life(
            host.launched_at,
            host.booted_at,
            host.ended_at,
            host.terminated_at,
            host.purchase is Purchase.SPOT,
            is_interrupted,
            Reservation(self._bills[host.instance_id].reserved_until) if host.reservation_id else None,
        )
        return bill_of(life, self._prices(host), self._clock.now())

    def _prices(self, host: Instance) -> Prices:
        pool = (host.instance_type, host.zone)
        of_pool = [each for each in self._spot_prices if (each.instance_type, each.zone) == pool]
        of_pool.sort(key=lambda each: each.since.timestamp() if each.since else float("-inf"))
        settings = self._settings
        volume = Volume(settings.disk_gib, settings.disk_iops, settings.disk_throughput)
        return Prices(
            self._on_demand_usd_per_hour.get(host.instance_type, 0.0),
            tuple((each.since, each.price_usd_per_hour) for each in of_pool),
            volume.usd_per_hour + _ADDRESS_USD_PER_HOUR,
        )

    def _free_usage(self, host: Instance, machine: Machine) -> tuple[Part, ...]:
        """Return the usage that EC2 does not bill, if the application may not know that when it charges the machine."""
        bill = self._bill_of(host)
        is_free = host.purchase is Purchase.SPOT and not bill.usage and host.booted_at is not None
        ended_at = machine.ended_at or host.ended_at or host.launched_at
        warning = self._facts.first_warning(host.instance_id)
        is_sure = warning is not None and warning[1] <= (machine.state_since or ended_at) + _CHARGED_WITHIN
        if warning is not None and host.terminated_at is not None and warning[1] > host.terminated_at + _HOUR:
            # EC2 has forgotten why it ended; by when, an event says that may be of minutes later.
            is_sure = False
        if not is_free or host.reservation_id or (is_sure and ended_at - host.launched_at < _HOUR - _SKEW):
            return ()
        until = max(ended_at, host.launched_at + _LEAST)
        return (Part(host.launched_at, until, self._prices(host).spot_at(host.launched_at)),)

    def _seems_free(self, host: Instance) -> bool:
        """Return whether EC2 took a spot instance in its first hour, for nothing, as far as anybody may know."""
        is_spot = host.purchase is Purchase.SPOT
        if not is_spot or host.ended_at is None or host.ended_at - host.launched_at >= _HOUR + _SKEW:
            return False
        return host.state_reason is StateReason.SPOT_TERMINATION or self._seems_interrupted(host)

    def _seems_interrupted(self, host: Instance) -> bool:
        """Return whether an instance ended as its warning announced, and nobody could ask EC2 why.

        EC2 says why for an hour: the warning was not heard before, or a question failed before it was charged.
        """
        warning = self._facts.first_warning(host.instance_id)
        gone_at = host.terminated_at
        if warning is None or host.ended_at is None or gone_at is None:
            return False
        is_announced = timedelta(0) < host.ended_at - warning[0] < _ANNOUNCED_WITHIN
        failed_at = self._failed_at["ec2:describe_instances"]
        is_unasked = any(gone_at <= at <= gone_at + _CHARGED_WITHIN for at in failed_at)
        return is_announced and (is_unasked or warning[1] > gone_at + _HOUR)

    def _late(self, host: Instance, machine: Machine, changes: int) -> float:
        """Return what may be too much or too little because something was noticed late, or by another clock."""
        prices = self._prices(host)
        usd_per_hour = max([prices.on_demand, *(usd for _, usd in prices.spot)])
        began = abs((machine.paid_since or host.launched_at) - host.launched_at)
        ended = gone = timedelta(0)
        # An instance that lives is paid until now, whenever its end is noticed.
        if host.ended_at is not None:
            ended = abs((machine.ended_at or machine.state_since or host.ended_at) - host.ended_at)
            gone = abs((machine.state_since or host.ended_at) - (host.terminated_at or host.ended_at))
        slow = self._slow[machine.machine_id]
        late = ((began + ended + slow + changes * _SKEW) * usd_per_hour + (began + gone) * prices.beside) / _HOUR
        return late + self._of_other_hours(host, prices) + self._of_last_hour(host, machine, prices)

    def _of_last_hour(self, host: Instance, machine: Machine, prices: Prices) -> float:
        """Return what an instance costs from when its reservation was to end until it did.

        EC2 ends one within an hour of that time (`EndDate`, ModifyCapacityReservation, EC2 API), and says not when.
        """
        reservation = machine.request.reservation
        if reservation is None or reservation.ends_at is None or host.reservation_id is None:
            return 0.0
        ended_at = host.ended_at or self._clock.now()
        # Without an end it outlived the instance.
        until = min(self._bills[host.instance_id].reserved_until or ended_at, ended_at)
        not_ended = min(until, reservation.ends_at + _HOUR) - max(reservation.ends_at, host.launched_at)
        return max(not_ended / _HOUR, 0.0) * prices.on_demand

    def _of_other_hours(self, host: Instance, prices: Prices) -> float:
        """Return what instance-hours of spot may cost more or less that are counted from the launch.

        EC2 counts them from when the instance is running, which nobody says, the record from its launch by the clock of
        a function. The price may change in between; and each hour that costs something else than the one before costs
        that so much sooner.
        """
        if host.purchase is not Purchase.SPOT or host.booted_at is None:
            return 0.0
        launched_at = host.launched_at - _SKEW
        ended_at = host.ended_at or self._clock.now()
        begins = [launched_at + number * _HOUR for number in range(math.ceil((ended_at - launched_at) / _HOUR))]
        pending = host.booted_at - launched_at
        other = sum(abs(prices.spot_at(begin) - prices.spot_at(begin + pending)) for begin in begins)
        sooner = sum(abs(prices.spot_at(begin) - prices.spot_at(begin - _HOUR)) for begin in begins[1:])
        return other + sooner * (pending / _HOUR)

    @staticmethod
    def _split(
        parts: Sequence[Part], held: Sequence[tuple[datetime, Shares]], until: datetime | None
    ) -> dict[str, float]:
        usd: dict[str, float] = defaultdict(float)
        for part in parts:
            for number, (since, shares) in enumerate(held):
                begin = part.since if not number else since
                end = held[number + 1][0] if number + 1 < len(held) else part.until
                end = min(end, until) if until is not None else end
                for job_id, share in shares.items():
                    usd[job_id] += share * part.usd_within(begin, end)
        return usd


def _shares_of(claims: Sequence[Claim], machine: Machine) -> dict[str, float]:
    """Return the part of each job, by the resource of which the claims take the largest part of the machine."""
    names = ("gpus", "neuron_devices", "memory_mib", "cpu_units")
    taken = {name: sum(getattr(each.resources, name) for each in claims) for name in names}
    fractions = {name: taken[name] / (getattr(machine.capacity, name) or float("inf")) for name in names}
    scarce = max(names, key=lambda name: fractions[name])
    if not taken[scarce]:
        return {each.job_id: 1 / len(claims) for each in claims}
    return {each.job_id: getattr(each.resources, scarce) / taken[scarce] for each in claims}
