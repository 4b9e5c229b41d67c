"""Checks of what an error of a start, a fault of a machine and an early failure cost.

All is reckoned from what the simulated AWS did: which task met which error, on which instance, when, and whether ECS
described its end. Of the application only the end of the job and its words are looked at, as a user sees them. That a
fault was injected excuses nothing.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise

from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch_local.ecs import Purchase
from relaunch_local.ecs.engine.model import Instance
from relaunch_local.simulation.checks.facts import NOTICE_LEAD, AccountFacts
from relaunch_local.simulation.checks.reservations import option_of
from relaunch_local.simulation.checks.times import timestamp

# What the design says, written down here once more: the checks believe no constant of the application.
_UNKNOWN_MACHINES = 2
_KEPT_REFUSED = timedelta(minutes=10)
_ANOTHER_POOL_FOR = timedelta(minutes=10)
_PROBES = (timedelta(minutes=15), timedelta(hours=1), timedelta(hours=4))
_DAY = timedelta(days=1)
# The clocks of functions differ from ECS's by three seconds.
_CLOCK_SKEW = timedelta(seconds=7)
# How long a job waits for EC2 to say that the instance of its failed start ended.
_UNTIL_DECIDED = timedelta(minutes=1)


class Cause(StrEnum):
    """Why a task failed, as AWS documents it or as the agent's source has it."""

    EVERYWHERE = "start-fails-everywhere"
    """Its start fails on every machine: a secret, a command or an image that is not there."""
    MACHINE = "start-fails-on-a-machine"
    """Its start fails on this machine."""
    TRANSIENT = "start-fails-for-minutes"
    """Its start fails everywhere, and will not in some minutes."""
    REFUSED = "start-refused"
    """Its start fails on every machine, until somebody grants a permission or a credential."""
    UNKNOWN = "start-fails-with-unknown-words"
    """Its start fails with words that no documentation has."""
    XID = "gpu-fails"
    """The driver reported an error of a GPU while it ran."""
    EXIT_CODE = "program-blames-its-machine"
    """Its program ended with the exit code with which it says that the machine is at fault."""


OF_THE_MACHINE = frozenset({Cause.MACHINE, Cause.XID, Cause.EXIT_CODE})
Task = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class FailedTask:
    """A task that met a fault."""

    cause: Cause
    text: str
    instance_id: str
    pool: tuple[str, str, str]
    """The type, zone and purchase option of its instance."""


@dataclass(slots=True)
class FailedTasks:
    """What the tasks met, as the simulated AWS knows."""

    _check: Callable[[str, bool, str], None]
    _facts: AccountFacts
    _hosts: Mapping[str, Instance]
    """The instances that EC2 Fleet launched."""
    _terminations: Mapping[str, datetime]
    """By instance: when the application last asked EC2 to terminate it."""
    met: dict[str, FailedTask] = field(default_factory=dict)
    """By task."""

    def meets(self, task_arn: str, cause: Cause, text: str, host: Instance) -> None:
        """Note that a task meets a fault on its instance."""
        pool = (host.instance_type, host.zone, option_of(host))
        self.met[task_arn] = FailedTask(cause, text, host.instance_id, pool)

    def was_refused(self, task_arn: str) -> bool:
        """Return whether the start of a task was refused, until somebody grants what it needs."""
        return task_arn in self.met and self.met[task_arn].cause is Cause.REFUSED

    def deserves_its_end(self, tasks: Mapping[str, Task]) -> bool:
        """Return whether a job may be FAILED because it starts nowhere, as far as anybody can know."""
        found = [self.met[arn] for arn in tasks if arn in self.met]
        of_unknown = {each.instance_id for each in found if each.cause is Cause.UNKNOWN}
        return any(each.cause is Cause.EVERYWHERE for each in found) or len(of_unknown) >= _UNKNOWN_MACHINES

    def check_job(
        self, job: Job, tasks: Mapping[str, Task], is_told: Callable[[str, Task], bool], *, is_called_off: bool
    ) -> None:
        """Check what the faults cost a job.

        `is_told` returns whether ECS described the end of a task to the application. `is_called_off`: somebody
        cancelled the job, stopped its task, or its time was over by then.
        """
        placed = [arn for arn in _in_order(tasks) if self._facts.host_of(arn)]
        told = [arn for arn in placed if self._tells(arn) and is_told(arn, tasks[arn])]
        self._check_everywhere(job, told, is_called_off=is_called_off)
        self._check_unknown(job, tasks, told, is_called_off=is_called_off)
        self._check_refused(job, tasks, told)
        for arn, following in pairwise(placed):
            if arn in told and self.met[arn].cause in OF_THE_MACHINE:
                before = self.met[arn].instance_id
                if not self._is_node_told(before, tasks[arn], tasks[following]):
                    continue
                after = self._facts.host_of(following)
                message = f"{job.job_id}: {self.met[arn].cause}, and {following[-6:]} on {after} again"
                self._check("after a fault of its machine a job goes to another one", before != after, message)

    def _tells(self, task_arn: str) -> bool:
        """Return whether a task met a fault that its end tells of.

        What follows a StopTask is the answer to it, except for an error that is the same everywhere.
        """
        met = self.met.get(task_arn)
        is_asked = task_arn in self._facts.stop_asked_at
        return met is not None and (met.cause is Cause.EVERYWHERE or not is_asked)

    def _is_node_told(self, instance_id: str, task: Task, following: Task) -> bool:
        """Return whether anybody could know the instance of a task before the next one was asked for.

        Of machines of our own EC2 tells it; of those of a capacity provider ECS does, in a call that may always fail.
        """
        told_at = self._facts.shown_nodes[instance_id]
        since = timestamp(task, "createdAt")
        until = timestamp(following, "createdAt")
        is_told = since is not None and until is not None and any(since <= at <= until for at in told_at)
        return is_told or instance_id in self._hosts

    def _check_everywhere(self, job: Job, told: Sequence[str], *, is_called_off: bool) -> None:
        found = [self.met[arn] for arn in told if self.met[arn].cause is Cause.EVERYWHERE]
        if not found:
            return
        machines = dict.fromkeys(each.instance_id for each in found)
        message = f"{job.job_id}: {', '.join(machines)}: {found[0].text}"
        self._check("an error that is the same everywhere costs one machine", len(machines) == 1, message)
        self._check_words(job, found[0].text, is_called_off=is_called_off)

    def _check_unknown(self, job: Job, tasks: Mapping[str, Task], told: Sequence[str], *, is_called_off: bool) -> None:
        arns = [arn for arn in told if self.met[arn].cause is Cause.UNKNOWN]
        # A start that fails as EC2 takes its instance away may have failed for that.
        arns = [arn for arn in arns if not self._is_threatened(tasks[arn], self.met[arn].instance_id)]
        machines = dict.fromkeys(self.met[arn].instance_id for arn in arns)
        message = f"{job.job_id}: {', '.join(machines)}"
        self._check("words that nobody knows cost two machines", len(machines) <= _UNKNOWN_MACHINES, message)
        if len(arns) < _UNKNOWN_MACHINES:
            return
        first, second = arns[:2]
        stopped_at = timestamp(tasks[first], "stoppedAt")
        created_at = timestamp(tasks[second], "createdAt")
        is_later = (
            stopped_at is None or created_at is None or created_at - stopped_at >= _ANOTHER_POOL_FOR - _CLOCK_SKEW
        )
        is_elsewhere = self.met[first].pool != self.met[second].pool
        message = f"{job.job_id}: twice {self.met[first].pool} within {_ANOTHER_POOL_FOR}"
        self._check("words that nobody knows are tried in another pool", is_elsewhere or is_later, message)
        if len(machines) >= _UNKNOWN_MACHINES:
            self._check_words(job, self.met[second].text, is_called_off=is_called_off)

    def _check_refused(self, job: Job, tasks: Mapping[str, Task], told: Collection[str]) -> None:
        """Check that machines are tried as probes are, counted from the first start in a row that was refused."""
        since: datetime | None = None
        count = 0
        for arn in _in_order(tasks):
            if "startedAt" in tasks[arn]:
                since = None
                count = 0
            created_at = timestamp(tasks[arn], "createdAt")
            stopped_at = timestamp(tasks[arn], "stoppedAt")
            if arn not in told or not self.was_refused(arn) or created_at is None or stopped_at is None:
                continue
            since = since or stopped_at
            count = count + 1
            waited = max(created_at - since, timedelta()) + _CLOCK_SKEW
            allowed = 1 + sum(each <= waited for each in _PROBES) + waited // _DAY
            message = f"{job.job_id}: {count} in {waited}, not {allowed}"
            self._check("no more machines than probes are tried for a refused start", count <= allowed, message)

    def refused_since(
        self, tasks: Mapping[str, Mapping[str, Task]], recorded_at: Mapping[str, datetime]
    ) -> Mapping[str, datetime]:
        """Return the jobs whose last task was refused its start, with the time when the first one in a row was known.

        `tasks` are those of each job, `recorded_at` tells when the end of each was recorded.
        """
        found: dict[str, datetime] = {}
        for job_id, own in tasks.items():
            refused: list[str] = []
            for arn in _in_order(own):
                if "startedAt" in own[arn]:
                    refused.clear()
                elif self.was_refused(arn) and arn in recorded_at and self._says_why_it_did_not_start(arn, own[arn]):
                    refused.append(arn)
            if refused and refused[-1] == _in_order(own)[-1]:
                found[job_id] = recorded_at[refused[0]]
        return found

    def _says_why_it_did_not_start(self, task_arn: str, task: Task) -> bool:
        """Return whether its end says why a task did not start: also if it had stopped before StopTask was called."""
        stopped_at = timestamp(task, "stoppedAt")
        asked_at = self._facts.stop_asked_at.get(task_arn)
        return self._tells(task_arn) or (stopped_at is not None and asked_at is not None and stopped_at < asked_at)

    def _is_threatened(self, task: Task, instance_id: str) -> bool:
        stopped_at = timestamp(task, "stoppedAt")
        # A start has no exit code that says otherwise: the end of its instance explains it, until its job has decided.
        return stopped_at is None or self.was_threatened(instance_id, stopped_at, within=_UNTIL_DECIDED)

    def _check_words(self, job: Job, text: str, *, is_called_off: bool) -> None:
        is_said = job.state is JobState.FAILED and text in job.reason
        message = f"{job.job_id} is {job.state}: {job.reason[:80]}, not: {text}"
        self._check("a job that starts nowhere ends with the words of the error", is_said or is_called_off, message)

    def was_threatened(self, instance_id: str, by: datetime, *, within: timedelta = NOTICE_LEAD) -> bool:
        """Return whether something else than the program may have ended a task on an instance by then.

        EC2 may say so `within` some time. What the application ends because the task has stopped is no such thing.
        """
        until = by + within + _CLOCK_SKEW
        if self._facts.was_noticed(instance_id, until) or self._facts.has_unconfirmed_stop(instance_id):
            return True
        ended_at = self._facts.ended_at.get(instance_id)
        asked_at = self._terminations.get(instance_id)
        if ended_at is None or ended_at > until:
            return False
        return asked_at is None or not by <= asked_at <= ended_at

    def check_early_failure(
        self, job: Job, tasks: Mapping[str, Task], failed: str, unplaced: Mapping[str, Collection[str]]
    ) -> None:
        """Check that a program which failed early is started again on its machine of our own, if that is still there.

        `failed` is the task that failed early, and that nothing else may have ended; `unplaced` are, by instance, the
        jobs of which ECS placed nothing there.
        """
        host = self._hosts.get(self._facts.host_of(failed))
        placed = [arn for arn in _in_order(tasks) if self._facts.host_of(arn)]
        following = placed[placed.index(failed) + 1 :] if failed in placed else []
        if host is None or not following or job.job_id in unplaced.get(host.instance_id, ()):
            return
        next_host = self._facts.host_of(following[0])
        created_at = timestamp(tasks[following[0]], "createdAt")
        is_same = next_host == host.instance_id
        message = f"{job.job_id}: {host.instance_id}, then {next_host}"
        stopped_at = timestamp(tasks[failed], "stoppedAt")
        if created_at is None or stopped_at is None:
            return
        is_there = self._is_there(host, stopped_at, created_at)
        # A job that is refused something keeps its machine for ten minutes only, and one without an answer of RunTask.
        kept = _KEPT_REFUSED - _CLOCK_SKEW
        lost = [at for at in self._facts.unanswered_jobs.get(job.job_id, ()) if stopped_at <= at <= created_at]
        is_unanswered = bool(lost) and lost[-1] - lost[0] >= kept
        is_there = is_there and not (is_unanswered or self._facts.was_refused(stopped_at, created_at, kept))
        # Whoever has a limit on their time leaves spot where only on-demand keeps it.
        following_host = self._hosts.get(next_host)
        left_for = following_host.purchase if following_host and host.purchase is Purchase.SPOT else Purchase.SPOT
        has_limit = job.definition.deadline is not None or job.definition.patience is not None
        is_there = is_there and not (has_limit and left_for is not Purchase.SPOT)
        self._check("a program that failed early is started on its machine again", is_same or not is_there, message)

    def _is_there(self, host: Instance, since: datetime, until: datetime) -> bool:
        """Return whether the instance lived all the time, or would have, had the application not ended it."""
        ended_at = self._facts.ended_at.get(host.instance_id)
        asked_at = self._terminations.get(host.instance_id)
        is_ended_by_us = asked_at is not None and asked_at >= since and (ended_at is None or asked_at <= ended_at)
        # An agent is disconnected when its instance has ended, too.
        alive_until = min(until, ended_at or until) - _CLOCK_SKEW
        is_away = self._facts.was_away(host.instance_id, since, max(alive_until, since))
        is_left = is_away or self._facts.was_noticed(host.instance_id, until)
        return not is_left and (ended_at is None or ended_at > until or is_ended_by_us)


def _in_order(tasks: Mapping[str, Task]) -> list[str]:
    return sorted(tasks, key=lambda arn: str(tasks[arn].get("createdAt", "")))
