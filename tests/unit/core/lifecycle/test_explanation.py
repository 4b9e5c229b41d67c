"""Every state and every wait is explained."""

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
from relaunch.core.definitions.accelerator import AcceleratorRequirement, PurchasePolicy
from relaunch.core.jobs.attempt import IntentKind, PlacementState, Stop, StopIntent, StopKind
from relaunch.core.jobs.job import FailedStart
from relaunch.core.jobs.state import JobState, Refusal, RefusedCall, Waiting, WaitReason
from relaunch.core.lifecycle.explanation import explain, time_left
from relaunch.core.lifecycle.long_waits import QUEUE_LIMIT, START_LIMIT
from relaunch.core.lifecycle.wait_explanation import Explanation

LATER = NOW + timedelta(minutes=5)


def waiting_job(reason: WaitReason, detail: str = "because", slot: str = "", **fields):
    return make_job(waiting=Waiting(reason, NOW, detail, LATER, slot), wake_at=LATER, **fields)


AGAIN = "a job keeps the definition it was accepted with: cancel it, change the definition, apply it, submit again"
SPOT = "purchase is spot: spot-then-on-demand would let it take on-demand machines"
LAUNCHED = "an offering is chosen and the task is launched; should the message be lost, it is sent again"
PUSHED = "it is launched when the image is pushed; without the image it fails"
WAIT_FOR_IMAGE = "wait_for_image in the definition has the repository, the tag and how long a job waits"
MACHINES = "`relaunch machines` lists the machines of the stack"
MACHINE_LIMIT_ADVICE = (
    MACHINES,
    "if the stack has as many as it may: raise its MaxMachines or MaxMachinesPricePerHour",
)
MACHINE_STEP = (
    "its task is launched when the machine has registered with all its accelerators; if it does not, or EC2 has none, "
    "another one is requested"
)
PROVIDERS = "give the stack more zones (MachineSubnets) or capacity providers (CapacityProviders)"
STACK_PRICE = "the stack's own cap is MaxPricePerHour"
SOONER = "a deadline or `relaunch cancel resnet-1f2e3d4c` ends it sooner"
FOR_A_DAY = f"that goes on until 2026-03-15 09:26 UTC, then it fails; {SOONER}"
FOR_TWO_WEEKS = (
    "that goes on until 2026-03-28 09:26 UTC, then it fails, and `relaunch retry` resumes from its checkpoint; "
    + SOONER
)
DOCTOR = "`relaunch doctor` checks what the stack may do; docs/deploy.md says which role needs what"
DENIED = (
    "the cluster refuses the launch: AccessDeniedException: User: arn:aws:sts::111122223333:assumed-role/"
    "relaunch-Launch/relaunch-launch-attempt is not authorized to perform: iam:PassRole on resource: "
    "arn:aws:iam::111122223333:role/relaunch/trainer because no identity-based policy allows the iam:PassRole action"
)
GRANTS = (
    "name the bucket in the stack's CheckpointBuckets: launch_attempt's role then may list and read it",
    "objects under a KMS key of your own: name it in the stack's CheckpointKeyArns, for kms:Decrypt; the policy of the "
    "key must let the role use it too",
    "a bucket policy, or a bucket or key of another account, must let the role in as well",
)
PS = "cancel a job that is not needed: `relaunch ps` lists them"
NARROW = make_definition(
    purchase=PurchasePolicy.SPOT,
    accelerator=AcceleratorRequirement(instance_types=("g5.xlarge",)),
    max_price_usd_per_hour=0.5,
)

WAITS = {
    "launch": (waiting_job(WaitReason.LAUNCH), "its launch: a message in the attempts queue", LAUNCHED, ()),
    "image": (
        waiting_job(WaitReason.IMAGE, image=("trainer", "5e07")),
        "the image trainer:5e07 in ECR",
        PUSHED,
        ("see that the build pushes trainer:5e07", WAIT_FOR_IMAGE),
    ),
    "image-not-said": (
        waiting_job(WaitReason.IMAGE),
        "the image its commit in ECR",
        PUSHED,
        ("see that the build pushes its commit", WAIT_FOR_IMAGE),
    ),
    "slot-of-the-definition": (
        waiting_job(WaitReason.SLOT, "5 jobs run", "resnet"),
        "a free slot: 5 jobs run",
        "when a job of definition resnet ends, the one that waits longest is launched; it is looked at again anyway",
        (PS, f"max_running_jobs is 5: {AGAIN}"),
    ),
    "slot-of-the-stack": (
        waiting_job(WaitReason.SLOT, "50 jobs run", "*"),
        "a free slot: 50 jobs run",
        "when a job of any definition ends, the one that waits longest is launched; it is looked at again anyway",
        (PS, "raise the stack's MaxRunningJobs"),
    ),
    "capacity": (
        waiting_job(WaitReason.CAPACITY, "nothing is to be had"),
        "capacity: nothing is to be had",
        "every offering is looked at again",
        (AGAIN, PROVIDERS),
    ),
    "capacity-of-a-narrow-definition": (
        waiting_job(WaitReason.CAPACITY, "nothing is to be had", definition=NARROW),
        "capacity: nothing is to be had",
        "every offering is looked at again",
        ("accelerator.instance_types narrows the choice: more types have more capacity", SPOT, AGAIN, PROVIDERS),
    ),
    "price": (
        waiting_job(WaitReason.PRICE, "too dear"),
        "a lower price: too dear",
        "prices are looked at again",
        (STACK_PRICE, AGAIN),
    ),
    "price-of-a-narrow-definition": (
        waiting_job(WaitReason.PRICE, "too dear", definition=NARROW),
        "a lower price: too dear",
        "prices are looked at again",
        (SPOT, "max_price_per_hour is 0.50 USD", STACK_PRICE, AGAIN),
    ),
    "backoff": (
        waiting_job(WaitReason.BACKOFF, "the program failed"),
        "a pause before the next launch: the program failed",
        "it is launched again",
        (),
    ),
    "checkpoint-before-anything-ran": (
        waiting_job(WaitReason.CHECKPOINT, "AccessDenied"),
        "its checkpoints, which cannot be read: AccessDenied",
        f"they are read again; nothing was started, and {FOR_A_DAY}",
        GRANTS,
    ),
    "checkpoint-after-an-interruption": (
        waiting_job(WaitReason.CHECKPOINT, "kms:Decrypt", attempt=make_running_attempt(), first_started_at=NOW),
        "its checkpoints, which cannot be read: kms:Decrypt",
        f"they are read again; what was saved is kept, and {FOR_TWO_WEEKS}",
        GRANTS,
    ),
    "refused": (
        waiting_job(WaitReason.REFUSED, DENIED, refusals={RefusedCall.LAUNCH: Refusal(NOW, NOW)}),
        f"somebody to grant or mend what is refused: {DENIED}",
        f"it is tried again, without a machine until then; {FOR_A_DAY}",
        (
            "grant the role relaunch-Launch iam:PassRole on arn:aws:iam::111122223333:role/relaunch/trainer: "
            "template.yaml does, so deploy again or see what took it away",
            DOCTOR,
        ),
    ),
    "refused-just-now-with-its-machine": (
        waiting_job(WaitReason.REFUSED, "ClusterNotFoundException", machine_id="m-1", first_started_at=NOW),
        "somebody to grant or mend what is refused: ClusterNotFoundException",
        f"it is tried again, with its machine, which is kept; {FOR_TWO_WEEKS}",
        (DOCTOR,),
    ),
    "market": (
        waiting_job(WaitReason.MARKET, "no spot is to be had"),
        "spot: no spot is to be had",
        "its policy, cheapest, chooses again between spot, on-demand and waiting",
        (f"an earlier `deadline`, less `patience` or `policy: on-demand-first` would start it sooner: {AGAIN}",),
    ),
    "machine": (
        waiting_job(WaitReason.MACHINE, "i-1 is starting"),
        "its machine: i-1 is starting",
        MACHINE_STEP,
        (MACHINES,),
    ),
    "machine-limit": (
        waiting_job(WaitReason.MACHINE_LIMIT, "the stack has reached its limit"),
        "room for a machine: the stack has reached its limit",
        "when a machine is ready or gone, the jobs that wait longest are launched; it is looked at again anyway",
        MACHINE_LIMIT_ADVICE,
    ),
}


SLOW_QUEUE, SLOW_MARKET = (
    f"; it fails if it waits until {NOW + wait:%Y-%m-%d %H:%M} UTC" for wait in (QUEUE_LIMIT, START_LIMIT)
)
BOUNDS = {
    WaitReason.SLOT: SLOW_QUEUE,
    WaitReason.MACHINE_LIMIT: SLOW_QUEUE,
    WaitReason.CAPACITY: SLOW_MARKET,
    WaitReason.PRICE: SLOW_MARKET,
    WaitReason.MARKET: SLOW_MARKET,
}


def test_no_wait_is_left_out():
    assert {job.waiting.reason for job, *_ in WAITS.values()} == set(WaitReason)


@pytest.mark.parametrize(("job", "words", "step", "advice"), WAITS.values(), ids=WAITS)
def test_a_waiting_job_says_what_for_since_when_what_next_and_what_could_help(job, words, step, advice):
    step += BOUNDS.get(job.waiting.reason, "")

    assert explain(job, NOW) == Explanation(words, NOW, step, LATER, advice)


def test_a_wait_under_a_deadline_names_no_other_bound():
    job = waiting_job(WaitReason.CAPACITY, "nothing", definition=make_definition(deadline=timedelta(hours=9)))

    assert explain(job, NOW).next_step == "every offering is looked at again"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            "DockerTimeoutError",
            "it is kept from i-1, which did not start it (DockerTimeoutError): look at that machine",
        ),
        ("", "it is kept from i-1, which did not start it: look at that machine"),
    ],
)
def test_an_open_job_names_the_machines_that_did_not_start_it(error, words):
    job = waiting_job(WaitReason.LAUNCH, failed_starts=(FailedStart("i-1", error),))

    assert explain(job, NOW).advice == (words,)


def test_a_wait_that_was_not_written_down_is_for_the_launch_since_the_job_is_in_this_state():
    explanation = explain(make_job(waiting=None, accepted_at=NOW, state_since=LATER, wake_at=LATER), LATER)

    assert explanation == Explanation("its launch: a message in the attempts queue", LATER, LAUNCHED, LATER)


@pytest.mark.parametrize("reason", [WaitReason.CAPACITY, WaitReason.PRICE, WaitReason.BACKOFF, WaitReason.CHECKPOINT])
def test_a_wait_without_an_end_of_its_own_is_looked_at_when_the_job_wakes(reason):
    first, second = NOW + timedelta(minutes=1), NOW + timedelta(minutes=2)

    assert explain(make_job(waiting=Waiting(reason, NOW, ""), wake_at=second), NOW).next_at == second
    assert explain(make_job(waiting=Waiting(reason, NOW, "", first), wake_at=second), NOW).next_at == first


def test_a_launch_that_takes_long_points_to_where_it_may_be_stuck():
    job = waiting_job(WaitReason.LAUNCH)

    assert explain(job, NOW + timedelta(minutes=10)).advice == ()
    assert explain(job, NOW + timedelta(minutes=10, seconds=1)).advice == (
        "this takes seconds as a rule: look at the attempts queue's dead-letter queue and launch_attempt's log",
    )


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
    advice = "the definition has no `checkpoint`: after an interruption the training starts over"

    assert explain(job, NOW).advice == ((advice,) if is_told else ())


ENDS = {
    IntentKind.INTERRUPTION: "it is launched again on another offering, and resumes from its newest checkpoint",
    IntentKind.MOVE: "it is launched again on another offering, and resumes from its newest checkpoint",
    IntentKind.PLACEMENT_WITHDRAWN: "another offering is tried",
    IntentKind.START_WITHDRAWN: "after a pause another machine is tried",
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
    assert explanation.next_step == f"nothing: the job is {state}, so it is"
    assert explanation.next_at is None


@pytest.mark.parametrize(
    ("state", "advice"),
    [
        (JobState.SUCCEEDED, ()),
        (JobState.CANCELLED, ()),
        (
            JobState.TIMED_OUT,
            ("max_runtime and deadline are in the definition; `relaunch explain` shows where the time went",),
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
        (StopKind.HOST_LOST, "allow on-demand"),
        (StopKind.USER_ERROR, "`relaunch logs resnet-1f2e3d4c` shows"),
    ],
)
def test_a_failed_job_is_told_what_could_help(kind, advice):
    attempt = make_running_attempt(stop=Stop(kind, NOW))
    failed = make_running_job(state=JobState.FAILED, attempt=attempt, ended_at=NOW)

    assert explain(failed, NOW).advice[0].startswith(advice)


def test_a_job_that_failed_before_anything_started_points_to_its_timeline():
    failed = make_job(state=JobState.FAILED, waiting=None, ended_at=NOW, reason="")

    assert explain(failed, NOW).advice == ("nothing was started: the timeline says why",)
    assert explain(failed, NOW).next_step == "nothing: the job is FAILED"


def test_an_end_without_a_reason_of_its_own_is_described_by_its_stop():
    attempt = make_running_attempt(stop=Stop(StopKind.SUCCESS, NOW, exit_code=0))
    done = make_running_job(state=JobState.SUCCEEDED, attempt=attempt, ended_at=NOW, reason="")

    assert explain(done, NOW).next_step == "nothing: the job is SUCCEEDED, the program finished (exit code 0)"


@pytest.mark.parametrize(
    ("next_at", "left"), [(None, None), (LATER, timedelta(minutes=5)), (NOW - timedelta(minutes=1), timedelta(0))]
)
def test_the_time_left_is_never_negative(next_at, left):
    assert time_left(Explanation("", None, "", next_at), NOW) == left
