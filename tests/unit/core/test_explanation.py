"""Every state and every wait is explained."""

from datetime import timedelta

import pytest

from fakes.builders import (
    NOW,
    make_attempt,
    make_definition,
    make_job,
    make_placement_try,
    make_running_attempt,
    task_arn,
)
from relaunch.core.accelerator import AcceleratorRequirement, PurchasePolicy
from relaunch.core.explanation import Explanation, explain, time_left
from relaunch.core.job import (
    IntentKind,
    Job,
    JobState,
    Stop,
    StopIntent,
    StopKind,
    TryState,
    Waiting,
    WaitReason,
)

LATER = NOW + timedelta(minutes=5)


def waiting_job(reason: WaitReason, detail: str = "because", slot: str = "", **fields) -> Job:
    return make_job(waiting=Waiting(reason, NOW, detail, LATER, slot), wake_at=LATER, **fields)


@pytest.mark.parametrize("reason", list(WaitReason))
def test_every_wait_says_what_for_since_when_and_what_next(reason):
    explanation = explain(waiting_job(reason), NOW)

    assert explanation.waiting_for
    assert explanation.since == NOW
    assert explanation.next_step
    assert explanation.next_at == LATER


@pytest.mark.parametrize(
    ("job", "words"),
    [
        pytest.param(waiting_job(WaitReason.LAUNCH), "its launch: a message in the attempts queue", id="launch"),
        pytest.param(
            waiting_job(WaitReason.IMAGE, image=("trainer", "5e07")), "the image trainer:5e07 in ECR", id="image"
        ),
        pytest.param(
            waiting_job(WaitReason.SLOT, "5 jobs run", "resnet"), "a free slot: 5 jobs run", id="slot-of-the-definition"
        ),
        pytest.param(
            waiting_job(WaitReason.CAPACITY, "nothing is to be had"), "capacity: nothing is to be had", id="capacity"
        ),
        pytest.param(waiting_job(WaitReason.PRICE, "too dear"), "a lower price: too dear", id="price"),
        pytest.param(
            waiting_job(WaitReason.BACKOFF, "the program failed"),
            "a pause before the next launch: the program failed",
            id="backoff",
        ),
        pytest.param(make_job(waiting=None), "its launch: a message in the attempts queue", id="not-said"),
    ],
)
def test_a_waiting_job_says_what_it_waits_for(job, words):
    assert explain(job, NOW).waiting_for == words


def test_a_launch_that_takes_long_points_to_where_it_may_be_stuck():
    job = waiting_job(WaitReason.LAUNCH)

    assert explain(job, NOW + timedelta(minutes=9)).advice == ()
    assert "dead-letter queue" in explain(job, NOW + timedelta(minutes=11)).advice[0]


@pytest.mark.parametrize(
    ("slot", "cap"),
    [("resnet", "max_running_jobs is 5: a job keeps the definition"), ("*", "raise the stack's MaxRunningJobs")],
)
def test_a_wait_for_a_slot_names_the_cap_that_holds(slot, cap):
    first, second = explain(waiting_job(WaitReason.SLOT, slot=slot), NOW).advice

    assert first == "cancel a job that is not needed: `relaunch ps` lists them"
    assert second.startswith(cap)


def test_advice_on_capacity_and_price_follows_from_the_definition():
    narrow = make_definition(
        purchase=PurchasePolicy.SPOT,
        accelerator=AcceleratorRequirement(instance_types=("g5.xlarge",)),
        max_price_usd_per_hour=0.5,
    )
    spot = "purchase is spot: spot-then-on-demand would let it take on-demand machines"

    capacity = explain(waiting_job(WaitReason.CAPACITY, definition=narrow), NOW).advice
    price = explain(waiting_job(WaitReason.PRICE, definition=narrow), NOW).advice

    assert capacity[:2] == ("accelerator.instance_types narrows the choice: more types have more capacity", spot)
    assert price[:2] == (spot, "max_price_per_hour is 0.50 USD")
    assert spot not in explain(waiting_job(WaitReason.CAPACITY), NOW).advice
    assert spot not in explain(waiting_job(WaitReason.PRICE), NOW).advice


def launching(**fields) -> Job:
    return make_job(**{"state": JobState.LAUNCHING, "waiting": None, "wake_at": LATER, **fields})


PLACED = make_placement_try(state=TryState.PLACED, task_arn=task_arn())


@pytest.mark.parametrize(
    ("job", "words", "step"),
    [
        pytest.param(
            launching(attempt=make_attempt()),
            "the answer of RunTask for g5.xlarge spot",
            "RunTask is sent, or sent again",
            id="frozen",
        ),
        pytest.param(
            launching(attempt=make_attempt(placement_try=PLACED, task_status="PENDING")),
            "its task to start on g5.xlarge spot (ECS says PENDING)",
            "if it has not started by then, it is withdrawn",
            id="placed",
        ),
        pytest.param(
            launching(attempt=make_attempt(placement_try=PLACED)),
            "its task to start on g5.xlarge spot",
            "if",
            id="no-news",
        ),
        pytest.param(
            launching(attempt=make_attempt(), cancel_requested="enough"),
            "the answer of RunTask, to cancel it",
            "its task is stopped as soon as",
            id="cancelled-meanwhile",
        ),
    ],
)
def test_a_launching_job_says_how_far_it_is(job, words, step):
    explanation = explain(job, NOW)

    assert explanation.waiting_for == words
    assert explanation.next_step.startswith(step)
    assert explanation.next_at == LATER


def running(**fields) -> Job:
    attempt = make_running_attempt()
    return make_job(
        **{"state": JobState.RUNNING, "waiting": None, "attempt": attempt, "first_started_at": NOW, **fields}
    )


def test_a_running_job_says_when_it_is_stopped_at_the_latest():
    explanation = explain(running(), NOW + timedelta(hours=1))

    assert explanation.waiting_for == "the training to finish; it runs on g5.xlarge spot"
    assert explanation.since == NOW
    assert explanation.next_at == NOW + timedelta(hours=48)
    assert explanation.advice == ()


@pytest.mark.parametrize(
    ("purchase", "is_told"),
    [(PurchasePolicy.SPOT, True), (PurchasePolicy.SPOT_THEN_ON_DEMAND, True), (PurchasePolicy.ON_DEMAND, False)],
)
def test_a_training_on_spot_without_checkpoints_is_told_what_that_means(purchase, is_told):
    job = running(definition=make_definition(checkpoint_uri=None, purchase=purchase))

    assert bool(explain(job, NOW).advice) == is_told


@pytest.mark.parametrize(
    ("kind", "step"),
    [
        (IntentKind.INTERRUPTION, "it is launched again on another offering, and resumes"),
        (IntentKind.PLACEMENT_WITHDRAWN, "another offering is tried"),
        (IntentKind.CANCEL, "the job ends CANCELLED"),
        (IntentKind.TIME_OUT, "the job ends TIMED_OUT"),
    ],
)
def test_a_stopping_job_says_why_and_what_follows(kind, step):
    attempt = make_running_attempt(intent=StopIntent(kind, NOW, "said so"))

    explanation = explain(running(state=JobState.STOPPING, attempt=attempt, wake_at=LATER), NOW)

    assert explanation.waiting_for == "its task to stop: said so"
    assert explanation.next_step.startswith(step)
    assert (explanation.since, explanation.next_at) == (NOW, LATER)


@pytest.mark.parametrize(
    ("checkpoint_uri", "words"), [("s3://b/c/", "resumes from its newest checkpoint"), (None, "starts over")]
)
def test_an_interrupted_job_says_where_it_goes_on(checkpoint_uri, words):
    attempt = make_running_attempt(intent=StopIntent(IntentKind.INTERRUPTION, NOW, "warning"))
    definition = make_definition(checkpoint_uri=checkpoint_uri)

    assert words in explain(running(state=JobState.STOPPING, attempt=attempt, definition=definition), NOW).next_step


def test_a_task_that_stops_by_itself_is_waited_for_without_an_intent():
    explanation = explain(running(state=JobState.STOPPING, state_since=NOW, wake_at=LATER), NOW)

    assert explanation.waiting_for == "its task to stop"
    assert explanation.next_step.startswith("how it ended decides")
    assert explanation.since == NOW


def test_an_interrupted_job_that_is_cancelled_is_not_launched_again():
    attempt = make_running_attempt(intent=StopIntent(IntentKind.INTERRUPTION, NOW, "warning"))

    explanation = explain(running(state=JobState.STOPPING, attempt=attempt, cancel_requested="enough"), NOW)

    assert explanation.next_step.startswith("the job ends CANCELLED")


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, JobState.TIMED_OUT])
def test_a_job_that_is_over_waits_for_nothing(state):
    explanation = explain(make_job(state=state, waiting=None, ended_at=LATER, reason="so it is"), NOW)

    assert explanation.waiting_for == ""
    assert explanation.since == LATER
    assert explanation.next_step == f"nothing: the job is {state}, so it is"
    assert explanation.next_at is None


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        (StopKind.OUT_OF_MEMORY, "give the container more memory"),
        (StopKind.IMAGE, "see that the image exists"),
        (StopKind.HOST_LOST, "allow on-demand"),
        (StopKind.USER_ERROR, "`relaunch logs resnet-1f2e3d4c` shows"),
    ],
)
def test_a_failed_job_is_told_what_could_help(kind, advice):
    attempt = make_running_attempt(stop=Stop(kind, NOW))
    failed = running(state=JobState.FAILED, attempt=attempt, ended_at=NOW)

    assert explain(failed, NOW).advice[0].startswith(advice)


def test_a_job_that_failed_before_anything_started_points_to_its_timeline():
    failed = make_job(state=JobState.FAILED, waiting=None, ended_at=NOW, reason="")

    assert explain(failed, NOW).advice == ("nothing was started: the timeline says why",)
    assert explain(failed, NOW).next_step == "nothing: the job is FAILED"


def test_an_end_without_a_reason_of_its_own_is_described_by_its_stop():
    attempt = make_running_attempt(stop=Stop(StopKind.SUCCESS, NOW, exit_code=0))
    done = running(state=JobState.SUCCEEDED, attempt=attempt, ended_at=NOW, reason="")

    assert explain(done, NOW).next_step == "nothing: the job is SUCCEEDED, the program finished (exit code 0)"


@pytest.mark.parametrize(
    ("next_at", "left"),
    [(None, None), (LATER, timedelta(minutes=5)), (NOW - timedelta(minutes=1), timedelta(0))],
)
def test_the_time_left_is_never_negative(next_at, left):
    assert time_left(Explanation("", None, "", next_at), NOW) == left
