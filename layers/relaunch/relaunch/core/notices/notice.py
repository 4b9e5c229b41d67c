"""A notice of a job to a receiver, and what a receiver wants to be sent."""

from dataclasses import field
from datetime import datetime, timedelta

from relaunch.core.definitions.notice_routes import DEFAULT_KINDS, NoticeKind
from relaunch.core.lifecycle.change_events import JobStateChange
from relaunch.core.records import dataclass

LONGEST_WAIT = timedelta(hours=1)
"""For how long a job may not run before a receiver is sent `waits-too-long`, unless it says another time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """What a receiver wants.

    One with `wants_states` gets each change of a job instead of `kinds`, also what it waits for, the latest alone, and
    nothing is held back to be put together: a commit status is one.
    """

    name: str
    kinds: frozenset[NoticeKind] = frozenset(DEFAULT_KINDS)
    wants_states: bool = False
    is_for_all: bool = True
    """Whether it gets notices of every definition of the stack, not only of those that name it."""
    waits_after: timedelta = LONGEST_WAIT
    """For how long a job does not run until that is `waits-too-long`."""


@dataclass(frozen=True, slots=True)
class Interruption:
    """The change with which a job ceased to run."""

    sequence: int
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """What is said about a job, once to each receiver.

    `kind` is None of a new state for a receiver that wants states. `event` is the newest change that it says.
    """

    kind: NoticeKind | None
    event: JobStateChange
    interruptions: tuple[Interruption, ...] = field(default=())
    """Those that no notice to this receiver has said yet, this one included."""
    all_interruptions: int = 0
    """How many this receiver's notices know of the job."""
    reason: str = ""
    """Why, in words: that of the event, or of what a job waits for meanwhile."""
    first_at: datetime | None = None
    """When the job changed first, as far as this receiver's notices know."""
    page_url: str = ""
    """The job's page, empty if there is none."""
    is_test: bool = False
    """Whether a person sends it to try the receiver out."""

    @property
    def notice_id(self) -> str:
        """Return what identifies the notice: it is the same when it is sent again."""
        return f"{self.event.id}:{self.kind.value if self.kind else 'state'}"
