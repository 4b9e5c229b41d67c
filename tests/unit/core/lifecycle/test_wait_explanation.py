"""Every wait is explained: what for, since when, what comes next, and what could help."""

from datetime import timedelta

import pytest

from fakes.builders import NOW, make_definition, make_job, make_running_attempt
from relaunch.core.definitions.accelerator import AcceleratorRequirement, PurchasePolicy
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.groups import GroupPlace
from relaunch.core.jobs.job import FailedStart
from relaunch.core.jobs.state import Refusal, RefusedCall, Waiting, WaitReason
from relaunch.core.lifecycle.explanation import Explanation, explain
from relaunch.core.lifecycle.groups import slot_of
from relaunch.core.lifecycle.long_waits import BUDGET_LIMIT, QUEUE_LIMIT, START_LIMIT

LATER = NOW + timedelta(minutes=5)


def waiting_job(reason: WaitReason, detail: str = "because", slot: str = "", **fields):
    return make_job(waiting=Waiting(reason, NOW, detail, LATER, slot), wake_at=LATER, **fields)


AGAIN = (
    "cancel the job, change the definition, apply it and submit again: a job keeps the definition it was accepted with"
)
SPOT = "set purchase to spot-then-on-demand, which lets it take on-demand machines"
LAUNCHED = "an offering is chosen and the task is launched; should the message be lost, it is sent again"
PUSHED = "it is launched when the image is pushed; without the image it fails"
WAIT_FOR_IMAGE = "change wait_for_image in the definition: the repository, the tag, or how long a job waits"
MACHINES = "look at `relaunch machines`, which lists the machines of the stack"
MACHINE_LIMIT_ADVICE = (
    MACHINES,
    "raise the stack's MaxMachines or MaxMachinesPricePerHour, if it has as many as it may",
)
MACHINE_STEP = (
    "its task is launched when the machine has registered with all its accelerators; if it does not, or EC2 has none, "
    "another one is requested"
)
PROVIDERS = "give the stack more zones (MachineSubnets) or capacity providers (CapacityProviders)"
STACK_PRICE = "raise the stack's MaxPricePerHour"
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

IN_GROUP = make_job(group=GroupPlace("gpu"))

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
        (PS, f"raise max_running_jobs, which is 5: {AGAIN}"),
    ),
    "slot-of-the-stack": (
        waiting_job(WaitReason.SLOT, "50 jobs run", "*"),
        "a free slot: 50 jobs run",
        "when a job of any definition ends, the one that waits longest is launched; it is looked at again anyway",
        (PS, "raise the stack's MaxRunningJobs"),
    ),
    "slot-that-is-not-said": (
        waiting_job(WaitReason.SLOT, "5 jobs run"),
        "a free slot: 5 jobs run",
        "when a job of definition resnet ends, the one that waits longest is launched; it is looked at again anyway",
        (PS, f"raise max_running_jobs, which is 5: {AGAIN}"),
    ),
    "group": (
        waiting_job(WaitReason.SLOT, "resnet-1 runs", slot_of(IN_GROUP), group=IN_GROUP.group),
        "its concurrency group: resnet-1 runs",
        "it is launched when that job has ended, unless a newer job of the group is accepted, which replaces it; it is "
        "looked at again anyway",
        ("cancel that job; with concurrency.cancel_in_progress in the definition the next newer job would do so",),
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
        ("name more accelerator.instance_types, or none: more types have more capacity", SPOT, AGAIN, PROVIDERS),
    ),
    "capacity-of-a-cluster": (
        waiting_job(WaitReason.CAPACITY, "no node has room", definition=make_definition(target=Target.ACK)),
        "capacity: no node has room",
        "every offering is looked at again",
        (AGAIN, "another GPU model, or more nodes in the cluster's pools, may have room"),
    ),
    "price": (
        waiting_job(WaitReason.PRICE, "too dear"),
        "a lower price: too dear",
        "prices are looked at again",
        (STACK_PRICE,),
    ),
    "price-of-a-stack-with-a-ratio": (
        waiting_job(WaitReason.PRICE, "above 90% (MaxSpotRatio) it is not worth being interrupted"),
        "a lower price: above 90% (MaxSpotRatio) it is not worth being interrupted",
        "prices are looked at again",
        ("raise the stack's MaxSpotRatio",),
    ),
    "price-of-a-narrow-definition": (
        waiting_job(WaitReason.PRICE, "the job's max_price_per_hour is 0.5 USD", definition=NARROW),
        "a lower price: the job's max_price_per_hour is 0.5 USD",
        "prices are looked at again",
        (SPOT, "raise max_price_per_hour, which is 0.5 USD", AGAIN),
    ),
    "price-of-the-stack-for-a-narrow-definition": (
        waiting_job(WaitReason.PRICE, "the stack's MaxPricePerHour is 0.4 USD", definition=NARROW),
        "a lower price: the stack's MaxPricePerHour is 0.4 USD",
        "prices are looked at again",
        (SPOT, AGAIN, STACK_PRICE),
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
        "when a machine is ready or gone, the jobs that wait longest are launched; a limit that is raised wakes none "
        "of them, and a new job may come first then; it is looked at again anyway",
        MACHINE_LIMIT_ADVICE,
    ),
    "budget": (
        waiting_job(WaitReason.BUDGET, "the budget of stack is $5.00"),
        "its budget: the budget of stack is $5.00",
        "it is launched when the budget has room for an hour: another job gives back what it did not need, a month "
        "begins (UTC), or the budget is raised",
        (
            "`relaunch budgets` lists what each budget has left, `relaunch costs` what it was spent on",
            "raise it, if you may: `relaunch budgets set`",
        ),
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
    WaitReason.BUDGET: f"; it fails if it waits until {NOW + BUDGET_LIMIT:%Y-%m-%d %H:%M} UTC",
}


def test_no_wait_is_left_out():
    assert {job.waiting.reason for job, *_ in WAITS.values()} == set(WaitReason)


@pytest.mark.parametrize(("job", "words", "step", "advice"), WAITS.values(), ids=WAITS)
def test_a_waiting_job_says_what_for_since_when_what_next_and_what_could_help(job, words, step, advice):
    step += BOUNDS.get(job.waiting.reason, "")

    is_look = job.waiting.reason in (WaitReason.SLOT, WaitReason.MACHINE_LIMIT, WaitReason.BUDGET)
    assert explain(job, NOW) == Explanation(words, NOW, step, LATER, advice, is_look=is_look)


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


@pytest.mark.parametrize(
    "reason",
    [
        *(WaitReason.CAPACITY, WaitReason.PRICE, WaitReason.BACKOFF, WaitReason.CHECKPOINT, WaitReason.REFUSED),
        *(WaitReason.MARKET, WaitReason.MACHINE),
    ],
)
def test_a_wait_without_an_end_of_its_own_is_looked_at_when_the_job_wakes(reason):
    first, second = NOW + timedelta(minutes=1), NOW + timedelta(minutes=2)

    assert explain(make_job(waiting=Waiting(reason, NOW, ""), wake_at=second), NOW).next_at == second
    assert explain(make_job(waiting=Waiting(reason, NOW, "", first), wake_at=second), NOW).next_at == first


def test_a_launch_that_takes_long_points_to_where_it_may_be_stuck():
    job = waiting_job(WaitReason.LAUNCH)

    assert explain(job, NOW + timedelta(minutes=10)).advice == ()
    assert explain(job, NOW + timedelta(minutes=10, seconds=1)).advice == (
        "look at the attempts queue's dead-letter queue and launch_attempt's log: this takes seconds as a rule",
    )
