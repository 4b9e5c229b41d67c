"""Checks that each job says what the machines cost that were requested for it and never ran a task.

It is compared with EC2's bill, of which no record of the application is believed. What a job can say is bounded: it
pays for a machine while it has it, by EC2's word that there is one, at the price that it was told before.

Nobody says what a machine cost of which EC2 said that it launched none, and had: the job got another one before a sweep
found it; nor what one cost that another job had claimed, too: when the first job leaves it, the other one may have used
it, for all that is known. Neither does a job pay while a machine is kept warm for others,
or is not ended although EC2 was asked to, nor for one without a price. One that EC2 warned of in its first hour is left
to it, which bills nothing then, unless it lets the machine run on; one that it interrupts in its first hour without a
word is free, too. A job whose RunTask was unanswered in an outage does not know that a task was on its machine.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime, timedelta

from relaunch.core.jobs.job import Job
from relaunch.core.machines.limits import MachineLimits
from relaunch.core.machines.settings import JOB_TAG, MACHINE_TAG
from relaunch_local.ecs import Purchase, SpotPrice
from relaunch_local.ecs.engine.model import BillLine, Instance
from relaunch_local.simulation.checks.facts import AccountFacts
from relaunch_local.simulation.checks.times import timestamp

# A job that lost a machine is told within the minute of a look, by a clock that is a little off.
_TOLD_LATE = timedelta(minutes=1)
# A machine that was ready, or whose job is over, is released first, and ended by a queue and by looks each minute,
# which with many faults fail time and again.
_ENDED_LATE = timedelta(minutes=10)
# An end whose event is lost is known by the next look.
_KNOWN_LATE = timedelta(minutes=15)
_ROUNDING_USD = 0.001
_LONGEST_OUTAGE = timedelta(hours=4)
_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class UselessCost:
    """Bounds of what each job says of the machines that never ran a task."""

    check: Callable[[str, bool, str], None]
    bills: Mapping[str, BillLine]
    limits: MachineLimits
    spot_prices: Sequence[SpotPrice]
    on_demand_usd_per_hour: Mapping[str, float]
    misled: Collection[str]
    """The machines of which EC2 said that it launched none, and had."""
    facts: AccountFacts
    asked_at: Mapping[str, datetime]
    """By instance: when the application first asked EC2 to end it."""
    tasks: Mapping[str, Mapping[str, Mapping[str, object]]]
    """By job and task: ECS's latest state."""
    tried: Mapping[str, Collection[str]]
    """By instance: the jobs whose task ECS placed nothing of there, refused to, or was refused its start."""
    claimed: Mapping[str, Set[str]]
    """By machine: the jobs that claimed it, as it was saved."""

    def check_jobs(
        self,
        jobs: Mapping[str, Job],
        hosts: Iterable[Instance],
        tasks_on: Callable[[Instance], Mapping[str, datetime]],
    ) -> None:
        """Check every job.

        `hosts` are the instances of our own, and `tasks_on` returns when the first task of each job was placed on one.
        """
        least: dict[str, float] = defaultdict(float)
        most: dict[str, float] = defaultdict(float)
        for host in hosts:
            job_id = host.tags[JOB_TAG]
            used = tasks_on(host)
            if not used and job_id in jobs:
                least[job_id] += self._least(host, jobs[job_id])
            others = (at for whose, at in used.items() if whose != job_id)
            until = min(others, default=self._ended_at(host))
            if job_id not in used or job_id in self.facts.unanswered_jobs:
                # Until others use it, it is there for the job that requested it, which may not know of its own task.
                most[job_id] += self._most(host, until)
            elif self._may_have_left(host, job_id, used[job_id]):
                most[job_id] += self._most(host, min(until, used[job_id]))
        for job_id, job in jobs.items():
            told = job.machines.useless_usd
            bounds = (least[job_id] - _ROUNDING_USD, most[job_id] + _ROUNDING_USD)
            message = f"{job_id}: {told:.4f} USD, not {bounds[0]:.4f} to {bounds[1]:.4f}"
            self.check("a job says what machines without a task cost", bounds[0] <= told <= bounds[1], message)

    def _least(self, host: Instance, job: Job) -> float:
        warned_at = self.facts.warned_at(host.instance_id)
        is_left = warned_at is not None and warned_at - host.launched_at < _HOUR and host.purchase is Purchase.SPOT
        # Nobody runs a task on a machine that never was ready.
        others = self.claimed[host.tags.get(MACHINE_TAG, "")] - {host.tags[JOB_TAG]}
        is_shared = bool(others) and host.registered_at is not None
        if host.tags.get(MACHINE_TAG) in self.misled or self.bills[host.instance_id].is_free or is_left or is_shared:
            return 0.0
        end = self._ended_at(host)
        is_ready = host.registered_at is not None and len(host.gpu_ids) == host.shape.gpus
        is_over = job.ended_at is not None and job.ended_at <= end + _TOLD_LATE
        late = self.limits.warm_time + _ENDED_LATE if is_ready or is_over else _TOLD_LATE
        # Who is told to leave a machine may leave it long before EC2 has ended it.
        left_at = min(self.asked_at.get(host.instance_id, end), self.facts.noticed_at(host.instance_id) or end)
        if not is_ready:
            # Whoever waits for a machine leaves it at its deadline, and EC2 may be asked minutes later to end it.
            left_at = min(left_at, host.launched_at + self.limits.registration_deadline_of(host.instance_type))
        until = min(end, left_at) - late
        since = max(host.launched_at, self.facts.instances_told_at.get(host.instance_id, end))
        return self._prices(host)[0] * max((until - since) / _HOUR, 0.0)

    def _may_have_left(self, host: Instance, job_id: str, used_at: datetime) -> bool:
        """Return whether a job may have released a machine, and come back to it to run a task there at `used_at`.

        Its task was not placed there before, or not allowed to start, or its task on another machine ended while this
        one was there.
        """
        others = (each for arn, each in self.tasks[job_id].items() if self.facts.host_of(arn) != host.instance_id)
        ends = (at for each in others if (at := timestamp(each, "stoppedAt")) is not None)
        return job_id in self.tried[host.instance_id] or any(host.launched_at <= at <= used_at for at in ends)

    def _most(self, host: Instance, until: datetime) -> float:
        # While services are away nobody can know that an instance has ended.
        late = _KNOWN_LATE + self.facts.outage_time(until, until + _LONGEST_OUTAGE)
        return self._prices(host)[1] * ((until - host.launched_at + late) / _HOUR)

    def _ended_at(self, host: Instance) -> datetime:
        return self.bills[host.instance_id].billing_ended_at or host.launched_at

    def _prices(self, host: Instance) -> tuple[float, float]:
        """Return the least and the highest price per hour that the application can take for that of an instance.

        What is reserved costs nothing more; nobody tells the application that its reservation is over, from when on EC2
        bills it on demand. On-demand it is the list's. On spot it is any that EC2 ever told of the zone, or, where it
        told none in time, the on-demand price, or none.
        """
        limit = self.on_demand_usd_per_hour.get(host.instance_type, 0.0)
        if host.reservation_id:
            return 0.0, 0.0
        if host.purchase is not Purchase.SPOT:
            return limit, limit
        told = [each.price_usd_per_hour for each in self.spot_prices
                if (each.instance_type, each.zone) == (host.instance_type, host.zone)]  # fmt: skip
        return min(told, default=0.0) if limit else 0.0, max([limit, *told])
