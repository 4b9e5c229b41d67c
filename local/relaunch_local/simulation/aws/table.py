"""The jobs table: every call may fail, and the indexes are eventually consistent."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from relaunch.core.jobs.job import AdmitWaiting, CountRun, Effect, Job, LookForWarning, RememberCapacity, TimelineEntry
from relaunch.core.jobs.lookup import due_at, waited_slot
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.offerings.offering import CapacityFailure
from relaunch.core.offerings.spot_runs import SpotRun
from relaunch.ports import TransientError
from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.calls import CallErrors, Calls
from relaunch_local.simulation.faults.chance import Chance

STORE_ERRORS = CallErrors(
    refused=lambda name: TransientError(f"{name}: InternalServerError"),
    throttled=lambda name: TransientError(f"{name}: ThrottlingException"),
    unanswered=lambda name: TransientError(f"{name}: no answer"),
)

OnSaved = Callable[[Job, Sequence[TimelineEntry], bool], None]
"""Called with a job as it was saved, its new timeline entries, and whether it is new."""
OnEffect = Callable[[type[Effect], str], None]
"""Called with the type of an effect that was done, and its object."""


@dataclass
class Indexes:
    """The table's indexes, which lag behind the table."""

    _clock: Clock
    _chance: Chance
    _entries: dict[str, list[tuple[datetime, Job]]] = field(default_factory=lambda: defaultdict(list))

    def note(self, job: Job) -> None:
        """Propagate a write to the indexes, with a delay."""
        entries = self._entries[job.job_id]
        visible_at = self._clock.now() + timedelta(seconds=self._lag(job.job_id))
        entries.append((max(visible_at, entries[-1][0]) if entries else visible_at, job))

    def jobs(self) -> list[Job]:
        """Return the jobs as the indexes show them."""
        shown = (self._shown(job_id) for job_id in self._entries)
        return [job for job in shown if job is not None]

    def waiting(self, slot: str) -> list[Job]:
        """Return the jobs that the index `waiting` has under a slot, unordered."""
        return [job for job in self.jobs() if waited_slot(job) == slot]

    def _shown(self, job_id: str) -> Job | None:
        now, entries = self._clock.now(), self._entries[job_id]
        while len(entries) > 1 and entries[1][0] <= now:
            del entries[0]
        return entries[0][1] if entries[0][0] <= now else None

    def next_due_at(self) -> datetime | None:
        """Return when the next job is due, by the table or any index."""
        moments = (due_at(job) for entries in self._entries.values() for _, job in entries)
        return min((moment for moment in moments if moment is not None), default=None)

    def _lag(self, job_id: str) -> float:
        if self._chance.strikes("index-behind", 0.01, note=job_id):
            return self._chance.stream("index-lag").uniform(3.0, 60.0)
        return self._chance.stream("index-latency").uniform(0.0, 0.3)


@dataclass
class CalledStore:
    """Makes every method of a store a DynamoDB call that may fail."""

    _store: Any
    _calls: Calls

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Wrap every method that is not overridden."""
        method = getattr(self._store, name)
        return lambda *arguments, **named: self._call(name, lambda: method(*arguments, **named))

    def _call(self, name: str, effect: Callable[[], Any]) -> Any:
        return self._calls.perform("dynamodb", name, effect, STORE_ERRORS)


@dataclass
class CalledCapacity(CalledStore):
    """The capacity memory; `on_effect` is called with each remembered failure."""

    _on_effect: OnEffect

    def remember(self, failure: CapacityFailure) -> None:
        """Remember a capacity failure."""

        def effect() -> None:
            self._store.remember(failure)
            self._on_effect(RememberCapacity, str(failure.offering))

        self._call("remember", effect)

    def count_run(self, run: SpotRun) -> None:
        """Count a run."""

        def effect() -> None:
            self._store.count_run(run)
            self._on_effect(CountRun, f"{run.run_id} {run.what}")

        self._call("count_run", effect)


@dataclass
class CalledJobs(CalledStore):
    """The jobs, found by eventually consistent indexes; `on_effect` is called when a slot's waiting jobs are loaded."""

    _indexes: Indexes
    _on_saved: OnSaved
    _on_effect: OnEffect

    def create_job(self, job: Job, timeline: Sequence[TimelineEntry]) -> bool:
        """Create a job, once per call."""

        def effect() -> bool:
            is_new: bool = self._store.create_job(job, timeline)
            if is_new:
                self._note(job.job_id, timeline, is_new=True)
            return is_new

        return bool(self._call("create_job", _once(effect)))

    def save_job(self, decision: Decision) -> Job:
        """Save a job, once per call."""

        def effect() -> Job:
            saved: Job = self._store.save_job(decision)
            self._note(saved.job_id, decision.timeline, is_new=False)
            return saved

        saved: Job = self._call("save_job", _once(effect))
        return saved

    def load_due(self, now: datetime, limit: int) -> list[str]:
        """Query the index `due`."""

        def effect() -> list[str]:
            due = [(at, job.job_id) for job in self._indexes.jobs() if (at := due_at(job)) is not None and at <= now]
            return [job_id for _, job_id in sorted(due)][:limit]

        found: list[str] = self._call("load_due", effect)
        return found

    def load_open(self, limit: int) -> list[str]:
        """Query the index `due`, at once and without a fault.

        No company comes near the limits of waiting jobs, and a call of each submission would change every draw.
        """
        found: list[str] = self._store.load_open(limit)
        return found

    def load_warning(self, instance_id: str) -> datetime | None:
        """Look for a warning."""

        def effect() -> datetime | None:
            at: datetime | None = self._store.load_warning(instance_id)
            self._on_effect(LookForWarning, instance_id)
            return at

        found: datetime | None = self._call("load_warning", effect)
        return found

    def load_waiting(self, slot: str, limit: int) -> list[str]:
        """Query the index `waiting`."""

        def effect() -> list[str]:
            self._on_effect(AdmitWaiting, slot)
            waiting = sorted(self._indexes.waiting(slot), key=lambda job: job.accepted_at)
            return [job.job_id for job in waiting][:limit]

        found: list[str] = self._call("load_waiting", effect)
        return found

    def _note(self, job_id: str, timeline: Sequence[TimelineEntry], *, is_new: bool) -> None:
        job = self._store.load_job(job_id)
        self._indexes.note(job)
        self._on_saved(job, timeline, is_new)


def _once(effect: Callable[[], Any]) -> Callable[[], Any]:
    """Return a function that takes effect once: the adapter recognizes its own write when the SDK repeats it."""
    answers: list[Any] = []

    def once() -> Any:
        if not answers:
            answers.append(effect())
        return answers[0]

    return once
