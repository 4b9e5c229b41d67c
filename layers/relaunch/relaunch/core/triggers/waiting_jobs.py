"""How many jobs wait, and whether one more may: a flood of events must not become jobs that all run in the end."""

from collections.abc import Iterable
from dataclasses import dataclass

from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.triggers.matching import job_id_prefix


@dataclass(frozen=True, slots=True)
class WaitingJobs:
    """How many open jobs are on no instance, whatever they wait for: a slot, an image, capacity, their launch.

    `limit_of_definition` and `limit_of_stack` are the limits: max_waiting_jobs and MaxWaitingJobs.
    """

    definition: str
    of_definition: int
    limit_of_definition: int
    of_stack: int
    limit_of_stack: int

    def __str__(self) -> str:
        """Return the numbers with their limits."""
        return (
            f"{self.of_definition} of {self.definition} (max_waiting_jobs is {self.limit_of_definition}), "
            f"{self.of_stack} in the stack (MaxWaitingJobs is {self.limit_of_stack})"
        )

    @property
    def reached_limit(self) -> str:
        """Return why no further job of the definition may wait; empty if it may."""
        if self.of_definition < self.limit_of_definition and self.of_stack < self.limit_of_stack:
            return ""
        return f"too many jobs wait: {self}; no job was started: try again when fewer wait, or raise the limit"


def read_limit(limits: StackLimits) -> int:
    """Return how many open jobs to read at most: that many contain as many waiting ones as the stack may have."""
    return limits.max_waiting_jobs + limits.max_running_jobs


def count_waiting(
    definition: JobDefinition, open_jobs: Iterable[str], slot_holders: Iterable[str], limits: StackLimits
) -> WaitingJobs:
    """Count the waiting jobs among the ids of open jobs: those that have no slot for an instance."""
    waiting = set(open_jobs).difference(slot_holders)
    prefix = job_id_prefix(definition.name)
    return WaitingJobs(
        definition.name,
        sum(job_id.rpartition("-")[0] == prefix for job_id in waiting),
        definition.max_waiting_jobs,
        len(waiting),
        limits.max_waiting_jobs,
    )
