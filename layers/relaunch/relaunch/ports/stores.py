"""Stores of the jobs table: jobs, definitions, events, capacity, maintenance and offerings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from relaunch.core.records import dataclass

if TYPE_CHECKING:
    from datetime import date

    from relaunch.core.definitions.definition import JobDefinition, TriggerSource
    from relaunch.core.definitions.ownership import Owner, RegisteredDefinition
    from relaunch.core.jobs.attempt import Attempt
    from relaunch.core.jobs.budgets import Budget, BudgetReport
    from relaunch.core.jobs.cost import CostEntry
    from relaunch.core.jobs.groups import GroupStanding
    from relaunch.core.jobs.job import Job, TimelineEntry
    from relaunch.core.jobs.runs import JobRuns
    from relaunch.core.jobs.state import JobSummary
    from relaunch.core.lifecycle.decision import Decision
    from relaunch.core.offerings.offering import CapacityFailure, CapacityMemory, OfferingKey
    from relaunch.core.offerings.snapshot import OfferingsSnapshot
    from relaunch.core.offerings.spot_runs import SpotPool, SpotRun, SpotRuns
    from relaunch.core.selection.rates import RateRecord
    from relaunch.core.triggers.dispatch_rate import DispatchStarts


@dataclass(frozen=True, slots=True)
class StoredSelection:
    """The stored selection of a placement; `rows` are JSON-serializable."""

    attempt_number: int
    placement_number: int
    selected_at: datetime
    rows: tuple[Mapping[str, object], ...]
    filter_counts: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class JobHistory:
    """Everything stored about one job, oldest first."""

    job: Job
    attempts: tuple[Attempt, ...]
    timeline: tuple[TimelineEntry, ...]
    selections: tuple[StoredSelection, ...]


@dataclass(frozen=True, slots=True)
class EventRecord:
    """The outcome of one delivered event: the jobs that it started, or why it started none.

    `source` is its origin (`github push`, `s3`…), `at` when it was handled. Each delivery has its own record.
    """

    identity: str
    source: str
    outcome: str
    job_ids: tuple[str, ...]
    at: datetime


class JobListing(Protocol):
    """Lists of jobs, read from indexes, and the tasks of a job: for those who read no more of it."""

    def load_open(self, limit: int) -> list[str]:
        """Return ids of open jobs, and of finished ones while effects are pending."""
        ...

    def list_jobs(self, limit: int, cursor: str | None = None) -> tuple[list[JobSummary], str | None]:
        """Return jobs, newest first, and the cursor of the next page.

        Raises:
            PermanentError: the cursor is invalid.
        """

    def load_costs(self, first: date, last: date) -> list[CostEntry]:
        """Return what was paid from one day (UTC) to another, in one entry per key and month; without what still runs.

        It is kept for two years, and takes as many reads however many jobs there were.
        """
        ...

    def load_runs(self, job_id: str) -> JobRuns | None:
        """Load the tasks of a job, strongly consistent; None if there is no job."""


class JobStore(JobListing, Protocol):
    """The jobs table. Reads are strongly consistent, except those of indexes.

    load_due, load_open, load_waiting, load_slot_holders and list_jobs read indexes. An open job must have a `wake_at`;
    a finished job is due while effects are pending, or changes are to be sent: after all that are open.
    """

    def create_job(self, job: Job, timeline: Sequence[TimelineEntry], standing: GroupStanding | None = None) -> bool:
        """Create the job with version 1; return False if its id exists already.

        With a `standing` the job becomes the newest one of its concurrency group after `job.group.after`.

        Raises:
            StaleWriteError: the newest one of the group is another job by now; nothing was written.
        """
        ...

    def load_group(self, slot: str) -> GroupStanding:
        """Load what is stored of a concurrency group (core.lifecycle.groups.slot_of)."""
        ...

    def release_group(self, slot: str, job_id: str) -> None:
        """Let nobody hold a group that this job holds, which is over; nothing if it does not hold it."""

    def load_job(self, job_id: str) -> Job | None:
        """Load a job with its current attempt in one read."""

    def save_job(self, decision: Decision) -> Job:
        """Save a decision if the stored version is `decision.job.version`; return the job with its new version.

        The decisions about machines are saved with it, on the condition of their versions and limits. If several
        conditions fail, the error is the first of these; nothing was written.

        Raises:
            StaleWriteError: the job was changed since it was loaded.
            BudgetExceededError: a budget has no room for what the job reserves.
            SlotsFullError: the decision takes a slot and none is free, or a group that another job holds or in which
                another one is newer.
            MachineTakenError: a machine was changed since it was loaded, or exists already.
            MachineLimitError: a limit on machines would be exceeded.
            StartsChangedError: others requested a machine for the same cause, or it has shown what it is worth.
            ValueError: there are two decisions about one machine, or one whose machine would never be due again.
        """

    def load_history(self, job_id: str) -> JobHistory | None:
        """Load everything stored about a job."""

    def load_due(self, now: datetime, limit: int) -> list[str]:
        """Return ids of open jobs whose `wake_at` is not after `now`, most overdue first."""

    def load_waiting(self, slot: str, limit: int) -> list[str]:
        """Return ids of jobs that wait for this slot (core.jobs.job.waited_slot), oldest first.

        A job that waits for capacity is found whether or not it kept the slot of an earlier placement.
        """
        ...

    def load_waiting_for_image(self, repository: str, tag: str) -> list[str]:
        """Return ids of jobs that wait or waited for this image."""

    def load_slot_holders(self, limit: int) -> list[str]:
        """Return ids of jobs that have a slot and may use an instance (core.jobs.job), oldest first."""

    def load_on_instance(self, instance_id: str) -> list[str]:
        """Return ids of jobs that are linked to this EC2 instance and not unlinked."""

    def save_warning(self, instance_id: str, at: datetime) -> None:
        """Store the spot interruption warning of an EC2 instance for a day."""
        ...

    def load_warning(self, instance_id: str) -> datetime | None:
        """Return when the EC2 instance was warned, None if it was not."""
        ...


class EventStore(Protocol):
    """Outcomes of events, the dispatches that started jobs, and the messages that have no try left."""

    def record_event(self, identity: str, source: str, outcome: str, job_ids: Sequence[str], at: datetime) -> None:
        """Store the outcome of an event for eight days."""

    def list_events(self, now: datetime, limit: int) -> list[EventRecord]:
        """Return the outcomes of the events of the last eight days, newest first."""

    def load_dispatch_starts(self, body_sha256: str) -> DispatchStarts:
        """Return the dispatches with this body that were last saved; none, with version 0, if none were."""
        ...

    def save_dispatch_starts(self, starts: DispatchStarts) -> bool:
        """Save them until they do not count any more, if the stored version is `starts.version`; return whether."""
        ...

    def begin_last_try(self, message_id: str, at: datetime) -> bool:
        """Save that the last try of a message begins; return False if it began before."""
        ...


class DefinitionStore(Protocol):
    """Registered job definitions.

    With a `version` a definition is only written if that is the registered one, or if there is none for 0.
    """

    def save_definition(
        self, definition: JobDefinition, owner: Owner | None = None, *, version: int | None = None
    ) -> None:
        """Register or replace a definition with its owner and its trigger entries, atomically.

        Raises:
            StaleWriteError: another version is registered, or others replaced it several times in a row.
        """

    def load_definition(self, name: str) -> JobDefinition | None:
        """Load a definition by name."""

    def load_registered(self, name: str) -> RegisteredDefinition | None:
        """Load a definition by name, with its owner."""

    def list_definitions(self) -> list[JobDefinition]:
        """Return all definitions by name."""

    def list_registered(self) -> list[RegisteredDefinition]:
        """Return all definitions by name, with their owners."""

    def delete_definition(self, name: str, *, version: int | None = None) -> bool:
        """Remove a definition and its trigger entries; False when there is none, whatever the version.

        Raises:
            StaleWriteError: another version is registered, or others replaced it several times in a row.
        """

    def find_definitions(self, source: TriggerSource, name: str) -> list[JobDefinition]:
        """Return the definitions with a trigger on this origin."""


class CapacityStore(Protocol):
    """The capacity memory, the runs on spot and what is known of spot pools, shared by all jobs."""

    def load_capacity_memory(self, now: datetime) -> CapacityMemory:
        """Return the failures that have not expired."""

    def load_capacity(self, now: datetime) -> tuple[CapacityMemory, Sequence[SpotRuns], Sequence[SpotPool]]:
        """Return, in one read, the failures that have not expired, the runs on spot, and what is known of spot pools.

        The runs are by offering and day, those since core.offerings.spot_runs.first_day.
        """
        ...

    def remember(self, failure: CapacityFailure) -> None:
        """Add a failure to those remembered of its offering (core.offerings.capacity_memory)."""
        ...

    def reopen(self, failure: CapacityFailure, at: datetime) -> None:
        """End the avoidance of an offering at `at`, unless another failure was added since this one was loaded.

        Its failures still count (core.offerings.capacity_memory).
        """
        ...

    def forget_unready(self, offerings: Sequence[OfferingKey], at: datetime) -> None:
        """Forget the machines of these offerings and images that did not become ready: one did at `at`."""
        ...

    def count_run(self, run: SpotRun) -> None:
        """Add a run to those of its offering and day; repeated at once it has no further effect.

        If another run is counted in between, a repetition counts again: the rate is an estimate, and a repetition takes
        a function that ends between two calls.
        """
        ...

    def load_pool(self, offering: OfferingKey, nodes: int = 1) -> SpotPool:
        """Return what is known of one spot pool for so many machines at once; with version 0 if nothing is."""
        ...

    def save_pool(self, pool: SpotPool) -> bool:
        """Save it until it is forgotten, if the stored version is `pool.version`; return whether."""
        ...


class BudgetStore(Protocol):
    """Budgets (core.jobs.budgets); what jobs reserve of them is saved with the jobs (JobStore.save_job)."""

    def load_budgets(self) -> Sequence[Budget]:
        """Return all in one read, those included that have no limit any more: jobs go on counting in them."""
        ...

    def set_budget(
        self, before: Budget, monthly_usd: float | None, total_usd: float | None, spent: Mapping[str, float]
    ) -> bool:
        """Set the limits of a budget, None for no limit; return False if they are not those of `before` any more.

        A new one begins with what was `spent` by month. What was reported of a limit that is raised is forgotten. It is
        also False where a call of this write was repeated: whoever reads the budget sees that.
        """
        ...

    def save_report(self, report: BudgetReport) -> bool:
        """Save that so many percent were reported; return False if they were before, or the limit is another one."""
        ...


class RateStore(Protocol):
    """How many steps per second jobs of definitions have shown (core.selection.rates)."""

    def load_rates(self, definition: str) -> Sequence[RateRecord]:
        """Return, in one read, what the jobs of a definition have shown on each kind of accelerators."""
        ...

    def load_rate(self, definition: str, accelerators: str) -> RateRecord:
        """Return what they have shown on one kind; with version 0 if that is nothing."""
        ...

    def save_rate(self, record: RateRecord) -> bool:
        """Save what was observed until it is forgotten, if the stored version is `record.version`; return whether."""
        ...


@dataclass(frozen=True, slots=True)
class RevisionMaintenance:
    """The state of the cleaning of derived revisions.

    `unused_since` maps families to when they were first found unused; `version` is the version of the item.
    """

    next_at: datetime
    unused_since: Mapping[str, datetime] = field(default_factory=dict)
    version: int = 0


@dataclass(frozen=True, slots=True)
class FoundRevision:
    """The derived revision that was found or registered for a source and changes; an empty ARN: the source itself."""

    arn: str
    found_at: datetime


class MaintenanceStore(Protocol):
    """State of functions that belongs to no job."""

    def load_revision(self, derivation_id: str) -> FoundRevision | None:
        """Load the revision that was last saved for a derivation; None if there is none."""

    def save_revision(self, derivation_id: str, found: FoundRevision) -> None:
        """Save the revision of a derivation for the other containers; the last one wins."""

    def take_turn(self, name: str) -> int:
        """Return the next number of a counter, which starts at 0; every call gets another number.

        A retried call may skip numbers.
        """

    def load_maintenance(self) -> RevisionMaintenance | None:
        """Load the state of the cleaning of derived revisions; None before the first one."""

    def save_maintenance(self, maintenance: RevisionMaintenance) -> bool:
        """Save the state if the stored version is `maintenance.version`; return whether it was saved."""


class SnapshotSource(Protocol):
    """The snapshot of the offerings of the region, as the last refresh left it."""

    def load_snapshot(self) -> OfferingsSnapshot | None:
        """Load the last snapshot; None before the first refresh.

        Raises:
            PermanentError: it cannot be parsed.
        """


class SnapshotStore(SnapshotSource, Protocol):
    """The snapshot of the offerings of the region."""

    def save_snapshot(self, snapshot: OfferingsSnapshot) -> None:
        """Save a snapshot in place of the last one."""
