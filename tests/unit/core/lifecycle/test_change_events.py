from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_definition, make_job
from relaunch.adapters.messages.job_change import write_detail
from relaunch.core.definitions.notice_routes import NoticeKind, NoticeRoute
from relaunch.core.jobs.changes import MAX_REASON, ChangedPart, ChangeMachine, JobChange
from relaunch.core.jobs.state import CostBasis, JobState, NotedProgress, WaitReason
from relaunch.core.lifecycle.change_events import (
    EventCost,
    EventMachine,
    EventProgress,
    EventTrigger,
    JobStateChange,
    event_of,
)
from relaunch.core.lifecycle.job_changes import as_created

LATER = NOW + timedelta(hours=1)
STALLED = NOW + timedelta(hours=2)
FINISHES = NOW + timedelta(hours=3)


DEFINITION = make_definition(
    checkpoint_uri="s3://acme-checkpoints/resnet/",
    total_steps=900,
    notices=(NoticeRoute("team", (NoticeKind.FAILED,)), NoticeRoute("owner")),
)
JOB = make_job(definition=DEFINITION)
CHANGE = JobChange(
    7,
    LATER,
    JobState.RUNNING,
    JobState.LAUNCHING,
    (ChangedPart.STATE, ChangedPart.ATTEMPT),
    "the task runs",
    WaitReason.CAPACITY,
    attempt=2,
    machine=ChangeMachine("g5.xlarge", "spot", "us-east-1a", "i-0a1b", "node-1", "g5-spot", "m-1"),
    step=300,
    cost_usd=0.65,
    cost_basis=CostBasis.LIMIT,
    noted=NotedProgress(400, NOW, 2, 1_000, 0.25, FINISHES, stalled_since=STALLED, steps_per_second=0.5),
    at_risk_seconds=90.0,
)


def test_an_event_says_all_of_a_change_and_where_its_results_are() -> None:
    assert event_of(JOB, CHANGE) == JobStateChange(
        id=f"{JOB.job_id}:7",
        sequence=7,
        job_id=JOB.job_id,
        definition="resnet",
        target="ecs",
        trigger=EventTrigger(
            source=JOB.trigger.source,
            identity=JOB.trigger.identity,
            summary=JOB.trigger.summary,
            variables=dict(JOB.trigger.environment),
        ),
        changed=(ChangedPart.STATE, ChangedPart.ATTEMPT),
        state=JobState.RUNNING,
        state_before=JobState.LAUNCHING,
        waiting_for=WaitReason.CAPACITY,
        reason="the task runs",
        attempt=2,
        machine=EventMachine(
            instance_type="g5.xlarge",
            purchase="spot",
            zone="us-east-1a",
            instance_id="i-0a1b",
            node="node-1",
            capacity_provider="g5-spot",
            machine_id="m-1",
        ),
        progress=EventProgress(
            step=300,
            total_steps=1_000,
            saved_step=400,
            saved_at=NOW,
            loss=0.25,
            steps_per_second=0.5,
            finishes_at=FINISHES,
            stalled_since=STALLED,
        ),
        work_at_risk_seconds=90.0,
        cost=EventCost(usd=0.65, basis=CostBasis.LIMIT),
        notices={"team": (NoticeKind.FAILED,), "owner": ()},
        checkpoints=f"s3://acme-checkpoints/resnet/{JOB.job_id}/",
        time=LATER,
    )


def test_what_is_not_known_is_absent() -> None:
    job = make_job(definition=make_definition(checkpoint_uri=None))
    change = replace(CHANGE, state=JobState.WAITING, machine=ChangeMachine(), step=None, noted=None)

    event = event_of(job, change)

    assert (event.machine, event.progress, event.checkpoints, event.notices) == (EventMachine(), None, None, None)
    assert event_of(job, replace(change, machine=None)).machine is None
    assert event_of(JOB, replace(change, step=300)).progress == EventProgress(step=300, total_steps=900)


@pytest.mark.parametrize(
    ("environment", "left_out"),
    [
        ({"RELAUNCH_OBJECT_URI": "u" * 9_000, "RELAUNCH_GIT_SHA": "5e07"}, {"RELAUNCH_OBJECT_URI"}),
        ({"B": "b" * 3_998, "A": "a" * 4_000}, set()),
        ({"B": "b" * 3_999, "A": "a" * 4_000}, {"A"}),
        ({"B": "a" * 3_999, "A": "b" * 3_999, "C": "c"}, {"B"}),
    ],
    ids=["a long one", "8,000 characters", "8,001", "two as long"],
)
def test_the_longest_variables_are_left_out_and_not_cut(environment: dict[str, str], left_out: set[str]) -> None:
    job = replace(JOB, trigger=replace(JOB.trigger, environment=environment))

    kept = {name: value for name, value in environment.items() if name not in left_out}
    assert event_of(job, CHANGE).trigger.variables == kept


def test_the_largest_event_is_one_that_eventbridge_takes() -> None:
    worst = "\x01" * 100_000
    trigger = replace(make_job().trigger, identity=worst, summary=worst, environment={"A": "\x01" * 7_990, "B": worst})
    job = make_job(definition=make_definition(checkpoint_uri=f"s3://acme/{'k' * 1_024}/"))
    job = replace(job, trigger=trigger)
    change = as_created(job, worst).outbox.unsent[0]

    assert len(change.reason) == MAX_REASON
    assert len(write_detail(event_of(job, change)).encode()) < 100 * 1024
