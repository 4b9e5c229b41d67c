"""Notices with which a person tries a receiver out."""

from datetime import timedelta

import pytest

from fakes.builders import NOW
from relaunch.core.definitions.notice_routes import NoticeKind
from relaunch.core.jobs.changes import ChangedPart
from relaunch.core.jobs.state import CostBasis, JobState
from relaunch.core.lifecycle.change_events import EventCost, EventMachine, EventProgress, EventTrigger, JobStateChange
from relaunch.core.notices.notice import Interruption, Notice
from relaunch.core.notices.samples import sample_notice
from relaunch.core.notices.text import write_text


@pytest.mark.parametrize("kind", NoticeKind)
def test_each_kind_has_one_that_says_it_is_a_test(kind: NoticeKind) -> None:
    notice = sample_notice(kind, 7, NOW)

    assert notice == Notice(
        kind=kind,
        event=JobStateChange(
            id=f"test-00000000:{int(NOW.timestamp())}-7",
            sequence=7,
            job_id="test-00000000",
            definition="test",
            target="ecs",
            trigger=EventTrigger(source="direct", identity="test", summary="relaunch notices test"),
            changed=(ChangedPart.STATE,),
            state=notice.event.state,
            reason=notice.event.reason,
            attempt=1,
            machine=EventMachine(instance_type="g5.xlarge", purchase="spot", zone="us-east-1a"),
            progress=EventProgress(step=1_200, total_steps=2_000),
            cost=EventCost(usd=0.65, basis=CostBasis.PRICE),
            time=NOW,
        ),
        interruptions=(Interruption(7, NOW),),
        all_interruptions=1,
        reason=notice.event.reason,
        first_at=NOW - timedelta(hours=2),
        is_test=True,
    )
    assert write_text(notice).title.startswith("Test: test-00000000 ")


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        (NoticeKind.STARTED, JobState.RUNNING),
        (NoticeKind.INTERRUPTED, JobState.WAITING),
        (NoticeKind.FINISHED, JobState.SUCCEEDED),
        (NoticeKind.FAILED, JobState.FAILED),
    ],
)
def test_its_job_is_in_the_state_that_such_a_notice_is_about(kind: NoticeKind, state: JobState) -> None:
    assert sample_notice(kind, 1, NOW).event.state is state
