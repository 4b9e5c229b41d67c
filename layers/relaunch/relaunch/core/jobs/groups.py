"""The concurrency group of a job: which jobs came before it there, and which one holds the group.

A group is one item of the table. It says which job is the newest one that was accepted, and which one holds the group,
from its first launch until its end, so that no two jobs of a group have tasks at the same time. A job becomes the
newest one in the transaction that creates it, and holds the group from the one that saves its first placement, which
only the newest job can. So whoever dies, and whatever comes late or twice: an older job that was not launched by then
never is.
"""

from datetime import datetime
from enum import StrEnum

from relaunch.core.records import dataclass


class GroupChange(StrEnum):
    """What a decision changes of the group of its job."""

    TAKE = "take"  # the job is launched for the first time
    RELEASE = "release"  # the job has ended


@dataclass(frozen=True, slots=True)
class GroupPlace:
    """The place of a job in its concurrency group."""

    name: str = ""
    """The name of the group, empty if the job is in none."""
    event_at: datetime | None = None
    """When what started it happened, to the second: by that the jobs of a group are ordered."""
    after: str = ""
    """The job that was the newest one before it, empty if it was the first."""
    is_holder: bool = False
    """The job was launched and has not ended."""


@dataclass(frozen=True, slots=True)
class GroupStanding:
    """What is stored of a group: its newest job, with what orders that, and the job that holds the group.

    `cancels`: the newest one has the one in progress cancelled. A group without jobs has nothing.
    """

    newest: str = ""
    event_at: datetime | None = None
    accepted_at: datetime | None = None
    cancels: bool = False
    holder: str = ""

    def is_newer_than(self, event_at: datetime, accepted_at: datetime, job_id: str) -> bool:
        """Return whether its newest job comes after a job of which these are the event's time and the acceptance.

        Events of the same second are ordered by when they were accepted, and then by the ids of their jobs.
        """
        if self.event_at is None or self.accepted_at is None:
            return False
        return (self.event_at, self.accepted_at, self.newest) > (event_at, accepted_at, job_id)
