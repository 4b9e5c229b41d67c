from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import (
    NOW,
    make_attempt,
    make_failed_placement,
    make_job,
    make_offering,
    make_placement,
    make_running_attempt,
    task_id,
)
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import IntentKind, PlacementState, StopIntent
from relaunch.core.jobs.effects import RememberCapacity, RequestLaunch, StopTask
from relaunch.core.jobs.job import Job, claimed_machines
from relaunch.core.jobs.state import JobState, Refusal, RefusedCall, WaitReason
from relaunch.core.launches.launch import LaunchConflict, LaunchDeferred, LaunchRefused, LaunchUncertain, TaskPlaced
from relaunch.core.lifecycle.events import CancelAsked, PlacementExpired, TimePassed
from relaunch.core.lifecycle.refusal_waits import PROBES_AFTER
from unit.core.lifecycle.steps import ADMIT, LAUNCH, SOON, after, chosen, decided
from unit.core.lifecycle.table_matrix import SITUATIONS, answered


def test_a_placed_task_has_until_our_own_deadline_to_start():
    job = after(SITUATIONS["fz"], answered(TaskPlaced(task_id())))

    placement = job.current_attempt.placement
    assert (placement.state, placement.task_id) == (PlacementState.PLACED, task_id())
    assert (placement.placed_at, placement.outcome) == (SOON, "the cluster placed it")
    assert job.wake_at == SOON + timedelta(minutes=15)


def test_a_task_whose_answer_was_lost_is_placed_since_the_target_has_it():
    job = after(SITUATIONS["fz"], answered(TaskPlaced(task_id(), since=NOW)), now=SOON)

    assert job.current_attempt.placement.placed_at == NOW
    assert job.wake_at == NOW + timedelta(minutes=15)


def test_a_placed_task_that_nobody_wants_any_more_is_stopped_with_the_intent_saved_first():
    job = after(SITUATIONS["fx"], answered(TaskPlaced(task_id())))

    assert job.current_attempt.intent == StopIntent(IntentKind.CANCEL, NOW, "cancel")
    assert job.pending == (StopTask(task_id(), "Relaunch: cancel"),)


def test_of_several_tasks_of_one_launch_only_the_first_lives():
    job = after(SITUATIONS["fz"], answered(LaunchConflict((task_id(1), task_id(2)))))

    assert job.current_attempt.task_id == task_id(1)
    assert [(type(effect), effect.task_id) for effect in job.pending] == [(StopTask, task_id(2))]


def test_a_failed_placement_is_remembered_before_the_next_try_is_asked_for():
    job = after(SITUATIONS["fz"], answered(make_failed_placement("RESOURCE:GPU", "ATTRIBUTE")))

    remember, launch = job.pending
    assert isinstance(remember, RememberCapacity)
    assert remember.offering == make_offering().key
    assert remember.until == SOON + timedelta(minutes=30)
    assert remember.reason == "the cluster placed nothing: RESOURCE:GPU, ATTRIBUTE"
    assert launch == LAUNCH
    assert job.current_attempt.placement.state is PlacementState.CLOSED
    assert job.current_attempt.placement.outcome == remember.reason


def test_what_was_found_on_the_machines_is_said_in_the_timeline_only():
    failed = answered(make_failed_placement("RESOURCE:GPU", detail="GPU-1 has 1,024 MiB left"))

    decision = decided(SITUATIONS["fz"], failed)

    assert decision.timeline[0].detail == "the cluster placed nothing: RESOURCE:GPU; GPU-1 has 1,024 MiB left"
    assert decision.job.current_attempt.placement.outcome == "the cluster placed nothing: RESOURCE:GPU"


PORTS_TAKEN = "the cluster placed nothing: RESOURCE:PORTS"


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

    job = after(replace(SITUATIONS["fz"], attempt=attempt), answered(make_failed_placement(*reasons)))

    assert [type(effect) for effect in job.pending[:-1]] == [RememberCapacity] * is_remembered
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

    attempt = SITUATIONS["fz"].current_attempt
    assert job.current_attempt == replace(attempt, placement=replace(attempt.placement, senders=2))
    (launch,) = job.pending
    delay_seconds = launch.delay_seconds
    assert launch == RequestLaunch(delay_seconds)
    assert isinstance(delay_seconds, int), "SQS takes whole seconds only"
    assert delay_seconds in delays
    assert job.reason == outcome.reason
    assert job.wake_at is not None
    assert job.wake_at > SOON + timedelta(seconds=delay_seconds)

    assert after(job, answered(TaskPlaced(task_id()))).reason == ""


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

    assert job.pending == (RequestLaunch(delay_seconds),)


@pytest.mark.parametrize(("age_seconds", "delay_seconds"), [(0, 30), (59, 30), (400, 200), (2_900, 300)])
def test_a_launch_that_ecs_defers_is_not_asked_for_again_at_once(age_seconds, delay_seconds):
    job = after(SITUATIONS["fz"], answered(LaunchDeferred("-")), now=NOW + timedelta(seconds=age_seconds))

    assert job.pending == (RequestLaunch(delay_seconds),)


def test_a_refused_launch_fails_the_job_in_ecs_own_words():
    job = after(SITUATIONS["fz"], answered(LaunchRefused("ClientException: No such container")))

    assert (job.reason, job.pending) == ("the cluster refuses the launch: ClientException: No such container", (ADMIT,))


UNKNOWN_PROVIDER = LaunchRefused("InvalidParameterException: capacity provider g5 is odd", is_about_provider=True)


def test_a_refusal_of_a_capacity_provider_ends_no_job_but_tries_another_offering():
    job = after(SITUATIONS["fz"], answered(UNKNOWN_PROVIDER))

    assert job.state is JobState.WAITING
    assert [type(effect) for effect in job.pending] == [RememberCapacity, RequestLaunch]
    assert job.current_attempt.placement.state is PlacementState.CLOSED
    assert job.refusals == {RefusedCall.LAUNCH: Refusal(SOON, SOON)}


def test_a_refusal_of_a_capacity_provider_is_waited_for_as_long_as_others():
    for hours, started_at, said in ((23.8, None, ""), (24, None, "24h"), (24, SOON, ""), (336, SOON, "336h")):
        since = {RefusedCall.LAUNCH: Refusal(SOON - timedelta(hours=hours), SOON - timedelta(hours=4))}
        totals = replace(SITUATIONS["fz"].totals, first_started_at=started_at)
        entry = decided(replace(SITUATIONS["fz"], refusals=since, totals=totals), answered(UNKNOWN_PROVIDER)).timeline[
            0
        ]
        assert (entry.event, entry.state is JobState.FAILED) == (
            ("refused for too long", True) if said else ("placement refused", False)
        )
        assert entry.detail.startswith(f"refused for {said}: the cluster refuses" if said else "the cluster refuses")


def test_a_job_that_is_to_be_cancelled_tries_no_other_offering():
    cancelled = replace(SITUATIONS["fz"], cancel_requested="not needed")
    assert after(cancelled, answered(UNKNOWN_PROVIDER)).state is JobState.CANCELLED


def test_a_try_that_was_never_sent_is_closed_and_costs_the_offering_nothing():
    job = after(SITUATIONS["fz"], PlacementExpired(1, 1))

    assert job.pending == (LAUNCH,)
    assert job.current_attempt.placement.outcome == "never sent"


def sent_on_a_machine(job: Job) -> Job:
    """Return the job with a placement on a machine of its own, on which a refusal is not the last word."""
    placement = replace(job.current_attempt.placement, machine_id="m-1")
    on_machine = replace(job, machine_id="m-1", attempt=replace(job.current_attempt, placement=placement))
    return after(on_machine, answered(LaunchDeferred("AccessDeniedException", is_refused=True)))


def test_after_a_refusal_that_was_not_certain_the_next_machine_is_a_probe():
    refused = sent_on_a_machine(SITUATIONS["fz"])
    assert refused.state is JobState.LAUNCHING

    job = after(refused, PlacementExpired(1, 1))

    assert (job.state, job.waiting.reason, job.machine_id) == (JobState.WAITING, WaitReason.REFUSED, "")
    assert job.wake_at == SOON + PROBES_AFTER[0]
    assert job.reason == "the cluster refused the launch, and it was given up: never sent"
    assert job.current_attempt.placement.outcome == "never sent"


def test_the_probe_that_was_due_before_an_uncertain_placement_was_given_up_is_made_then():
    refused = sent_on_a_machine(SITUATIONS["fz"])
    late = SOON + PROBES_AFTER[0] + timedelta(minutes=6)

    assert after(refused, PlacementExpired(1, 1), now=late).wake_at == late


def test_a_placement_whose_revision_is_gone_says_nothing_of_its_machine():
    placed = sent_on_a_machine(SITUATIONS["fz"])
    gone = PlacementExpired(1, 1, "the derived revision was deregistered", keeps_machine=True)

    job = after(placed, gone)

    assert (job.state, job.waiting.reason, job.machine_id) == (JobState.WAITING, WaitReason.LAUNCH, "m-1")
    assert job.pending == (LAUNCH,)
    cancelled = after(replace(placed, cancel_requested="not needed"), gone)
    assert (cancelled.state, claimed_machines(cancelled)) == (JobState.CANCELLED, frozenset())


def test_a_refusal_that_comes_while_the_launch_is_requested_already_is_not_forgotten():
    # Two functions send the placement: RunTask is throttled for one, which asks for a request; the other is refused.
    throttled = after(SITUATIONS["fz"], answered(LaunchDeferred("Rate exceeded", waiting=10_000)))

    decision = decided(throttled, answered(LaunchDeferred("AccessDeniedException", is_refused=True)), SOON)

    assert not decision.is_ignored
    assert (decision.job.wake_at, decision.job.pending) == (throttled.wake_at, throttled.pending)
    assert decision.job.refusals == {RefusedCall.LAUNCH: Refusal(SOON, SOON)}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            {"refusals": {RefusedCall.LAUNCH: Refusal(NOW - timedelta(1), NOW - timedelta(1))}},
            id="of-an-earlier-placement",
        ),
        pytest.param({"cancel_requested": "not needed"}, id="cancelled"),
    ],
)
def test_a_refusal_that_does_not_matter_any_more_delays_nothing(change):
    job = after(replace(sent_on_a_machine(SITUATIONS["fz"]), **change), PlacementExpired(1, 1))

    if "cancel_requested" in change:
        assert job.state is JobState.CANCELLED
    else:
        assert (job.waiting.reason, job.pending) == (WaitReason.LAUNCH, (LAUNCH,))


def test_cancelling_while_runtask_may_be_under_way_writes_the_intent_down_and_looks_for_the_task():
    job = after(SITUATIONS["fz"], CancelAsked("not needed"))

    assert (job.cancel_requested, job.reason) == ("not needed", "not needed")
    assert job.current_attempt.intent == StopIntent(IntentKind.CANCEL, SOON, "not needed")
    assert job.pending == (LAUNCH,)


def test_cancelling_a_waiting_job_ends_it_at_once():
    job = after(SITUATIONS["wr"], CancelAsked("not needed"))

    assert (job.state, job.reason, job.pending) == (JobState.CANCELLED, "not needed", (ADMIT,))
    assert after(SITUATIONS["w0"], CancelAsked("not needed")).pending == ()


def test_a_pending_placement_without_a_response_is_sent_again():
    assert after(SITUATIONS["fz"], TimePassed()).pending == (LAUNCH,)


def provisioning(**fields) -> Job:
    placed = make_placement(state=PlacementState.PLACED, task_id=task_id(), placed_at=NOW + timedelta(minutes=30))
    return replace(SITUATIONS["fz"], attempt=make_attempt(placement=placed, **fields))


@pytest.mark.parametrize(
    ("attempt", "minutes", "kind"),
    [
        pytest.param({}, 15, IntentKind.PLACEMENT_WITHDRAWN, id="without-a-machine"),
        pytest.param(
            {"node": "c", "task_status": "PENDING"},
            30,
            IntentKind.START_WITHDRAWN,
            id="while-the-image-is-pulled",
        ),
    ],
)
def test_a_task_that_does_not_start_is_withdrawn_after_its_deadline_and_not_before(attempt, minutes, kind):
    job, placed_at = provisioning(**attempt), NOW + timedelta(minutes=30)
    deadline = placed_at + timedelta(minutes=minutes)

    early = decided(job, TimePassed(), deadline - timedelta(seconds=1))
    late = decided(job, TimePassed(), deadline)

    assert (early.job.state, early.job.wake_at, early.timeline) == (JobState.LAUNCHING, deadline, ())
    assert late.job.state is JobState.STOPPING
    assert late.job.current_attempt.intent == StopIntent(kind, deadline, late.job.reason)
    assert late.timeline[0].event == "start deadline"
    assert [type(effect) for effect in late.job.pending] == [StopTask]


def test_the_reason_of_a_withdrawal_says_how_long_it_was_waited_for():
    placed = make_placement(state=PlacementState.PLACED, task_id=task_id())
    job = replace(SITUATIONS["fz"], attempt=make_attempt(placement=placed))

    reason = after(job, TimePassed(), now=NOW + timedelta(minutes=16)).reason

    assert reason == "not started within 0:15:00; the cluster says nothing"


def test_a_job_out_of_time_is_not_launched_again():
    job = replace(
        SITUATIONS["wr"], totals=replace(SITUATIONS["wr"].totals, run_seconds=timedelta(hours=48).total_seconds())
    )

    decision = decided(job, chosen())

    assert decision.job.state is JobState.TIMED_OUT
    assert decision.take_slot_limits is None
    assert decision.job.reason == "its tasks have run for max_runtime, 48h"


def test_an_on_demand_offering_is_shown_as_such():
    entry = decided(SITUATIONS["w0"], chosen(purchase=PurchaseOption.ON_DEMAND)).timeline[0]

    assert entry.detail == "g5.xlarge on-demand by g5-xlarge-on-demand at $1.0000/h"
    assert entry.attempt_number == 1


def test_a_cluster_without_instance_types_shows_neither_machine_nor_price():
    definition = replace(SITUATIONS["w0"].definition, target=Target.ACK)
    entry = decided(replace(SITUATIONS["w0"], definition=definition), chosen()).timeline[0]

    assert entry.detail == "g5.xlarge spot"


def test_an_unknown_price_is_shown_as_such():
    entry = decided(SITUATIONS["w0"], chosen(price_usd_per_hour=None, on_demand_usd_per_hour=None)).timeline[0]

    assert entry.detail == "g5.xlarge spot by g5-xlarge-spot at an unknown price"


def test_an_upper_limit_of_a_spot_price_is_shown_as_such():
    entry = decided(SITUATIONS["w0"], chosen(price_usd_per_hour=None, on_demand_usd_per_hour=1.006)).timeline[0]

    assert entry.detail == "g5.xlarge spot by g5-xlarge-spot at up to $1.0060/h"


def test_a_running_attempt_is_never_taken_for_a_waiting_one():
    job = make_job(state=JobState.LAUNCHING, attempt=make_running_attempt())

    assert decided(job, chosen()).is_ignored
