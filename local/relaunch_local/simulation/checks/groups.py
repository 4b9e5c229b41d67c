"""Checks that of the jobs of a concurrency group one runs at a time, and that the newest one wins.

Which job is newer is known from when things were pushed, and else from the times of the events.
"""

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch_local.ecs import Clock
from relaunch_local.simulation.checks.facts import AccountFacts
from relaunch_local.simulation.checks.record import Check
from relaunch_local.simulation.group_scenario import BY_BRANCH

# The messages that wake the one in progress are handled within minutes, unless functions are killed, and calls fail.
_LONGEST_BESIDE_NEWER = timedelta(minutes=30)
_LONGEST_FUNCTION = timedelta(seconds=67)
_REPLACED = re.compile(r"replaced by job (\S+), the newest of its concurrency group ")
_PUSHED = re.compile(r"github:push:.*:([0-9]+)")

Group = tuple[str, str]


@dataclass(slots=True)
class Groups:
    """Looks at each job of a group that is saved, and at each task of one."""

    _check: Check
    _clock: Clock
    _facts: AccountFacts
    _may_run: Callable[[str], bool]
    """Returns whether a job has a live task that it may not give up."""
    on_replaced: Callable[[str], object] = lambda _job_id: None
    """Called with each job that is rightly cancelled for a newer one."""
    _jobs: dict[Group, dict[str, Job]] = field(default_factory=lambda: defaultdict(dict))
    _released_at: dict[Group, datetime] = field(default_factory=dict)
    """When a job that held the group ended last."""

    def job_saved(self, before: Job | None, job: Job) -> None:
        """Check a job that was created or saved."""
        group = _group_of(job)
        if group is None:
            return
        self._check("a job is in the group of its definition", job.group.name == group[1], job.job_id)
        others = self._jobs[group]
        others[job.job_id] = job
        self._check_launch(before, job, others)
        if by := _replaced_by(job):
            self._check_replacement(before, job, others.get(by), by)
        self._check_progress(job, others)
        self._check_wait(before, job, group)
        if before is not None and _is_in_progress(before) and not _is_in_progress(job):
            self._released_at[group] = self._clock.now()

    def check_task(self, job: Job | None) -> None:
        """Check a job that has a new live task."""
        group = _group_of(job) if job is not None else None
        if job is None or group is None:
            return
        others = [each for each in self._jobs[group] if each != job.job_id and self._may_run(each)]
        message = f"{job.job_id} beside {', '.join(others)}"
        self._check("one job of a concurrency group has a task at a time", not others, message)

    def others_of(self, job: Job) -> list[Job]:
        """Return the other jobs of the group that a job is in by its trigger, each as it was saved last."""
        group = _group_of(job)
        if group is None:
            return []
        return [each for each in self._jobs[group].values() if each.job_id != job.job_id]

    def check_end(self) -> None:
        """Check that the newest job of each group was replaced by none."""
        for (definition, name), jobs in self._jobs.items():
            newest_at = max(map(_happened_at, jobs.values()))
            newest = [job for job in jobs.values() if _happened_at(job) == newest_at]
            message = f"{definition} {name}: {', '.join(job.job_id for job in newest)}"
            is_kept = any(not is_replaced(job) for job in newest)
            self._check("the newest job of a concurrency group wins", is_kept, message)

    def _check_launch(self, before: Job | None, job: Job, others: dict[str, Job]) -> None:
        if job.attempt is None or (before is not None and before.attempt is not None):
            return
        newer = [each for each, other in others.items() if _happened_at(other) > _happened_at(job)]
        message = f"{job.job_id}, and {', '.join(newer)} are newer"
        self._check("only the newest job of a concurrency group is launched", not newer, message)

    def _check_replacement(self, before: Job | None, job: Job, newer: Job | None, by: str) -> None:
        if before is not None and _replaced_by(before):
            return
        is_newer = newer is not None and _happened_at(newer) >= _happened_at(job)
        self._check("a job is replaced by a newer one of its group", is_newer, f"{job.job_id} by {by}")
        was_launched = before is not None and before.attempt is not None
        policy = newer.definition.concurrency if newer is not None else None
        may_cancel = policy is not None and policy.cancel_in_progress
        self._check("a job in progress is left alone unless the newer one cancels", may_cancel or not was_launched, by)
        if is_newer and (may_cancel or not was_launched):
            self.on_replaced(job.job_id)

    def _check_progress(self, job: Job, others: dict[str, Job]) -> None:
        """Check that one in progress is cancelled soon after a newer one that cancels it was accepted."""
        if not _is_in_progress(job) or job.cancel_requested:
            return
        newest = max(others.values(), key=_happened_at)
        policy = newest.definition.concurrency
        # Of events of the same moment either may be taken for the newer one.
        is_newest = _happened_at(job) >= _happened_at(newest)
        if is_newest or policy is None or not policy.cancel_in_progress:
            return
        now = self._clock.now()
        beside = now - newest.accepted_at
        is_soon = beside <= _LONGEST_BESIDE_NEWER + self._facts.outage_time(newest.accepted_at, now)
        message = f"{job.job_id} is {job.state}, {beside} beside {newest.job_id}"
        self._check("a job in progress is cancelled for a newer one that cancels", is_soon, message)

    def _check_wait(self, before: Job | None, job: Job, group: Group) -> None:
        if not is_group_wait(job) or (before is not None and before.waiting == job.waiting):
            return
        released_at = self._released_at.get(group)
        was_held = released_at is not None and self._clock.now() - released_at <= _LONGEST_FUNCTION
        is_held = was_held or any(map(_is_in_progress, self._jobs[group].values()))
        self._check("a job waits for its group only while another one holds it", is_held, job.job_id)


def is_group_wait(job: Job) -> bool:
    """Return whether a job waits for its concurrency group."""
    waiting = job.waiting
    return waiting is not None and waiting.reason is WaitReason.SLOT and "#" in waiting.slot


def _group_of(job: Job) -> Group | None:
    """Return the group that a job should be in by its trigger; None if in none, as one that was refused."""
    concurrency = job.definition.concurrency
    is_refused = job.state is JobState.FAILED and job.ended_at == job.accepted_at
    if concurrency is None or is_refused:
        return None
    if concurrency.group != BY_BRANCH:
        return job.definition.name, concurrency.group
    ref = job.trigger.environment.get("RELAUNCH_GIT_REF", "")
    return (job.definition.name, ref.removeprefix("refs/heads/")) if ref.startswith("refs/heads/") else None


def _happened_at(job: Job) -> datetime:
    """Return when what started a job happened, to the second."""
    pushed = _PUSHED.fullmatch(job.trigger.identity)
    if pushed is not None:
        return datetime.fromtimestamp(int(pushed[1]), UTC)
    return job.group.event_at or job.accepted_at.replace(microsecond=0)


def _is_in_progress(job: Job) -> bool:
    return job.attempt is not None and not job.state.is_final


def is_replaced(job: Job) -> bool:
    """Return whether a job is, or was, cancelled for a newer one of its group."""
    return bool(_replaced_by(job))


def _replaced_by(job: Job) -> str:
    """Return the newer job that a job was cancelled for, empty if it was not."""
    reason = job.cancel_requested or (job.reason if job.state is JobState.CANCELLED else "")
    found = _REPLACED.match(reason)
    return found[1] if found else ""
