"""Made-up notices, with which a person tries a receiver out."""

from datetime import datetime, timedelta

from relaunch.core.definitions.notice_routes import NoticeKind
from relaunch.core.jobs.changes import ChangedPart
from relaunch.core.jobs.state import CostBasis, JobState
from relaunch.core.lifecycle.change_events import EventCost, EventMachine, EventProgress, EventTrigger, JobStateChange
from relaunch.core.notices.notice import Interruption, Notice

JOB_ID = "test-00000000"
_STATES = {
    NoticeKind.INTERRUPTED: JobState.WAITING,
    NoticeKind.FINISHED: JobState.SUCCEEDED,
    NoticeKind.FAILED: JobState.FAILED,
    NoticeKind.WAITS_TOO_LONG: JobState.WAITING,
}
_REASONS = {
    NoticeKind.STARTED: "the task runs",
    NoticeKind.INTERRUPTED: "EC2 took the spot instance away",
    NoticeKind.FINISHED: "the program ended with exit code 0",
    NoticeKind.FAILED: "the program ended with exit code 1 <html> & *stars* @everyone",
    NoticeKind.WAITS_TOO_LONG: "every offering that satisfies it failed recently",
    NoticeKind.BUDGET: "it has cost 12.50 USD of 12.00",
    NoticeKind.STALE_CHECKPOINT: "the newest checkpoint is 3h old",
}


def sample_notice(kind: NoticeKind, sequence: int, now: datetime) -> Notice:
    """Return a notice of a kind about a job that there is not."""
    event = JobStateChange(
        # Another one each time: an endpoint leaves out what it has.
        id=f"{JOB_ID}:{int(now.timestamp())}-{sequence}",
        sequence=sequence,
        job_id=JOB_ID,
        definition="test",
        target="ecs",
        trigger=EventTrigger(source="direct", identity="test", summary="relaunch notices test"),
        changed=(ChangedPart.STATE,),
        state=_STATES.get(kind, JobState.RUNNING),
        reason=_REASONS[kind],
        attempt=1,
        machine=EventMachine(instance_type="g5.xlarge", purchase="spot", zone="us-east-1a"),
        progress=EventProgress(step=1_200, total_steps=2_000),
        cost=EventCost(usd=0.65, basis=CostBasis.PRICE),
        time=now,
    )
    return Notice(
        kind=kind,
        event=event,
        interruptions=(Interruption(sequence, now),),
        all_interruptions=1,
        reason=event.reason,
        first_at=now - timedelta(hours=2),
        is_test=True,
    )
