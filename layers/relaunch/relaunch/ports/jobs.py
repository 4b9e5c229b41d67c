"""What is kept of jobs, their definitions and the events that start them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from relaunch.core.definitions.definition import JobDefinition, TriggerSource
from relaunch.core.jobs.job import Attempt, Job, JobSummary, TimelineEntry
from relaunch.core.selection.selection import Selection


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
class JobWrite:
    """One atomic write of a job: the job with its current attempt, new timeline entries, and what goes with them.

    `take_slot_limits` (definition's cap, stack's cap): take a slot in both or raise SlotsFullError; for a job that has
    none. `release_slot`: give both back; for a job that has them. `link_instance`: remember that the current attempt
    runs on `attempt.instance_id`.
    """

    job: Job
    timeline: tuple[TimelineEntry, ...] = ()
    selection: Selection | None = None
    selected_at: datetime | None = None
    take_slot_limits: tuple[int, int] | None = None
    release_slot: bool = False
    link_instance: bool = False


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

    def save_job(self, write: JobWrite) -> Job:
        """Save on the condition that the stored version is `write.job.version`; return the job with its new version.

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
