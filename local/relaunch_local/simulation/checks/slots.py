"""Checks that no more jobs hold slots, and no more tasks run, than the limits allow."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch_local.simulation.checks.record import Check


@dataclass(slots=True)
class _JobCounts:
    """A set of jobs, counted by definition."""

    jobs: dict[str, str] = field(default_factory=dict)
    of: Counter[str] = field(default_factory=Counter)

    def note(self, job: Job) -> None:
        if job.job_id not in self.jobs:
            self.jobs[job.job_id] = job.definition.name
            self.of[job.definition.name] += 1

    def forget(self, job_id: str) -> None:
        name = self.jobs.pop(job_id, None)
        if name is not None:
            self.of[name] -= 1


@dataclass(slots=True)
class Slots:
    """Counts the jobs that hold a slot, and those that have a task."""

    _check: Check
    _max_running_jobs: int
    _may_run: Callable[[str], bool]
    """Returns whether a job has a live task that it may not give up."""
    _holders: _JobCounts = field(default_factory=_JobCounts)
    """The jobs that hold a slot."""
    _running: _JobCounts = field(default_factory=_JobCounts)
    """The jobs that have a live task."""

    def check_job(self, job: Job) -> None:
        """Check a job that was saved."""
        if job.waiting is not None and job.waiting.reason in (WaitReason.CHECKPOINT, WaitReason.REFUSED):
            has_kept = job.has_slot == bool(job.machine_id)
            self._check("a job that is refused holds a slot only with a machine that it keeps", has_kept, job.job_id)
        if not job.has_slot:
            self._holders.forget(job.job_id)
            return
        self._holders.note(job)
        same = self._holders.of[job.definition.name]
        every = len(self._holders.jobs)
        is_kept = same <= job.definition.max_running_jobs and every <= self._max_running_jobs
        self._check("max_running_jobs is kept", is_kept, f"{same} of {job.definition.name}, {every} in all")

    def check_task(self, job_id: str, job: Job | None) -> None:
        """Check a job that has a new live task."""
        self._check("a task belongs to a job", job is not None, job_id)
        if job is None:
            return
        self._running.note(job)
        if not self._is_kept(job):
            for each in [each for each in self._running.jobs if not self._may_run(each)]:
                self._running.forget(each)
        counts = f"{self._running.of[job.definition.name]} of {job.definition.name}, {len(self._running.jobs)} in all"
        self._check("no more tasks than max_running_jobs", self._is_kept(job), counts)
        self._check("only open jobs get tasks", job.state is not JobState.SUCCEEDED, f"{job_id} is {job.state}")

    def _is_kept(self, job: Job) -> bool:
        same = self._running.of[job.definition.name]
        return same <= job.definition.max_running_jobs and len(self._running.jobs) <= self._max_running_jobs

    def task_gone(self, job_id: str) -> None:
        """Note that a job has no live task any more."""
        self._running.forget(job_id)
