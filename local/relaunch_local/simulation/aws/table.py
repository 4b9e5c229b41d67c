"""The jobs table: every call may fail, and the indexes are eventually consistent."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from relaunch.adapters.aws.client_config import TABLE_CONFIG
from relaunch.adapters.aws.errors import aws_errors
from relaunch.core.jobs.effects import AdmitWaiting, CountRun, Effect, LookForWarning, RememberCapacity
from relaunch.core.jobs.groups import GroupStanding
from relaunch.core.jobs.job import Job, TimelineEntry, due_at, waited_slot
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.machines.machine import Machine
from relaunch.core.offerings.offering import CapacityFailure
from relaunch.core.offerings.spot_runs import SpotRun
from relaunch.core.selection.selection import Selection
from relaunch_local.simulation.aws.calls import CallErrors, Calls
from relaunch_local.simulation.aws.clients import disconnected, timed_out
from relaunch_local.simulation.aws.lagging_index import LaggingIndex


def _client_error(code: str, status: int) -> Callable[[str], Exception]:
    answer: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return lambda name: ClientError(copy.deepcopy(answer), name)


DYNAMODB_ERRORS = CallErrors(
    refused=_client_error("InternalServerError", 500),
    throttled=_client_error("ThrottlingException", 400),
    unanswered=timed_out,
    disconnected=disconnected,
    denied=_client_error("AccessDeniedException", 400),
)

OnSaved = Callable[[Job, Sequence[TimelineEntry]], None]
"""Called with a job as it was saved, and its new timeline entries."""
OnEffect = Callable[[type[Effect], str], None]
"""Called with the type of an effect that was done, and its object."""


@dataclass
class Indexes(LaggingIndex[Job]):
    """The table's indexes as far as they have jobs."""

    def note(self, job: Job) -> None:
        """Propagate a write to the indexes, with a delay."""
        self.note_written(job.job_id, job)

    def jobs(self) -> list[Job]:
        """Return the jobs as the indexes show them."""
        return self.all_shown()

    def waiting(self, slot: str) -> list[Job]:
        """Return the jobs that the index `waiting` has under a slot, unordered."""
        return [job for job in self.jobs() if waited_slot(job) == slot]

    def next_due_at(self) -> datetime | None:
        """Return when the next job is due, by the table or any index."""
        moments = (due_at(job) for entries in self._entries.values() for _, job in entries)
        return min((moment for moment in moments if moment is not None), default=None)


# Of reads of the open jobs, a few dozen in 2,000 seeds.
_OPEN_REFUSED_SHARE = 0.001
_RATES_REFUSED_SHARE = 0.02
# Of these too the adapter recognizes its own write when the SDK repeats it.
_PUT_ON_A_CONDITION = frozenset(
    {
        "begin_last_try",
        "save_budget",
        "save_dispatch_starts",
        "save_maintenance",
        "save_pause",
        "save_pool",
        "save_record",
        "save_shown",
    }
)


@dataclass
class CalledStore:
    """Makes every method of a store a DynamoDB call that may fail."""

    _store: Any
    _calls: Calls

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Wrap every method that is not overridden."""
        method = getattr(self._store, name)

        def call(*arguments: Any, **named: Any) -> Any:
            def effect() -> Any:
                return method(*arguments, **named)

            return self._call(name, once(effect) if name in _PUT_ON_A_CONDITION else effect)

        return call

    def _call(self, name: str, effect: Callable[[], Any]) -> Any:
        with aws_errors(f"dynamodb:{name}"):
            return self._calls.perform("dynamodb", name, effect, DYNAMODB_ERRORS, TABLE_CONFIG)


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
class CalledRates(CalledStore):
    """What jobs have shown of their speed, and their budgets: calls that take no time.

    So seeds keep what they draw for others.
    """

    def _call(self, name: str, effect: Callable[[], Any]) -> Any:
        with aws_errors(f"dynamodb:{name}"):
            self._calls.fail_by_chance("dynamodb", name, _RATES_REFUSED_SHARE, DYNAMODB_ERRORS)
            answer = effect()
            # It took effect, and no answer came.
            if name in {"save_rate", "save_report"}:
                self._calls.fail_by_chance("dynamodb", name, _RATES_REFUSED_SHARE, DYNAMODB_ERRORS)
        return answer


@dataclass
class CalledJobs(CalledStore):
    """The jobs, found by eventually consistent indexes.

    `on_effect` is called when a slot's waiting jobs are loaded, `on_machine` with each machine saved with a job,
    `on_selection` with each selection.
    Unless `events_may_fail`, a save that only says which changes were sent takes no time and cannot fail, so that seeds
    keep what they draw for other calls.
    """

    _indexes: Indexes
    _on_saved: OnSaved
    _on_effect: OnEffect
    _on_machine: Callable[[Machine], None]
    _events_may_fail: bool
    _on_selection: Callable[[Job, Selection], None]

    def create_job(self, job: Job, timeline: Sequence[TimelineEntry], standing: GroupStanding | None = None) -> bool:
        """Create a job, once per call."""

        def effect() -> bool:
            is_new: bool = self._store.create_job(job, timeline, standing)
            if is_new:
                self._note(job.job_id, timeline)
            return is_new

        return bool(self._call("create_job", once(effect)))

    def save_job(self, decision: Decision) -> Job:
        """Save a job, once per call."""

        def effect() -> Job:
            saved: Job = self._store.save_job(decision)
            self._note(saved.job_id, decision.timeline)
            if decision.selection is not None:
                self._on_selection(saved, decision.selection)
            for each in decision.machines:
                self._on_machine(self._store.machines.machine(each.machine.machine_id))
            return saved

        if not self._events_may_fail and self._says_what_was_sent(decision):
            return effect()
        saved: Job = self._call("save_job", once(effect))
        return saved

    def _says_what_was_sent(self, decision: Decision) -> bool:
        job = decision.job
        if decision.timeline or decision.machines or job.outbox.unsent:
            return False
        stored: Job | None = self._store.load_job(job.job_id)
        return stored is not None and replace(job, outbox=stored.outbox) == stored

    def load_due(self, now: datetime, limit: int) -> list[str]:
        """Query the index `due`."""

        def effect() -> list[str]:
            due = [(at, job.job_id) for job in self._indexes.jobs() if (at := due_at(job)) is not None and at <= now]
            return [job_id for _, job_id in sorted(due)][:limit]

        found: list[str] = self._call("load_due", effect)
        return found

    def load_open(self, limit: int) -> list[str]:
        """Query the index `due` at once; few such calls fail.

        No company comes near the limits of waiting jobs, and a call of each submission would change every draw.
        """
        with aws_errors("dynamodb:load_open"):
            self._calls.fail_by_chance("dynamodb", "load_open", _OPEN_REFUSED_SHARE, DYNAMODB_ERRORS)
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

    def _note(self, job_id: str, timeline: Sequence[TimelineEntry]) -> None:
        job = self._store.load_job(job_id)
        self._indexes.note(job)
        self._on_saved(job, timeline)


def once(effect: Callable[[], Any]) -> Callable[[], Any]:
    """Return a function that takes effect once: the adapter recognizes its own write when the SDK repeats it."""
    answers: list[Any] = []

    def once() -> Any:
        if not answers:
            answers.append(effect())
        return answers[0]

    return once
