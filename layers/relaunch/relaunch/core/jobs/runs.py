"""The tasks of a job, as far as its logs are read by them; `relaunch logs` imports no more of a job than this.

The fields have the names that they have in a job and its history.
"""

from datetime import datetime
from typing import NamedTuple

from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.state import JobState


class RunDefinition(NamedTuple):
    """The target of a definition, the container that it names, and how many tasks a job runs at once."""

    target: Target
    container: str | None
    nodes: int = 1


class RunContainer(NamedTuple):
    """A container of a revision."""

    name: str


class RunRevision(NamedTuple):
    """A revision and its containers."""

    arn: str
    containers: tuple[RunContainer, ...]


class RunStop(NamedTuple):
    """When a task ended."""

    at: datetime


class Run(NamedTuple):
    """An attempt of a job."""

    number: int
    task_ids: tuple[str, ...]
    """In the order of the ranks; empty if it has no task yet."""
    stop: RunStop | None


class RunJob(NamedTuple):
    """A job, without what it decides by."""

    job_id: str
    state: JobState
    definition: RunDefinition
    revision: RunRevision
    ended_at: datetime | None


class JobRuns(NamedTuple):
    """A job and its attempts, oldest first."""

    job: RunJob
    attempts: tuple[Run, ...]
