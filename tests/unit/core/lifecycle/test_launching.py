from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import (
    NOW,
    make_attempt,
    make_definition,
    make_instance_type,
    make_job,
    make_offering,
    make_placement,
    make_running_attempt,
    make_selection,
    task_arn,
)
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.job import (
    STACK_SLOT,
    Effect,
    EffectKind,
    IntentKind,
    Job,
    JobState,
    Placement,
    PlacementState,
    Stop,
    StopIntent,
    StopKind,
    Waiting,
    WaitReason,
)
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.launches.derived_revision import PreparedRevision
from relaunch.core.launches.launch import (
    LaunchConflict,
    LaunchDeferred,
    LaunchRefused,
    LaunchUncertain,
    PlacementFailed,
    TaskPlaced,
)
from relaunch.core.lifecycle.events import (
    CancelAsked,
    ImageArrived,
    JobEvent,
    LaunchAnswered,
    NothingKept,
    OfferingChosen,
    PlacementExpired,
    SlotDenied,
    TimePassed,
)
from relaunch.core.lifecycle.launching import IMAGE_POLL_INTERVAL
from relaunch.core.lifecycle.table import decide
from relaunch.core.revisions.images import FoundImage
from unit.core.lifecycle.table_matrix import SITUATIONS

SOON = NOW + timedelta(minutes=1)
LIMITS = StackLimits()
LAUNCH = Effect(EffectKind.REQUEST_LAUNCH)
ADMIT = Effect(EffectKind.ADMIT_WAITING)


def after(job: Job, *events: JobEvent, now=SOON) -> Job:
    for event in events:
        job = decide(job, event, now, LIMITS).job
    return job


def chosen(resume_uri: str | None = None, **fields) -> OfferingChosen:
    return OfferingChosen(make_offering(**fields), make_selection(), resume_uri)


def answered(outcome) -> LaunchAnswered:
    return LaunchAnswered(1, 1, outcome)


def test_the_first_launch_freezes_everything_the_request_is_made_of():
    decision = decide(SITUATIONS["w0"], chosen("s3://c/resnet/x/attempt-1/"), SOON, LIMITS)

    attempt = decision.job.current_attempt
    assert (attempt.number, attempt.placement.number) == (1, 1)
    assert attempt.placement.state is PlacementState.PENDING
    assert attempt.placement.requested_at == SOON
    assert attempt.placement.capacity_provider == "g5-xlarge-spot"
    assert attempt.placement.resume_uri == "s3://c/resnet/x/attempt-1/"
    assert attempt.task_arn is None
    assert decision.selection is not None
    assert decision.job.pending == ()
    assert decision.timeline[0].detail == (
        "g5.xlarge spot by g5-xlarge-spot at $0.4000/h, resuming from s3://c/resnet/x/attempt-1/"
    )


def test_everything_that_was_prepared_is_frozen_with_the_try():
    part = make_offering(make_instance_type("g6f.xlarge", gpu_partition_size=0.125))
    prepared = PreparedRevision("arn:derived", (3,), takes_all_neuron=True)

    attempt = after(SITUATIONS["w0"], OfferingChosen(part, make_selection(), None, prepared)).current_attempt

    assert attempt.placement == Placement(
        number=1,
        offering=part.key,
        capacity_provider="g6f-xlarge-spot",
        price_usd_per_hour=0.40,
        requested_at=SOON,
        revision_arn="arn:derived",
        neuron_devices=(3,),
        takes_all_neuron=True,
        gpu_partition_size=0.125,
    )


def test_a_neuron_job_is_told_its_devices():
    chosen_devices = OfferingChosen(make_offering(), make_selection(), None, PreparedRevision(None, (3,)))

    entry = decide(SITUATIONS["w0"], chosen_devices, SOON, LIMITS).timeline[0]

    assert entry.detail == "g5.xlarge spot by g5-xlarge-spot at $0.4000/h, Neuron device 3"


def test_an_offering_that_names_neither_provider_nor_price_is_frozen_without():
    bare = chosen(capacity_provider=None, price_usd_per_hour=None, on_demand_usd_per_hour=None)

    placement = after(SITUATIONS["w0"], bare).current_attempt.placement

    assert (placement.capacity_provider, placement.price_usd_per_hour) == ("", 0.0)


def test_a_launch_ends_what_was_said_of_the_wait():
    assert after(replace(SITUATIONS["wc"], reason="nothing is available right now"), chosen()).reason == ""


def test_spot_without_a_known_price_is_reckoned_at_the_on_demand_price():
    job = after(SITUATIONS["w0"], chosen(price_usd_per_hour=None, on_demand_usd_per_hour=1.0))

    assert job.current_attempt.placement.price_usd_per_hour == 1.0


def test_an_attempt_that_never_started_keeps_its_number_and_its_closed_tries():
    earlier = make_attempt(
        placement=make_placement(3, state=PlacementState.CLOSED, task_arn=task_arn(3)),
        closed_placements=(make_placement(2, state=PlacementState.CLOSED, task_arn=task_arn(2)),),
        stop=Stop(StopKind.NO_CAPACITY, NOW),
    )

    attempt = after(replace(SITUATIONS["w0"], attempt=earlier), chosen()).current_attempt

    assert (attempt.number, attempt.placement.number) == (1, 4)
    assert [each.task_arn for each in attempt.closed_placements] == [task_arn(2), task_arn(3)]
    assert attempt.stop is None
    assert attempt.task_version == 0


def test_an_attempt_that_started_uses_its_number_up():
    attempt = after(SITUATIONS["wr"], chosen()).current_attempt

    assert (attempt.number, attempt.placement.number) == (2, 1)
    assert attempt.closed_placements == ()
    assert attempt.started_at is None
    assert attempt.instance_id is None


def test_an_attempt_whose_task_was_lost_uses_its_number_up_for_it_may_have_started():
    tried = make_placement(state=PlacementState.CLOSED, task_arn=task_arn(), is_lost=True)
    lost = make_attempt(placement=tried, stop=Stop(StopKind.HOST_LOST, NOW))

    attempt = after(replace(SITUATIONS["w0"], attempt=lost), chosen()).current_attempt

    assert (attempt.number, attempt.placement.number) == (2, 1)
    assert attempt.closed_placements == ()


def test_only_the_latest_tries_are_kept_and_their_numbers_go_on():
    job = SITUATIONS["w0"]
    for _ in range(12):
        job = after(job, chosen())
        number = job.current_attempt.placement.number
        job = after(job, LaunchAnswered(1, number, PlacementFailed(("RESOURCE:GPU",))))

    assert job.current_attempt.placement.number == 12
    assert [each.number for each in after(job, chosen()).current_attempt.closed_placements] == list(range(5, 13))


@pytest.mark.parametrize(
    ("with_task", "kept"),
    [
        pytest.param((1, 2), [1, 2, 5, 6, 7, 8, 9, 10], id="old-tries-that-had-a-task"),
        pytest.param(range(1, 10), range(3, 11), id="all-but-the-last-had-a-task"),
        pytest.param(range(1, 11), range(3, 11), id="all-had-a-task"),
    ],
)
def test_tries_without_a_task_are_forgotten_first_for_late_news_must_find_the_try_it_is_of(with_task, kept):
    tries = [
        make_placement(number, state=PlacementState.CLOSED, task_arn=task_arn(number) if number in with_task else None)
        for number in range(1, 11)
    ]
    earlier = make_attempt(placement=tries[-1], closed_placements=tuple(tries[:-1]))

    attempt = after(replace(SITUATIONS["w0"], attempt=earlier), chosen()).current_attempt

    assert [each.number for each in attempt.closed_placements] == list(kept)


def test_who_waited_for_a_slot_and_got_it_lets_the_next_one_look():
    assert after(SITUATIONS["ws"], chosen()).pending == (ADMIT,)


@pytest.mark.parametrize(
    ("waited_for", "denied_by", "effects"),
    [
        pytest.param(STACK_SLOT, "resnet", (ADMIT,), id="the-stack-has-one-but-not-its-definition"),
        pytest.param("resnet", STACK_SLOT, (), id="its-definition-has-one-but-not-the-stack"),
        pytest.param("resnet", "resnet", (), id="still-none"),
    ],
)
def test_a_slot_that_a_job_cannot_use_is_passed_on(waited_for, denied_by, effects):
    waiting = Waiting(WaitReason.SLOT, NOW, "", slot=waited_for)

    assert after(replace(SITUATIONS["ws"], waiting=waiting), SlotDenied(denied_by, 5)).pending == effects


@pytest.mark.parametrize(
    ("slot", "detail"),
    [
        ("resnet", "definition resnet has no free slot of its 5 (max_running_jobs)"),
        (STACK_SLOT, "the stack has no free slot of its 5 (max_running_jobs)"),
    ],
)
def test_a_denied_slot_is_said_to_be_waited_for(slot, detail):
    job = after(SITUATIONS["w0"], SlotDenied(slot, 5))

    assert job.waiting == Waiting(WaitReason.SLOT, SOON, detail, slot=slot)
    assert job.reason == detail
    assert not job.has_slot
    assert job.wake_at == SOON + timedelta(minutes=15)


def test_who_goes_on_waiting_for_the_same_does_so_since_then_without_another_line():
    first = decide(SITUATIONS["w0"], SlotDenied("resnet", 5), NOW, LIMITS)
    again = decide(first.job, SlotDenied("resnet", 6), SOON, LIMITS)

    assert len(first.timeline) == 1
    assert again.timeline == ()
    assert again.job.waiting is not None
    assert again.job.waiting.since == NOW
    assert "of its 6" in again.job.waiting.detail


def test_nothing_that_ever_satisfies_it_fails_the_job_with_the_reason():
    event = NothingKept(make_selection(kept=()), "price-cap removed the last offering", True, False, None)

    decision = decide(SITUATIONS["w0"], event, SOON, LIMITS)

    assert decision.job.reason == "price-cap removed the last offering"
    assert decision.selection is event.selection


@pytest.mark.parametrize(
    ("is_price", "retry_in", "reason", "wakes_in"),
    [
        pytest.param(False, timedelta(minutes=20), WaitReason.CAPACITY, timedelta(minutes=20), id="memory-expires"),
        pytest.param(False, timedelta(seconds=1), WaitReason.CAPACITY, timedelta(seconds=15), id="not-in-a-hurry"),
        pytest.param(True, None, WaitReason.PRICE, timedelta(minutes=5), id="prices-change-when-they-will"),
    ],
)
def test_nothing_for_now_is_waited_for(is_price, retry_in, reason, wakes_in):
    retry_at = SOON + retry_in if retry_in else None
    event = NothingKept(make_selection(kept=()), "none", False, is_price, retry_at)

    decision = decide(SITUATIONS["w0"], event, SOON, LIMITS)

    assert decision.job.waiting == Waiting(reason, SOON, "none", SOON + wakes_in)
    assert decision.job.wake_at == SOON + wakes_in
    assert decision.selection is event.selection


def test_a_wait_for_capacity_ends_with_the_deadline_at_the_latest():
    job = make_job(definition=make_definition(deadline=timedelta(minutes=3)))
    event = NothingKept(make_selection(kept=()), "none", False, False, SOON + timedelta(hours=1))

    assert after(job, event).wake_at == NOW + timedelta(minutes=3)
    assert after(make_job(), event).wake_at == SOON + timedelta(hours=1)


def test_who_was_let_in_and_finds_no_capacity_passes_its_slot_on():
    event = NothingKept(make_selection(kept=()), "none", False, False, None)

    assert after(SITUATIONS["ws"], event).pending == (ADMIT,)
    assert after(SITUATIONS["w0"], event).pending == ()


def test_a_placed_task_has_until_our_own_deadline_to_start():
    job = after(SITUATIONS["fz"], answered(TaskPlaced(task_arn())))

    placement = job.current_attempt.placement
    assert (placement.state, placement.task_arn) == (PlacementState.PLACED, task_arn())
    assert (placement.placed_at, placement.outcome) == (SOON, "RunTask placed it")
    assert job.wake_at == SOON + timedelta(seconds=LIMITS.provisioning_deadline_seconds)


def test_a_placed_task_that_nobody_wants_any_more_is_stopped_with_the_intent_saved_first():
    job = after(SITUATIONS["fx"], answered(TaskPlaced(task_arn())))

    assert job.current_attempt.intent == StopIntent(IntentKind.CANCEL, NOW, "cancel")
    assert job.pending == (Effect(EffectKind.STOP_TASK, task_arn=task_arn(), reason="Relaunch: cancel"),)


def test_of_several_tasks_of_one_launch_only_the_first_lives():
    job = after(SITUATIONS["fz"], answered(LaunchConflict((task_arn(1), task_arn(2)))))

    assert job.current_attempt.task_arn == task_arn(1)
    assert [(effect.kind, effect.task_arn) for effect in job.pending] == [(EffectKind.STOP_TASK, task_arn(2))]


def test_a_failed_placement_is_remembered_before_the_next_try_is_asked_for():
    job = after(SITUATIONS["fz"], answered(PlacementFailed(("RESOURCE:GPU", "ATTRIBUTE"))))

    remember, launch = job.pending
    assert remember.kind is EffectKind.REMEMBER_CAPACITY
    assert remember.offering == make_offering().key
    assert remember.until == SOON + timedelta(minutes=15)
    assert remember.reason == "ECS placed nothing: RESOURCE:GPU, ATTRIBUTE"
    assert launch == LAUNCH
    assert job.current_attempt.placement.state is PlacementState.CLOSED
    assert job.current_attempt.placement.outcome == remember.reason


def test_what_was_found_on_the_machines_is_said_in_the_timeline_only():
    failed = answered(PlacementFailed(("RESOURCE:GPU",), "GPU-1 has 1,024 MiB left"))

    decision = decide(SITUATIONS["fz"], failed, SOON, LIMITS)

    assert decision.timeline[0].detail == "ECS placed nothing: RESOURCE:GPU; GPU-1 has 1,024 MiB left"
    assert decision.job.current_attempt.placement.outcome == "ECS placed nothing: RESOURCE:GPU"


PORTS_TAKEN = "ECS placed nothing: RESOURCE:PORTS"


@pytest.mark.parametrize(
    ("devices", "reasons", "outcomes", "is_remembered"),
    [
        pytest.param((3,), ("RESOURCE:PORTS",), (), False, id="another-task-was-first"),
        pytest.param((3,), ("RESOURCE:PORTS", "RESOURCE:PORTS"), (PORTS_TAKEN,) * 2, False, id="for-the-third-time"),
        pytest.param((3,), ("RESOURCE:PORTS",), (PORTS_TAKEN,) * 3, True, id="once-too-often"),
        pytest.param((3,), ("RESOURCE:PORTS",), ("never sent",) * 3, False, id="other-tries-do-not-count"),
        pytest.param((3,), ("RESOURCE:PORTS", "RESOURCE:MEMORY"), (), True, id="it-is-more-than-the-device"),
        pytest.param((0, 1), ("RESOURCE:PORTS",), (), True, id="the-whole-machine"),
        pytest.param((), ("RESOURCE:PORTS",), (), True, id="a-port-of-its-own"),
    ],
)
def test_a_device_that_another_task_took_first_costs_the_offering_nothing_at_first(
    devices, reasons, outcomes, is_remembered
):
    closed = tuple(
        make_placement(number, state=PlacementState.CLOSED, outcome=outcome)
        for number, outcome in enumerate(outcomes, start=2)
    )
    attempt = make_attempt(placement=make_placement(neuron_devices=devices), closed_placements=closed)

    job = after(replace(SITUATIONS["fz"], attempt=attempt), answered(PlacementFailed(reasons)))

    assert [effect.kind for effect in job.pending[:-1]] == [EffectKind.REMEMBER_CAPACITY] * is_remembered
    assert job.pending[-1] == LAUNCH


@pytest.mark.parametrize(
    ("outcome", "delays"),
    [
        pytest.param(LaunchDeferred("ThrottlingException: Rate exceeded"), range(30, 31), id="not-now"),
        pytest.param(LaunchDeferred("Rate exceeded", waiting=0), range(15, 46), id="throttled-alone"),
        pytest.param(
            LaunchDeferred("Rate exceeded", waiting=10_000), range(250, 751), id="throttled-with-ten-thousand"
        ),
        pytest.param(LaunchDeferred("Rate exceeded", waiting=10**6), range(900, 901), id="throttled-with-a-million"),
        pytest.param(LaunchUncertain("no answer to RunTask"), range(30, 31), id="no-answer-for-a-minute"),
    ],
)
def test_the_same_try_is_sent_again_later_and_the_job_says_why(outcome, delays):
    job = after(SITUATIONS["fz"], answered(outcome))

    assert job.current_attempt == SITUATIONS["fz"].current_attempt
    (launch,) = job.pending
    delay_seconds = launch.delay_seconds
    assert launch == Effect(EffectKind.REQUEST_LAUNCH, delay_seconds=delay_seconds)
    assert delay_seconds in delays
    assert job.reason == outcome.reason
    assert job.wake_at is not None
    assert job.wake_at > SOON + timedelta(seconds=delay_seconds)

    assert after(job, answered(TaskPlaced(task_arn()))).reason == ""


def test_who_was_refused_together_does_not_come_back_together():
    # They would all be refused again, at the same moment, while the quota is free in between.
    refused = answered(LaunchDeferred("Rate exceeded", waiting=2_000))
    jobs = [after(replace(SITUATIONS["fz"], job_id=f"resnet-{number}"), refused) for number in range(500)]

    delays = [job.pending[0].delay_seconds for job in jobs]
    assert (min(delays), max(delays)) == (50, 149)
    assert max(Counter(delays).values()) < 20


def test_a_job_that_is_refused_again_and_again_does_not_keep_its_place_in_the_round():
    refused = answered(LaunchDeferred("Rate exceeded", waiting=2_000))
    job = SITUATIONS["fz"]

    assert len({after(replace(job, version=version), refused).pending[0].delay_seconds for version in range(20)}) > 10


@pytest.mark.parametrize(
    ("age_seconds", "delay_seconds"), [(0, 5), (10, 5), (60, 30), (61, 30), (400, 200), (2_900, 300)]
)
def test_a_launch_that_goes_unanswered_is_asked_for_ever_more_seldom(age_seconds, delay_seconds):
    # Else every message that SQS delivers twice would leave one more chain of launch requests behind.
    job = after(SITUATIONS["fz"], answered(LaunchUncertain("-")), now=NOW + timedelta(seconds=age_seconds))

    assert job.pending == (Effect(EffectKind.REQUEST_LAUNCH, delay_seconds=delay_seconds),)


def test_a_refused_launch_fails_the_job_in_ecs_own_words():
    job = after(SITUATIONS["fz"], answered(LaunchRefused("ClientException: No such capacity provider")))

    assert job.reason == "ECS refuses the launch: ClientException: No such capacity provider"
    assert job.pending == (ADMIT,)


def test_a_try_that_was_never_sent_is_closed_and_costs_the_offering_nothing():
    job = after(SITUATIONS["fz"], PlacementExpired(1, 1))

    assert job.pending == (LAUNCH,)
    assert job.current_attempt.placement.outcome == "never sent"


def test_cancelling_while_runtask_may_be_under_way_writes_the_intent_down_and_looks_for_the_task():
    job = after(SITUATIONS["fz"], CancelAsked("not needed"))

    assert (job.cancel_requested, job.reason) == ("not needed", "not needed")
    assert job.current_attempt.intent == StopIntent(IntentKind.CANCEL, SOON, "not needed")
    assert job.pending == (LAUNCH,)


def test_cancelling_a_waiting_job_ends_it_at_once():
    job = after(SITUATIONS["wr"], CancelAsked("not needed"))

    assert (job.state, job.reason, job.pending) == (JobState.CANCELLED, "not needed", (ADMIT,))
    assert after(SITUATIONS["w0"], CancelAsked("not needed")).pending == ()


def test_an_image_that_arrives_lets_its_job_go_on():
    found = FoundImage("sha256:5e07", ("linux/arm64",))
    job = after(SITUATIONS["wi"], ImageArrived("trainer", "5e07", found))

    assert job.waiting is not None
    assert job.waiting.reason is WaitReason.LAUNCH
    assert job.pending == (LAUNCH,)
    assert job.reason == "image trainer:5e07 is there; main runs trainer:5e07 (sha256:5e07) for linux/arm64"
    assert job.images == {"main": "111122223333.dkr.ecr.us-east-1.amazonaws.com/trainer@sha256:5e07"}
    assert [each.platforms for each in job.revision.containers] == [("linux/arm64",)]


@pytest.mark.parametrize(
    ("until", "wakes_at"),
    [
        pytest.param(SOON + timedelta(minutes=25), SOON + IMAGE_POLL_INTERVAL, id="looks-again"),
        pytest.param(SOON + timedelta(seconds=30), SOON + timedelta(seconds=30), id="not-beyond-its-limit"),
        pytest.param(None, SOON + IMAGE_POLL_INTERVAL, id="without-a-limit"),
    ],
)
def test_a_wait_for_an_image_is_looked_at_again_in_case_its_event_got_lost(until, wakes_at):
    job = make_job(waiting=Waiting(WaitReason.IMAGE, NOW, "waiting for image trainer:5e07", until))

    decision = decide(job, TimePassed(), SOON, LIMITS)

    assert decision.job.wake_at == wakes_at
    assert decision.timeline == ()


def test_an_image_that_does_not_come_in_time_fails_the_job():
    job = make_job(waiting=Waiting(WaitReason.IMAGE, NOW, "waiting for image trainer:5e07", SOON))

    decision = decide(job, TimePassed(), SOON, LIMITS)

    assert (decision.job.state, decision.job.ended_at) == (JobState.FAILED, SOON)
    assert decision.job.reason == "waiting for image trainer:5e07: it did not come until 09:27:53 UTC"
    assert decision.timeline[0].event == "no image"


@pytest.mark.parametrize(("situation", "minutes"), [("w0", 5), ("wc", 5), ("wb", 5), ("ws", 15)], ids=str)
def test_waiting_jobs_are_launched_when_they_are_woken(situation, minutes):
    decision = decide(SITUATIONS[situation], TimePassed(), SOON, LIMITS)

    assert decision.job.pending == (LAUNCH,)
    assert decision.job.wake_at == SOON + timedelta(minutes=minutes)
    assert decision.job.waiting == SITUATIONS[situation].waiting
    assert decision.timeline == ()


def test_a_frozen_try_that_nobody_answered_is_sent_again():
    assert after(SITUATIONS["fz"], TimePassed()).pending == (LAUNCH,)


def provisioning(**fields) -> Job:
    placed = make_placement(state=PlacementState.PLACED, task_arn=task_arn(), placed_at=NOW + timedelta(minutes=30))
    return replace(SITUATIONS["fz"], attempt=make_attempt(placement=placed, **fields))


@pytest.mark.parametrize(
    ("attempt", "minutes", "kind"),
    [
        pytest.param({}, 8, IntentKind.PLACEMENT_WITHDRAWN, id="without-a-machine"),
        pytest.param(
            {"container_instance_arn": "c", "task_status": "PENDING"},
            30,
            IntentKind.START_WITHDRAWN,
            id="while-the-image-is-pulled",
        ),
    ],
)
def test_a_task_that_does_not_start_is_withdrawn_after_its_deadline_and_not_before(attempt, minutes, kind):
    job, placed_at = provisioning(**attempt), NOW + timedelta(minutes=30)
    deadline = placed_at + timedelta(minutes=minutes)

    early = decide(job, TimePassed(), deadline - timedelta(seconds=1), LIMITS)
    late = decide(job, TimePassed(), deadline, LIMITS)

    assert (early.job.state, early.job.wake_at, early.timeline) == (JobState.LAUNCHING, deadline, ())
    assert late.job.state is JobState.STOPPING
    assert late.job.current_attempt.intent is not None
    assert late.job.current_attempt.intent.kind is kind
    assert late.timeline[0].event == "start deadline"
    assert [effect.kind for effect in late.job.pending] == [EffectKind.STOP_TASK]


def test_the_reason_of_a_withdrawal_says_how_long_it_was_waited_for():
    placed = make_placement(state=PlacementState.PLACED, task_arn=task_arn())
    job = replace(SITUATIONS["fz"], attempt=make_attempt(placement=placed))

    reason = after(job, TimePassed(), now=NOW + timedelta(minutes=9)).reason

    assert reason == "not started within 0:08:00; ECS says nothing"


def test_a_job_out_of_time_is_not_launched_again():
    job = replace(SITUATIONS["wr"], run_seconds=timedelta(hours=48).total_seconds())

    decision = decide(job, chosen(), SOON, LIMITS)

    assert decision.job.state is JobState.TIMED_OUT
    assert not decision.take_slot
    assert decision.job.reason == "its tasks have run for max_runtime, 2 days, 0:00:00"


def test_news_of_an_offering_bought_on_demand_is_written_as_such():
    entry = decide(
        SITUATIONS["w0"],
        OfferingChosen(make_offering(purchase=PurchaseOption.ON_DEMAND), make_selection(), None),
        SOON,
        LIMITS,
    ).timeline[0]

    assert entry.detail == "g5.xlarge on-demand by g5-xlarge-on-demand at $1.0000/h"
    assert entry.attempt_number == 1


def test_a_running_attempt_is_never_taken_for_a_waiting_one():
    job = make_job(state=JobState.LAUNCHING, attempt=make_running_attempt())

    assert decide(job, chosen(), SOON, LIMITS).is_ignored
