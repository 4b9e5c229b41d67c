"""Checks of launches that are refused because a permission is missing, from what ECS was asked and answered.

A refusal is over within minutes after a deployment, or within hours once somebody grants the permission. It costs no
job its life, buys no machines but the probes, and once it is over the job goes on by the next probe.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import QUEUES, JobState, WaitReason
from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.runtime import Runtime

# What the design says, written down here once more: the checks believe no constant of the application.
_KEPT = timedelta(minutes=10)
_PROBES = (timedelta(minutes=15), timedelta(hours=1), timedelta(hours=4))
_DAY = timedelta(days=1)
_FREE_POLL = timedelta(minutes=30)
# The clocks of two functions differ by up to six seconds.
_CLOCK_SKEW = timedelta(seconds=15)
# A run of the schedule that fails, as most do with many faults, is made up for by the next ones.
_LATE = timedelta(minutes=30)
_INSTANCE = re.compile(r"ec2InstanceId == (i-[0-9a-f]+)")


@dataclass(slots=True)
class _Episode:
    """RunTask is refused for a job `since` then; it was refused on `instances`, in the order of the calls.

    Both are what the application knows: a function that is killed, or fails, before it has saved the job leaves
    nobody who knows of the refusal.
    """

    since: datetime
    instances: list[str] = field(default_factory=list)
    is_known: bool = False
    was_taken: bool = False
    """Whether ECS took the job's last call, and placed nothing: it waits for a machine, not for a permission."""

    def note(self, instance: str, at: datetime) -> None:
        """Note a refusal that the application knows, of a call `at` then; the instance is empty if it named none."""
        if not self.is_known:
            self.since = at
        self.is_known = True
        if instance and instance not in self.instances:
            self.instances.append(instance)


@dataclass(slots=True)
class Refusals:
    """Watches the jobs whose RunTask is refused."""

    _clock: Clock
    _runtime: Runtime
    _check: Callable[[str, bool, str], None]
    _jobs: Mapping[str, Job]
    """The jobs as they were saved last."""
    _outage_time: Callable[[datetime, datetime], timedelta]
    _have_lacked: Callable[[], bool] = lambda: False
    """Returns whether so many machines ran no task that jobs wait for one by the same probes."""
    _is_a_pool_avoided: Callable[[], bool] = lambda: False
    _paused_until: Callable[[str, datetime], datetime] = lambda _family, now: now
    """Returns until when no machine is bought for a family, for which several were useless."""
    find_open: Callable[[Job], str] = lambda _job: ""
    """Returns what a job may be launched on now; empty if that is nothing, or not known."""
    _open: dict[str, _Episode] = field(default_factory=dict)
    _starts: Mapping[str, datetime] = field(default_factory=dict)
    """The jobs whose tasks were refused their start, since when, at the moment when it was granted."""
    _registrations: list[datetime] = field(default_factory=list)
    """When RegisterTaskDefinition was refused: for which job, ECS is not told."""
    _not_registered_since: dict[str, datetime] = field(default_factory=dict)
    """By job: since when it is known that its registration was refused, by the function that saved it then."""
    _queued: dict[str, timedelta] = field(default_factory=dict)
    """By job: how long it has waited behind others."""
    _queued_since: dict[str, datetime] = field(default_factory=dict)
    _went_on_at: dict[str, datetime] = field(default_factory=dict)
    """When each job was last saved as one that does not wait for a permission."""
    _kept_since: dict[tuple[str, str], datetime] = field(default_factory=dict)
    """By job and machine: since when the machine is kept while the job waits for a permission."""

    def register_refused(self) -> None:
        """Note that RegisterTaskDefinition is refused, for a job that may have its machine already."""
        now = self._clock.now()
        self._registrations.append(now)
        self._unsaved().append(("", "", now))

    def answered(self, started_by: str, *, has_task: bool) -> None:
        """Note that ECS took the call of a job: it made a task, or it has no machine for one.

        A machine that is bought then is not bought for the refusal.
        """
        job_id = started_by.rpartition("/")[0]
        if has_task:
            self._open.pop(job_id, None)
            self._not_registered_since.pop(job_id, None)
        elif job_id in self._open:
            self._open[job_id].instances.clear()
            self._open[job_id].was_taken = True

    def refused(self, parameters: Mapping[str, Any]) -> None:
        """Note that RunTask is refused, and check that its machine is no more than a probe."""
        job_id = str(parameters["startedBy"]).rpartition("/")[0]
        now = self._clock.now()
        episode = self._open.setdefault(job_id, _Episode(now))
        episode.was_taken = False
        found = _INSTANCE.search(str(parameters.get("placementConstraints")))
        instance = found[1] if found else ""
        self._unsaved().append((job_id, instance, now))
        if not instance or instance in episode.instances:
            return
        machines = len(episode.instances) + 1
        since = episode.since if episode.is_known else now
        waited = now - min(since, self._not_registered_since.get(job_id, since)) + _CLOCK_SKEW
        allowed = 1 + sum(each <= waited for each in _PROBES) + waited // _DAY
        message = f"{job_id}: {machines} machines in {waited}, not {allowed}"
        self._check("no more machines than probes are bought for a refusal", machines <= allowed, message)

    def message_handled(self) -> None:
        """Note that a function has handled a message without an error: it knows what was refused meanwhile."""
        for job_id, instance, at in self._unsaved():
            if job_id in self._open:
                self._open[job_id].note(instance, at)

    def _note_known(self, saved: str) -> None:
        """Note that the running function knows what was refused to the job that it has just saved."""
        for each in tuple(self._unsaved()):
            job_id, instance, at = each
            if job_id in ("", saved):
                self._unsaved().remove(each)
            if not job_id:
                self._not_registered_since.setdefault(saved, at)
            elif job_id == saved and saved in self._open:
                self._open[saved].note(instance, at)

    def _unsaved(self) -> list[tuple[str, str, datetime]]:
        return self._runtime.current.refused if self._runtime.current is not None else []

    def job_saved(self, job: Job) -> None:
        """Check that a refused job keeps a machine for some minutes only."""
        now = self._clock.now()
        self._note_known(job.job_id)
        is_refused = job.waiting is not None and job.waiting.reason in (WaitReason.REFUSED, WaitReason.CHECKPOINT)
        # S3 refuses by itself, and is read before ECS is asked again.
        if not is_refused or (job.waiting is not None and job.waiting.reason is WaitReason.CHECKPOINT):
            self._went_on_at[job.job_id] = now
        if (since := self._queued_since.pop(job.job_id, None)) is not None:
            self._queued[job.job_id] = self._queued.get(job.job_id, timedelta(0)) + now - since
        if job.waiting is not None and job.waiting.reason in QUEUES:
            self._queued_since[job.job_id] = now
        if is_refused and job.machine_id:
            since = self._kept_since.setdefault((job.job_id, job.machine_id), now)
            is_short = now - since <= _KEPT + _LATE + self._outage_time(since, now)
            message = f"{job.job_id} keeps {job.machine_id} for {now - since}"
            self._check("a refused job keeps its machine for minutes only", is_short, message)

    def granted(self, still_refused: Collection[str] = ()) -> None:
        """Check later that each job that was refused goes on by its next probe, but for those of families that are."""
        now = self._clock.now()
        for job_id, episode in self._open.items():
            if episode.was_taken or self._jobs[job_id].definition.task_definition in still_refused:
                continue
            wait = self._next_try(episode, now) + _LATE
            self._clock.call_later(wait.total_seconds(), self._went_on(job_id, now))

    def starts_granted(self, refused_since: Mapping[str, datetime]) -> None:
        """Check later that each job whose tasks were refused their start, since then, goes on by its next probe."""
        now = self._clock.now()
        self._starts = refused_since
        for job_id, since in refused_since.items():
            wait = _until_probe(since, now) + _LATE
            self._clock.call_later(wait.total_seconds(), self._went_on(job_id, now))

    def longest_wait(self) -> timedelta:
        """Return how long the last job may wait that was refused, if everything is granted from now on."""
        now = self._clock.now()
        since = [*self._registrations, *self._starts.values(), *(episode.since for episode in self._open.values())]
        pauses = [self._pause(job_id, now) for job_id in (*self._starts, *self._open)]
        return max([*(_until_probe(each, now) for each in since), *pauses], default=timedelta(0))

    def _pause(self, job_id: str, now: datetime) -> timedelta:
        """Return for how long no machine is bought for the family of a job."""
        return self._paused_until(self._jobs[job_id].definition.task_definition, now) - now

    def _next_try(self, episode: _Episode, now: datetime) -> timedelta:
        """Return the time until the job is tried again: by a probe, or by a call that is free."""
        if not episode.instances and not self._registrations:
            return _FREE_POLL
        # Its registration may have been refused too, before RunTask was or later, with a machine that it had claimed.
        return max(_until_probe(each, now) for each in (episode.since, *self._registrations))

    def _went_on(self, job_id: str, granted_at: datetime, *, allowed: timedelta = timedelta(0)) -> Callable[[], None]:
        def look() -> None:
            now = self._clock.now()
            pause = self._pause(job_id, now - _LATE)
            # What it waits behind others puts its probes off.
            lost = self._outage_time(granted_at, now) + self._queued.get(job_id, timedelta(0))
            if pause > timedelta(0) or lost > allowed:
                late = max(lost - allowed, pause)
                self._clock.call_later(late.total_seconds(), self._went_on(job_id, granted_at, allowed=lost))
                return
            job = self._jobs[job_id]
            went_on_at = self._went_on_at.get(job_id)
            is_going_on = job.state is not JobState.WAITING or (went_on_at is not None and went_on_at >= granted_at)
            is_going_on = is_going_on or self._lacks_machines(job)
            message = f"{job_id} waits for what was granted at {granted_at:%m-%d %H:%M:%S}: {job.waiting}"
            self._check("a job goes on by its next probe once it may", is_going_on, message)

        return look

    def _lacks_machines(self, job: Job) -> bool:
        """Return whether machines ran no task: a job waits for one by the same probes, or all it may use is avoided."""
        return self._have_lacked() or (self._is_a_pool_avoided() and not self.find_open(job))


def _until_probe(since: datetime, now: datetime) -> timedelta:
    """Return the time until the next probe of a job that is refused since then."""
    # Each function decides by a clock of its own on which side of a probe it is.
    waited = now - since
    daily = (waited // _DAY + 1) * _DAY
    return next((each for each in _PROBES if each > waited + _CLOCK_SKEW), daily) - waited
