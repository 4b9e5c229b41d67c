"""A notice is said twice only for two events that read the same, or where its sender could not save the first."""

import json
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_job
from fakes.notices import JOB_ID, make_event
from relaunch.adapters.messages.job_change import write_detail
from relaunch.core.definitions.notice_routes import NoticeKind
from relaunch.core.jobs.state import JobState
from relaunch.core.notices.notice import Notice
from relaunch.core.notices.text import write_text
from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.runtime import Invocation
from relaunch_local.simulation.notice_plans import ReceiverPlan, Service
from relaunch_local.simulation.notices.checks import NoticeChecks
from relaunch_local.simulation.notices.receipts import read_text

PLAN = ReceiverPlan(name="team", service=Service.SLACK, kinds=(NoticeKind.STARTED, NoticeKind.INTERRUPTED))
STARTED = NoticeKind.STARTED, JobState.RUNNING, JobState.LAUNCHING
INTERRUPTED = NoticeKind.INTERRUPTED, JobState.WAITING, JobState.STOPPING


@pytest.mark.parametrize(
    ("how", "attempts", "sent", "is_wrong"),
    [
        # A program that fails at once starts twice in a minute.
        (STARTED, (1, 2), (0, 1), False),
        (STARTED, (1, 2), (0, 0), True),
        (STARTED, (1, 2), (0, 1, 1), True),
        # Two tries of an attempt stop before they start.
        (INTERRUPTED, (1, 1), (0, 1), False),
        (INTERRUPTED, (1, 1), (0, 1, 1), True),
    ],
)
def test_a_notice_comes_once_for_each_event_of_its_minute(
    how: tuple[NoticeKind, JobState, JobState], attempts: tuple[int, ...], sent: tuple[int, ...], *, is_wrong: bool
) -> None:
    kind, state, before = how
    events = [
        make_event(number, state=state, state_before=before, attempt=attempt, time=NOW)
        for number, attempt in enumerate(attempts, start=1)
    ]
    job = make_job(JOB_ID)
    definitions = {job.definition.name: job.definition}
    broken: list[str] = []
    clock = Clock()
    checks = NoticeChecks(
        clock,
        lambda name, is_good, _: None if is_good else broken.append(name),
        {JOB_ID: job},
        definitions,
        {},
        lambda _since, _until: timedelta(0),
    )
    for event in events:
        checks.event_taken(json.loads(write_detail(event)))
    for count, number in enumerate(sent):
        clock.advance_to(clock.now() + timedelta(minutes=15))
        text = write_text(Notice(kind=kind, event=events[number], reason="why"))
        receipt = read_text(PLAN.name, clock.now(), text.title, text.plain)
        receipt.ts = "1.0"
        receipt.thread = "1.0" if count else ""
        receipt.is_answered = True
        receipt.invocation = Invocation(1, "send_notices")
        checks.received(PLAN, receipt)

    assert broken == (["a notice comes twice only where its sender could not save that"] if is_wrong else [])
