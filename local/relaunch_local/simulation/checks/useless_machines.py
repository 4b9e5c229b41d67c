"""Checks that machines which never run a task are bounded, whatever keeps them from it.

All is reckoned from what the simulated AWS launched, billed, placed and refused, and from what people cancelled: no
record of the application is believed. An instance that EC2 took back or said it would, or that others ended, is
nobody's loss here, nor is one whose job was over before the instance had registered and could take its task. Machines
that are launched together are used together: where EC2 takes one of them back, those that are ended after that are
ended for it, and are no loss by a cause of their own. One that EC2 launched and said that it had not cannot be counted
by whoever was told so; only a sweep finds it, and another check wants that.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from relaunch.core.jobs.job import Job
from relaunch.core.machines.machine import Machine, MachineState
from relaunch.core.machines.settings import GROUP_TAG, JOB_TAG, MACHINE_TAG
from relaunch_local.ecs import Clock, Event
from relaunch_local.ecs.engine.model import BillLine, Instance, InstanceState, StateReason
from relaunch_local.simulation.checks.family_pauses import FamilyPauses
from relaunch_local.simulation.checks.reservations import option_of

# What the design says, written down here once more: the checks believe no constant of the application.
MOST_PER_JOB = 6
MOST_PER_CAUSE = 12
# The last four of them are tried six hours apart.
_SPACED_FROM = 8
_APART = timedelta(hours=6)
_DAY = timedelta(hours=24)
# A machine that has taken no task by then is not waited for.
_SHOWS_WITHIN = timedelta(hours=1)
# When machines are to be ready, in the scenario that gives them the least time.
_EARLIEST_DEADLINE = timedelta(minutes=3)
_LONGEST_FUNCTION = timedelta(seconds=67)
_NEVER = datetime.max.replace(tzinfo=UTC)
# So many that were of no use to a job begin its wait for one.
_IN_A_ROW = 3
# A pool whose machines were not ready is avoided for four hours at most.
_AVOIDED = timedelta(hours=4)
_INSTANCE = re.compile(r"ec2InstanceId == (i-[0-9a-f]+)")
# What the agent says if the execution role lacks a permission.
_REFUSED_START = re.compile("AccessDenied|not authorized|no basic auth credentials|unable to assume the role")
_BY_EC2_OR_OTHERS = frozenset(
    {StateReason.SPOT_TERMINATION, StateReason.SCHEDULED_STOP, StateReason.INSTANCE_INITIATED}
)


@dataclass(frozen=True, slots=True)
class Waste:
    """What a run paid for machines that never ran a task."""

    per_job: int = 0
    """The most machines in 24 hours that were requested for one job."""
    per_cause: int = 0
    """The most machines in 24 hours for one cause: a pool, the image, or the words of a refusal."""
    hours: float = 0.0
    """From launch to the end of billing, in all."""

    def worst(self, other: "Waste") -> "Waste":
        """Return the larger of each."""
        return Waste(
            max(self.per_job, other.per_job), max(self.per_cause, other.per_cause), max(self.hours, other.hours)
        )


@dataclass(slots=True)
class UselessMachines:
    """Watches the instances of EC2 Fleet, and what is placed on them."""

    _clock: Clock
    _check: Callable[[str, bool, str], None]
    _jobs: Mapping[str, Job]
    _hosts: Mapping[str, Instance]
    _bills: Mapping[str, BillLine]
    _asked_to_end: Collection[str]
    """The instances that the application asked EC2 to terminate."""
    _denied: Collection[str] = ()
    """The machines of which EC2 said that it launched none, and had."""
    _machines: Mapping[str, Machine] = field(default_factory=dict)
    """The machines as they were saved last."""
    _took_task: dict[str, dict[str, tuple[str, datetime]]] = field(default_factory=lambda: defaultdict(dict))
    """By ARN of the container instance and task: whose it is, and when it was placed there."""
    _warned: dict[str, datetime] = field(default_factory=dict)
    """By instance: when EC2 first said that it takes it back, or may, or that AWS retires it."""
    tried: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """By instance: the jobs whose task ECS placed nothing of there, refused to, or was refused its start."""
    _refused: dict[str, str] = field(default_factory=dict)
    """By instance: the family and the words with which ECS placed nothing on it, or refused to."""
    _starts_refused: dict[str, str] = field(default_factory=dict)
    """By ARN of the container instance: the family whose task was refused its start there."""
    _ran_task: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """By ARN of the container instance: the jobs whose task ran there."""
    _not_allowed: set[str] = field(default_factory=set)
    """The tasks that were refused their start."""
    pauses: FamilyPauses = field(default_factory=FamilyPauses)

    def observe(self, event: Event) -> None:
        """Note a task that is placed, and an instance that EC2 says it takes back."""
        kind = event["detail-type"]
        detail = event["detail"]
        if kind == "ECS Task State Change" and detail.get("containerInstanceArn"):
            job_id = str(detail.get("startedBy", "")).rpartition("/")[0]
            placed = (job_id, self._clock.now())
            self._took_task[detail["containerInstanceArn"]].setdefault(detail["taskArn"], placed)
            self._note_start(detail, job_id)
        elif kind in ("EC2 Spot Instance Interruption Warning", "EC2 Instance Rebalance Recommendation"):
            self._warned.setdefault(detail["instance-id"], self._clock.now())
        elif kind == "AWS Health Event":
            self._warned.setdefault(event["resources"][0], self._clock.now())

    def _note_start(self, detail: Mapping[str, Any], job_id: str) -> None:
        """Note whether a task runs, or its start was refused for lack of a permission."""
        host = detail["containerInstanceArn"]
        family = _family_of(detail["taskDefinitionArn"])
        if detail.get("startedAt"):
            self._ran_task[host].add(job_id)
            if detail["lastStatus"] == "RUNNING":
                self.pauses.note_useful(family)
        elif _REFUSED_START.search(_told_of(detail)):
            self._starts_refused[host] = family
            self._not_allowed.add(detail["taskArn"])
            if any(each.arn == host for each in self._in_order()):
                self.pauses.note_useless(family, host, self._clock.now())
            for instance_id in (each.instance_id for each in self._hosts.values() if each.arn == host):
                self.tried[instance_id].add(job_id)

    def unplaced(self, parameters: Mapping[str, Any], reason: str) -> None:
        """Note that ECS placed nothing, and its words."""
        found = _INSTANCE.search(str(parameters.get("placementConstraints")))
        if found is not None:
            family = _family_of(parameters["taskDefinition"])
            self._refused[found[1]] = f"{family}: {reason}"
            self.pauses.note_useless(family, found[1], self._clock.now())
            self.tried[found[1]].add(str(parameters.get("startedBy", "")).rpartition("/")[0])

    def have_lacked(self) -> bool:
        """Return whether three machines in the last day never ran a task: jobs may wait for one."""
        since = self._clock.now() - _DAY
        ended = (each for each in self._in_order() if each.launched_at > since and not each.is_alive)
        return sum(not self._ran(each) or self._is_start_refused(each) for each in ended) >= _IN_A_ROW

    def is_a_pool_avoided(self) -> bool:
        """Return whether a machine of the last hours never ran a task: its pool is avoided."""
        since = self._clock.now() - _AVOIDED
        return any(self._is_useless(each) for each in self._in_order() if each.launched_at > since)

    def has_used_up(self, job_id: str) -> bool:
        """Return whether a job has had as many machines in the last day that never ran its task as it may have."""
        since = self._clock.now() - _DAY
        of_job = (
            each
            for each in self._hosts.values()
            if each.launched_at > since and (each.tags.get(JOB_TAG) == job_id or job_id in self.tried[each.instance_id])
        )
        return sum(job_id not in self._ran_task[each.arn or ""] for each in of_job) >= MOST_PER_JOB

    def had_none_of_use(self, job: Job, since: datetime) -> bool:
        """Return whether several in a row that were launched for a job took none of its tasks, the first before a time.

        A job that never had one may have begun to wait before, with one on which another job could not start.

        One in some does not come up, and of a group that is enough for all, which others may use. What EC2 took back
        does not count. What somebody ended does: whoever ends each machine would end the next one.
        """
        groups: dict[str, list[Instance]] = defaultdict(list)
        for host in self._in_order():
            if host.tags[JOB_TAG] == job.job_id:
                groups[_group_of(host)].append(host)
        in_a_row: list[datetime] = []
        waits_since = max(self.first_at() or self._clock.now(), job.accepted_at)
        for group in groups.values():
            given_up_at = min(each.ended_at or self._clock.now() for each in group)
            if any(job.job_id in self.tasks_on(each) for each in group):
                in_a_row = []
                waits_since = self._clock.now()
            elif all(self._reclaimed_at(each) > given_up_at for each in group):
                in_a_row.append(group[0].launched_at)
        return len(in_a_row) >= _IN_A_ROW and min(in_a_row[0], waits_since) <= since

    def first_at(self) -> datetime | None:
        """Return when the first machine was launched that was of no use, None without one: a wait may begin with it.

        It begins with one that a task was refused to start on, too, whatever has run there since.
        """
        useless = (each for each in self._in_order() if self._is_useless(each) or each.arn in self._starts_refused)
        return next((each.launched_at for each in useless), None)

    def is_held_back(self, instance_type: str, purchase: str, zone: str) -> bool:
        """Return whether no other machine is bought in a pool now: it is tried with one at a time, or hours later.

        It is tried with one at a time once a machine there took no task, until one does that was launched later. What a
        function does it read a minute ago. One that is requested counts, too, as EC2 may answer with errors for
        minutes, and one that ends until it has. After several that took none the next one is tried hours later.
        """
        now = self._clock.now()
        pool = [each for each in self._in_order() if _pool_of(each) == (instance_type, purchase, zone)]
        shown = {each.instance_id for each in pool if self._took_task_at(each) <= now - _LONGEST_FUNCTION}
        last = max((each.launched_at for each in pool if each.instance_id in shown), default=now - _DAY)
        later = [each for each in pool if each.instance_id not in shown and each.launched_at > max(last, now - _DAY)]
        ended = [each for each in later if not each.is_alive]
        useless = [each for each in ended if self._is_useless(each) or self._may_have_been_late(each)]
        last_at = max((each.launched_at for each in useless), default=_NEVER)
        if len(useless) >= MOST_PER_CAUSE or (len(useless) >= _SPACED_FROM and now - last_at < _APART):
            return True
        started = (each for each in later if each.state is not InstanceState.TERMINATED)
        is_starting = any(now - each.launched_at < _SHOWS_WITHIN for each in started)
        return bool(useless) and (is_starting or self._is_requested(instance_type, purchase, zone))

    def _may_have_been_late(self, host: Instance) -> bool:
        """Return whether some of its group were not ready at the earliest deadline, and EC2 took none back before."""
        group = [each for each in self._hosts.values() if _group_of(each) == _group_of(host)]
        taken_at = min(self._taken_at(each) for each in group)
        unready = (each for each in group if not self._was_ready(each))
        return not self._ran(host) and any(each.launched_at + _EARLIEST_DEADLINE <= taken_at for each in unready)

    def _is_requested(self, instance_type: str, purchase: str, zone: str) -> bool:
        requested = (each for each in self._machines.values() if each.state is MachineState.REQUESTED)
        keys = (override.offering for machine in requested for override in machine.request.overrides)
        return any((key.instance_type, key.purchase.value, key.zone) == (instance_type, purchase, zone) for key in keys)

    def _took_task_at(self, host: Instance) -> datetime:
        return min((at for _, at in self._took_task.get(host.arn, {}).values()), default=_NEVER) if host.arn else _NEVER

    def tasks_on(self, host: Instance) -> Mapping[str, datetime]:
        """Return by job when its first task was placed on an instance whose start was not refused."""
        first: dict[str, datetime] = {}
        for arn, (job_id, at) in self._took_task.get(host.arn, {}).items():
            if arn not in self._not_allowed:
                first.setdefault(job_id, at)
        return first

    def check_end(self) -> Waste:
        """Check a run in which nothing happens any more; return what it paid for nothing."""
        useless = [each for each in self._in_order() if self._is_useless(each)]
        by_job: dict[str, list[datetime]] = defaultdict(list)
        # Where some of a group took tasks, and RunTask failed for the others, starts that fail are what is bounded.
        began = {_group_of(each) for each in self._in_order() if self._ran(each)}
        for host in _one_of_each_group(useless):
            if _group_of(host) not in began:
                by_job[host.tags[JOB_TAG]].append(host.launched_at)
        per_job = self._check_each("a job has few machines in a day that run no task", by_job, MOST_PER_JOB)
        by_cause = {**self._by_cause({each.instance_id for each in useless}), **self._by_start()}
        per_cause = self._check_each("a cause costs few machines in a day", by_cause, MOST_PER_CAUSE)
        hours = sum((self._ended_at(each) - each.launched_at).total_seconds() / 3_600 for each in useless)
        return Waste(per_job, per_cause, hours)

    def _check_each(self, name: str, launches: Mapping[str, list[datetime]], most: int) -> int:
        worst = 0
        for whose, times in sorted(launches.items()):
            count = max((sum(each <= at < each + _DAY for at in times) for each in times), default=0)
            self._check(name, count <= most, f"{whose}: {count} machines")
            worst = max(worst, count)
        return worst

    def _by_cause(self, useless: Collection[str]) -> Mapping[str, list[datetime]]:
        """Return the launches by cause, those after the last one of its kind that was of use.

        One instance in a hundred that fails says nothing of its pool: a sound one ends what came before.
        """
        runs: dict[str, list[datetime]] = defaultdict(list)
        longest: dict[str, list[datetime]] = {}
        groups: dict[str, list[Instance]] = defaultdict(list)
        for host in self._in_order():
            groups[_group_of(host)].append(host)
        for host in (each[0] for each in groups.values()):
            if self._is_of_a_part(host):
                continue
            group = groups[_group_of(host)]
            # Of a group that waited for one of its machines the others show that pool and image are sound.
            is_sound = len(group) > 1 and any(map(self._was_ready, group))
            is_useless = host.instance_id in useless
            for cause in self._causes(host):
                if is_useless and not (is_sound and cause.startswith(("pool ", "image "))):
                    runs[cause].append(host.launched_at)
                    longest[cause] = max(longest.get(cause, []), runs[cause], key=len)[:]
                elif is_sound or self._was_ready(host):
                    runs[cause] = []
        return longest

    def _by_start(self) -> Mapping[str, list[datetime]]:
        """Return the launches of machines that took tasks of which none was allowed to start, by family."""
        found: dict[str, list[datetime]] = defaultdict(list)
        for host in _one_of_each_group(self._in_order()):
            if self._is_start_refused(host):
                found[f"starts refused {self._starts_refused[host.arn]}"].append(host.launched_at)
        return found

    def _is_start_refused(self, host: Instance) -> bool:
        return bool(host.arn) and host.arn in self._starts_refused and not self._ran_task[host.arn]

    def _causes(self, host: Instance) -> Iterator[str]:
        refused = self._refused.get(host.instance_id)
        if self._was_ready(host) and refused is not None and not self._ran(host):
            yield f"refused {refused}"
            return
        yield f"pool {host.instance_type} {option_of(host)} {host.zone}"
        yield f"image {host.image_id}"

    def _in_order(self) -> list[Instance]:
        hosts = self._hosts.values()
        ours = (each for each in hosts if JOB_TAG in each.tags and each.tags.get(MACHINE_TAG) not in self._denied)
        return sorted(ours, key=lambda each: (each.launched_at, each.instance_id))

    def _ended_at(self, host: Instance) -> datetime:
        return self._bills[host.instance_id].billing_ended_at or self._clock.now()

    def _ran(self, host: Instance) -> bool:
        return bool(host.arn) and host.arn in self._took_task

    @staticmethod
    def _was_ready(host: Instance) -> bool:
        return host.registered_at is not None and len(host.gpu_ids) == host.shape.gpus

    def _is_of_a_part(self, host: Instance) -> bool:
        """Return whether EC2 launched fewer machines than one request was for: all are ended, none is used."""
        first = self._machines.get(host.tags[GROUP_TAG]) if GROUP_TAG in host.tags else None
        group = [each for each in self._hosts.values() if _group_of(each) == _group_of(host)]
        return first is not None and len(group) < first.request.size

    def _is_useless(self, host: Instance) -> bool:
        group = (each for each in self._hosts.values() if _group_of(each) == _group_of(host))
        ended_at = host.ended_at or self._clock.now()
        if self._ran(host) or self._is_of_a_part(host) or any(self._taken_at(each) <= ended_at for each in group):
            return False
        job = self._jobs.get(host.tags[JOB_TAG])
        was_over = job is not None and job.ended_at is not None and job.ended_at <= self._ended_at(host)
        return not was_over or host.instance_id in self._refused

    def _taken_at(self, host: Instance) -> datetime:
        """Return when EC2 took an instance back, or said that it would, or others ended it; never if none did."""
        is_ended = host.state_reason in _BY_EC2_OR_OTHERS and self._was_ready(host)
        is_lost = host.state_reason is StateReason.USER_INITIATED and host.instance_id not in self._asked_to_end
        ended_at = (host.ended_at or self._clock.now()) if is_ended or is_lost else _NEVER
        return self._warned.get(host.instance_id, min(ended_at, self._reclaimed_at(host)))

    def _reclaimed_at(self, host: Instance) -> datetime:
        """Return when EC2 took an instance back, or said that it would; never if it did not."""
        is_interrupted = host.state_reason is StateReason.SPOT_TERMINATION
        ended_at = (host.ended_at or self._clock.now()) if is_interrupted else _NEVER
        return self._warned.get(host.instance_id, ended_at)


def _told_of(task: Mapping[str, Any]) -> str:
    """Return what ECS says of the end of a task: the error is in its reason, or in that of a container."""
    reasons = (each.get("reason", "") for each in task.get("containers", ()))
    return "; ".join((str(task.get("stoppedReason", "")), *map(str, reasons)))


def _family_of(task_definition: str) -> str:
    return task_definition.rpartition("/")[2].partition(":")[0].partition("--")[0]


def _pool_of(host: Instance) -> tuple[str, str, str | None]:
    return host.instance_type, option_of(host), host.zone


def _group_of(host: Instance) -> str:
    return host.tags.get(GROUP_TAG, host.instance_id)


def _one_of_each_group(hosts: Iterable[Instance]) -> Iterator[Instance]:
    """Yield the instances; of those that were launched together the first, for they are one purchase."""
    seen = set()
    for host in hosts:
        group = _group_of(host)
        if group not in seen:
            seen.add(group)
            yield host
