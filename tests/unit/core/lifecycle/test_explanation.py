"""Every state is explained."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import (
    NOW,
    make_attempt,
    make_definition,
    make_job,
    make_placement,
    make_running_attempt,
    make_running_job,
    task_id,
)
from relaunch.core.definitions.accelerator import PurchasePolicy
from relaunch.core.jobs.attempt import IntentKind, PlacementState, Stop, StopIntent, StopKind
from relaunch.core.jobs.state import JobState, NotedProgress
from relaunch.core.lifecycle.explanation import explain, time_left
from relaunch.core.lifecycle.wait_explanation import Explanation

HOUR = timedelta(hours=1)
LATER = NOW + timedelta(minutes=5)


def launching(**fields):
    return make_job(**{"state": JobState.LAUNCHING, "waiting": None, "wake_at": LATER, **fields})


PLACED = make_placement(state=PlacementState.PLACED, task_id=task_id())
WITHDRAWN = "if it has not started by then, it is withdrawn and another offering is tried"


@pytest.mark.parametrize(
    ("job", "words", "step"),
    [
        pytest.param(
            launching(attempt=make_attempt()),
            "the answer to the launch on g5.xlarge spot",
            "the launch is sent, or sent again as the same placement, which is harmless",
            id="pending",
        ),
        pytest.param(
            launching(attempt=make_attempt(placement=PLACED, task_status="PENDING")),
            "its task to start on g5.xlarge spot (the cluster says PENDING)",
            WITHDRAWN,
            id="placed",
        ),
        pytest.param(
            launching(attempt=make_attempt(placement=PLACED)),
            "its task to start on g5.xlarge spot",
            WITHDRAWN,
            id="no-answer",
        ),
        pytest.param(
            launching(attempt=make_attempt(), cancel_requested="enough"),
            "the answer to its launch, to cancel it",
            "its task is stopped as soon as the cluster tells which it is, and the job ends CANCELLED",
            id="cancelled-meanwhile",
        ),
    ],
)
def test_a_launching_job_says_how_far_it_is(job, words, step):
    assert explain(job, NOW) == Explanation(words, NOW, step, LATER)


def stopping(kind: IntentKind, at=NOW, reason: str = "warning", **fields):
    attempt = make_running_attempt(intent=StopIntent(kind, at, reason))
    return make_running_job(state=JobState.STOPPING, attempt=attempt, **fields)


def test_a_running_job_says_when_it_is_stopped_at_the_latest():
    explanation = explain(make_running_job(), NOW + timedelta(hours=1))

    assert explanation == Explanation(
        "the training to finish; it runs on g5.xlarge spot",
        NOW,
        "the job ends with its program; at its time limit it is stopped",
        NOW + timedelta(hours=48),
    )


@pytest.mark.parametrize(
    ("fields", "hours_left", "words"),
    [
        ({"max_runtime": 5 * HOUR}, 4, ""),
        ({"max_runtime": 5 * HOUR}, 6, f"and `max_runtime` ends it at {NOW + 5 * HOUR:%Y-%m-%d %H:%M} UTC"),
        ({"deadline": 3 * HOUR}, 4, f"and `deadline` ends it at {NOW + 3 * HOUR:%Y-%m-%d %H:%M} UTC"),
        ({"max_runtime": 5 * HOUR}, None, ""),
    ],
)
def test_a_training_that_is_slower_than_its_limit_allows_is_explained(fields, hours_left, words):
    done_at = None if hours_left is None else NOW + hours_left * HOUR
    noted = NotedProgress(100, NOW, 1, total_steps=1000, finishes_at=done_at)
    job = replace(make_running_job(), noted=noted)
    job = replace(job, definition=replace(job.definition, **fields), accepted_at=NOW)
    job = replace(job, attempt=replace(job.current_attempt, started_at=NOW))

    said = [each for each in explain(job, NOW).advice if "at its rate" in each]

    assert bool(said) is bool(words)
    for each in said:
        assert f"at its rate it is done about {done_at:%Y-%m-%d %H:%M} UTC, {words}: raise that" in each
        assert each.endswith(f"`relaunch retry {job.job_id}` resumes from its newest checkpoint")


@pytest.mark.parametrize(
    ("purchase", "is_told"),
    [
        (PurchasePolicy.SPOT, True),
        (PurchasePolicy.SPOT_THEN_ON_DEMAND, True),
        (PurchasePolicy.ON_DEMAND, False),
        (PurchasePolicy.RESERVED, True),
    ],
)
def test_a_training_on_spot_without_checkpoints_is_told_what_that_means(purchase, is_told):
    job = make_running_job(definition=make_definition(checkpoint_uri=None, purchase=purchase))
    advice = "give the definition a `checkpoint`: without one the training starts over after an interruption"

    assert explain(job, NOW).advice == ((advice,) if is_told else ())


ENDS = {
    IntentKind.INTERRUPTION: "it is launched again on another offering, and resumes from its newest checkpoint",
    IntentKind.MOVE: "it is launched again on another offering, and resumes from its newest checkpoint",
    IntentKind.BUDGET: "it waits until its budget has room, and resumes from its newest checkpoint",
    IntentKind.RANK_ENDED: "how the first of its ranks ended decides what follows, once all have stopped",
    IntentKind.PLACEMENT_WITHDRAWN: "another offering is tried",
    IntentKind.START_WITHDRAWN: "after a pause another machine is tried",
    IntentKind.START_REFUSED: "it waits without a slot until that is granted, and is tried again",
    IntentKind.STARTS_NOWHERE: "the job fails",
    IntentKind.CANCEL: "the job ends CANCELLED",
    IntentKind.TIME_OUT: "the job ends TIMED_OUT",
}


@pytest.mark.parametrize("kind", list(IntentKind))
def test_a_stopping_job_says_why_and_what_follows(kind):
    stopping_at = NOW + timedelta(minutes=1)

    explanation = explain(stopping(kind, stopping_at, "said so", wake_at=LATER), NOW)

    step = f"{ENDS[kind]}; if it is not reported as STOPPED, StopTask is sent again"
    assert explanation == Explanation("its task to stop: said so", stopping_at, step, LATER)


@pytest.mark.parametrize(
    ("checkpoint_uri", "words"), [("s3://b/c/", "resumes from its newest checkpoint"), (None, ", and starts over;")]
)
def test_an_interrupted_job_says_where_it_goes_on(checkpoint_uri, words):
    job = stopping(IntentKind.INTERRUPTION, definition=make_definition(checkpoint_uri=checkpoint_uri))

    assert words in explain(job, NOW).next_step


def test_an_interrupted_job_says_that_its_next_machine_is_requested():
    explanation = explain(stopping(IntentKind.INTERRUPTION, machine_id="m-2"), NOW)

    assert explanation.next_step.startswith(
        "it is launched again on the machine that is requested for it already, and "
    )


def test_a_task_that_stops_by_itself_is_waited_for_without_an_intent():
    explanation = explain(make_running_job(state=JobState.STOPPING, state_since=NOW, wake_at=LATER), NOW)

    assert explanation.waiting_for == "its task to stop"
    assert explanation.next_step.startswith("how it ended decides")
    assert explanation.since == NOW


def test_an_interrupted_job_that_is_cancelled_is_not_launched_again():
    explanation = explain(stopping(IntentKind.INTERRUPTION, cancel_requested="enough"), NOW)

    assert explanation.next_step.startswith("the job ends CANCELLED")


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, JobState.TIMED_OUT])
def test_a_job_that_is_over_waits_for_nothing(state):
    explanation = explain(make_job(state=state, waiting=None, ended_at=LATER, reason="so it is"), NOW)

    assert explanation.waiting_for == ""
    assert explanation.since == LATER
    assert explanation.next_step == "nothing, the job is over: so it is"
    assert explanation.next_at is None


@pytest.mark.parametrize(
    ("state", "advice"),
    [
        (JobState.SUCCEEDED, ()),
        (JobState.CANCELLED, ()),
        (
            JobState.TIMED_OUT,
            ("raise max_runtime or deadline in the definition; `relaunch explain --full` shows where the time went",),
        ),
    ],
)
def test_only_an_end_that_nobody_wanted_comes_with_advice(state, advice):
    assert explain(make_job(state=state, waiting=None, ended_at=LATER), NOW).advice == advice


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        (StopKind.OUT_OF_MEMORY, "give the container more memory"),
        (StopKind.IMAGE, "see that the image exists"),
        (StopKind.STARTS_NOWHERE, "see that the image, the command in it"),
        (StopKind.HOST_LOST, "allow on-demand"),
        (StopKind.USER_ERROR, "`relaunch logs resnet-1f2e3d4c` shows"),
    ],
)
def test_a_failed_job_is_told_what_could_help(kind, advice):
    attempt = make_running_attempt(stop=Stop(kind, NOW))
    failed = make_running_job(state=JobState.FAILED, attempt=attempt, ended_at=NOW)

    assert explain(failed, NOW).advice[0].startswith(advice)


def test_a_job_that_failed_before_anything_started_says_what_helps():
    failed = make_job(state=JobState.FAILED, waiting=None, ended_at=NOW, reason="")
    without_image = replace(failed, reason="the image trainer:v1 of container main is not in ECR")

    assert explain(failed, NOW).advice == ("correct what the reason names, then `relaunch retry`",)
    assert explain(without_image, NOW).advice == (
        "push the image first, by the workflow that builds it or `docker push`; then `relaunch retry resnet-1f2e3d4c`",
    )
    assert explain(failed, NOW).next_step == "nothing, the job is over"


def test_an_end_without_a_reason_of_its_own_is_described_by_its_stop():
    attempt = make_running_attempt(stop=Stop(StopKind.SUCCESS, NOW, exit_code=0))
    done = make_running_job(state=JobState.SUCCEEDED, attempt=attempt, ended_at=NOW, reason="")

    assert explain(done, NOW).next_step == "nothing, the job is over: the program finished (exit code 0)"


@pytest.mark.parametrize(
    ("next_at", "left"), [(None, None), (LATER, timedelta(minutes=5)), (NOW - timedelta(minutes=1), timedelta(0))]
)
def test_the_time_left_is_never_negative(next_at, left):
    assert time_left(Explanation("", None, "", next_at), NOW) == left
