"""The jobs table: what is kept of jobs, definitions, events, capacity and maintenance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from relaunch.core.definitions.definition import JobDefinition, TriggerSource
from relaunch.core.jobs.job import Attempt, Job, JobSummary, TimelineEntry
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.offerings.offering import CapacityFailure, CapacityMemory
from relaunch.core.offerings.snapshot import OfferingsSnapshot


@dataclass(frozen=True, slots=True)
class StoredSelection:
    """The selection table of one placement try as it was stored: `rows` are JSON-ready mappings."""

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
    """What became of one delivered event: the jobs it started, or in `outcome` the words why it started none.

    `source` says where it came from (`github push`, `s3`…), `at` when it was handled. One event delivered twice leaves
    two records.
    """

    identity: str
    source: str
    outcome: str
    job_ids: tuple[str, ...]
    at: datetime


class JobStore(Protocol):
    """The jobs table. All reads are strongly consistent but those of indexes.

    Indexes answer load_due, load_waiting, load_slot_holders and list_jobs.
    An open job must have a `wake_at`; a job that is over is due as long as effects are pending.
    """

    def create_job(self, job: Job, timeline: Sequence[TimelineEntry]) -> bool:
        """Create the job (stored with version 1); return False when its id is taken: the event came twice."""
        ...

    def load_job(self, job_id: str) -> Job | None:
        """Load a job with its current attempt in one read."""
        ...

    def save_job(self, decision: Decision) -> Job:
        """Save a decision if the stored version is still `decision.job.version`; return the job with its new version.

        Raises:
            StaleWriteError: somebody else saved the job since it was loaded.
            SlotsFullError: a slot was asked for and there is none; nothing was written.
        """
        ...

    def load_history(self, job_id: str) -> JobHistory | None:
        """Load everything about a job."""
        ...

    def load_due(self, now: datetime, limit: int) -> list[str]:
        """Return ids of open jobs whose `wake_at` is not after `now`, most overdue first."""
        ...

    def load_waiting(self, slot: str, limit: int) -> list[str]:
        """Return ids of jobs that wait for this slot (`Waiting.slot`: a definition's, or `*`), oldest first."""
        ...

    def load_waiting_for_image(self, repository: str, tag: str) -> list[str]:
        """Return ids of jobs that wait (or waited) for this image."""
        ...

    def load_slot_holders(self, limit: int) -> list[str]:
        """Return ids of the jobs that count against the stack's cap, oldest first: all that may have a machine."""
        ...

    def load_on_instance(self, instance_id: str) -> list[str]:
        """Return ids of jobs whose attempt was linked to this EC2 instance."""
        ...

    def list_jobs(self, limit: int, cursor: str | None = None) -> tuple[list[JobSummary], str | None]:
        """Return jobs, newest first, and the cursor of the next page.

        Raises:
            PermanentError: the cursor is none of ours.
        """
        ...


class EventStore(Protocol):
    """What became of events."""

    def record_event(self, identity: str, source: str, outcome: str, job_ids: Sequence[str], at: datetime) -> None:
        """Keep for eight days what became of an event, so that people can find out why it started nothing."""
        ...

    def list_events(self, now: datetime, limit: int) -> list[EventRecord]:
        """Return what became of the events of the last eight days, newest first."""
        ...


class DefinitionStore(Protocol):
    """Registered job definitions."""

    def save_definition(self, definition: JobDefinition) -> None:
        """Register or replace a definition with its trigger entries, atomically."""
        ...

    def load_definition(self, name: str) -> JobDefinition | None:
        """Load a definition by name."""
        ...

    def list_definitions(self) -> list[JobDefinition]:
        """Return all definitions by name."""
        ...

    def delete_definition(self, name: str) -> bool:
        """Remove a definition and its trigger entries; False when there is none."""
        ...

    def find_definitions(self, source: TriggerSource, name: str) -> list[JobDefinition]:
        """Return the definitions with a trigger on this origin, with one query."""
        ...


class CapacityStore(Protocol):
    """The capacity memory, shared by all jobs."""

    def load_capacity_memory(self, now: datetime) -> CapacityMemory:
        """Return what failed lately and has not expired, with one read."""
        ...

    def remember(self, failure: CapacityFailure) -> None:
        """Remember a failure on top of what is remembered of its offering (core.offerings.capacity_memory)."""
        ...


@dataclass(frozen=True, slots=True)
class RevisionMaintenance:
    """What is remembered between two looks at the derived revisions.

    `unused_since` maps families to when no open job was first seen to use them; `version` is the item's own.
    """

    next_at: datetime
    unused_since: Mapping[str, datetime] = field(default_factory=dict)
    version: int = 0


class MaintenanceStore(Protocol):
    """What must outlive a function and belongs to no job."""

    def take_turn(self, name: str) -> int:
        """Return the next number of a count that begins with 0: nobody gets the same one twice.

        A call whose answer was lost may skip a number.
        """
        ...

    def load_maintenance(self) -> RevisionMaintenance | None:
        """Load what the last look at the derived revisions left."""
        ...

    def save_maintenance(self, maintenance: RevisionMaintenance) -> bool:
        """Save it if the stored version is still `maintenance.version`; return whether it was saved."""
        ...


class SnapshotStore(Protocol):
    """Where the refreshed offerings of the stack's region are kept."""

    def load_snapshot(self) -> OfferingsSnapshot | None:
        """Load the last one; None before the first refresh.

        Raises:
            PermanentError: it cannot be read.
            TransientError: throttled or unreachable.
        """
        ...

    def save_snapshot(self, snapshot: OfferingsSnapshot) -> None:
        """Keep it in place of the last one.

        Raises:
            TransientError: throttled or unreachable.
        """
        ...
