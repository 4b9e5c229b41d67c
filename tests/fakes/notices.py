"""Events of a job in their order, and receivers that take notices, or do not."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from fakes.builders import NOW
from relaunch.core.jobs.changes import ChangedPart
from relaunch.core.jobs.state import CostBasis, JobState, WaitReason
from relaunch.core.lifecycle.change_events import EventCost, EventMachine, EventTrigger, JobStateChange
from relaunch.core.notices.notice import Notice, Subscription
from relaunch.ports.notices import Delivered, NoticeReceiver, Outcome

JOB_ID = "resnet-1f2e3d4c"


def make_event(sequence: int = 1, **members: Any) -> JobStateChange:
    """Build an event: the job's creation, unless it is of another state."""
    state = members.setdefault("state", JobState.WAITING)
    job_id = members.setdefault("job_id", JOB_ID)
    defaults: dict[str, Any] = {
        "id": f"{job_id}:{sequence}",
        "sequence": sequence,
        "definition": "resnet",
        "target": "ecs",
        "trigger": EventTrigger(source="github", identity="g", summary="push"),
        "changed": (ChangedPart.STATE,),
        "waiting_for": WaitReason.LAUNCH if state is JobState.WAITING else None,
        "reason": f"reason {sequence}",
        "cost": EventCost(usd=0.25, basis=CostBasis.PRICE),
        "time": NOW + timedelta(minutes=sequence),
    }
    return JobStateChange(**{**defaults, **members})


def make_life(job_id: str, interruptions: int, end: JobState, start: datetime = NOW) -> list[JobStateChange]:
    """Build the events of a job that is interrupted so often, an hour after each start, and then ends."""
    states = [JobState.WAITING, JobState.LAUNCHING, JobState.RUNNING]
    for _ in range(interruptions):
        states += [JobState.STOPPING, JobState.WAITING, JobState.LAUNCHING, JobState.RUNNING]
    states.append(end)
    events: list[JobStateChange] = []
    at = start
    attempt = 0
    before: JobState | None = None
    for sequence, state in enumerate(states, 1):
        attempt += state is JobState.LAUNCHING
        members = {"state": state, "state_before": before, "attempt": attempt or None, "time": at, "job_id": job_id}
        events.append(make_event(sequence, **members))
        before = state
        at += timedelta(hours=1) if state is JobState.RUNNING else timedelta(minutes=1)
    return events


def make_machine(**members: Any) -> EventMachine:
    """Build the machine of an event."""
    return EventMachine(**{"instance_type": "g5.xlarge", "purchase": "spot", "zone": "us-east-1a", **members})


@dataclass
class FakeReceiver:
    """Implements NoticeReceiver: `answer` says what becomes of a notice; `delivered` are those that were taken."""

    subscription: Subscription
    answer: Callable[[Notice], Outcome] = lambda _notice: Delivered("thread")
    delivered: list[Notice] = field(default_factory=list)
    threads: list[str] = field(default_factory=list)
    tries: int = 0

    def deliver(self, notice: Notice, thread: str) -> Outcome:
        """Take the notice, if that is the answer."""
        self.tries += 1
        outcome = self.answer(notice)
        if isinstance(outcome, Delivered):
            self.delivered.append(notice)
            self.threads.append(thread)
        return outcome

    def about(self, job_id: str) -> list[Notice]:
        """Return what it was sent about a job."""
        return [each for each in self.delivered if each.event.job_id == job_id]


@dataclass
class FakeReceivers:
    """Implements ReceiverSource."""

    receivers: Sequence[NoticeReceiver]

    def receivers_for(self, event: JobStateChange) -> Sequence[NoticeReceiver]:
        """Return all of them, whatever the event is."""
        del event
        return self.receivers
