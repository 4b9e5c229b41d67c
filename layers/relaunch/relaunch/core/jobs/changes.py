"""The changes of a job that everybody may see: numbered, and kept with the job until EventBridge has them.

They are a field of their own beside the pending effects: those hold up what is decided next, and a release that does
not know one of them cannot read the job.
"""

from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum

from relaunch.core.jobs.state import CostBasis, JobState, NotedProgress, WaitReason
from relaunch.core.records import dataclass

MAX_UNSENT = 100
"""How many changes of a job are kept for EventBridge at most; the oldest are given up."""
MAX_UNSENT_CHARACTERS = 30_000
"""How long their reasons are at most in all: a character may be six bytes in the item of the job, which has 400 KB."""
KEPT_UNSENT = timedelta(hours=24)
"""For how long a change is kept for EventBridge, which tries no longer itself to deliver an event to a target."""
FIRST_RESEND = timedelta(minutes=1)
LONGEST_RESEND = timedelta(hours=1)
MAX_REASON = 1_000
"""The most characters of a reason that are kept; the job itself has the whole one."""


class ChangedPart(StrEnum):
    """What is not as it was in the change before; the values are names of fields of the event."""

    STATE = "state"
    WAITING_FOR = "waiting_for"
    ATTEMPT = "attempt"
    WARNING = "warning"
    PROGRESS = "progress"


@dataclass(frozen=True, slots=True)
class ChangeMachine:
    """The machine of an attempt, as far as it is known."""

    instance_type: str = ""
    purchase: str = ""
    zone: str = ""
    instance_id: str = ""
    node: str = ""
    """The name of the node in the target."""
    capacity_provider: str = ""
    machine_id: str = ""
    """That of the machine of our own."""


@dataclass(frozen=True, slots=True)
class JobChange:
    """One change of a job: what it was then, so that it is the same whenever it is sent."""

    sequence: int
    """1, 2, 3 … for each job, without gaps."""
    at: datetime
    state: JobState
    state_before: JobState | None
    """None of a job that was created."""
    changed: tuple[ChangedPart, ...]
    reason: str
    waiting_for: WaitReason | None = None
    attempt: int | None = None
    machine: ChangeMachine | None = None
    step: int | None = None
    """The step of the checkpoint from which the attempt resumed."""
    cost_usd: float = 0.0
    cost_basis: CostBasis = CostBasis.PRICE
    instance_usd_per_hour: float | None = None
    """Its part of the machines of our own that it had then; None without one, and of an earlier release."""
    beside_usd_per_hour: float | None = None
    """The same of their volumes and addresses."""
    noted: NotedProgress | None = None
    """How far the training was at the last look."""
    at_risk_seconds: float | None = None
    """How long the task has run since its newest checkpoint at the last look; None if none ran."""


@dataclass(frozen=True, slots=True)
class Outbox:
    """The number of the latest change of a job, and the changes that EventBridge does not have yet, oldest first."""

    sequence: int = 0
    """0 of a job that has not changed since a release that sent none."""
    unsent: tuple[JobChange, ...] = ()
    resend_at: datetime | None = None
    """When they are to be sent again if nobody does before; None if there are none."""

    def with_change(self, change: JobChange) -> "Outbox":
        """Return the outbox with the next change; of too many the oldest ones are given up."""
        unsent = (*self.unsent, change)[-MAX_UNSENT:]
        while sum(len(each.reason) for each in unsent) > MAX_UNSENT_CHARACTERS:
            unsent = unsent[1:]
        return Outbox(change.sequence, unsent, self.resend_at or change.at + FIRST_RESEND)

    def without(self, sequences: frozenset[int]) -> "Outbox":
        """Return the outbox without the changes that were sent, or never can be."""
        unsent = tuple(each for each in self.unsent if each.sequence not in sequences)
        return Outbox(self.sequence, unsent, self.resend_at if unsent else None)

    def postponed(self, now: datetime) -> "Outbox":
        """Return the outbox after a try that failed; each waits as long again as the oldest change has waited."""
        if not self.unsent or (self.resend_at is not None and self.resend_at > now):
            return self
        waited = now - self.unsent[0].at
        return replace(self, resend_at=now + min(max(waited, FIRST_RESEND), LONGEST_RESEND))

    def too_old(self, now: datetime) -> frozenset[int]:
        """Return the changes that have waited for too long."""
        return frozenset(each.sequence for each in self.unsent if now - each.at > KEPT_UNSENT)


def cut(text: str, limit: int) -> str:
    """Return a text, cut to so many characters."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
