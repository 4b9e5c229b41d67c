from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import (
    NOW,
    make_attempt,
    make_failed_placement,
    make_instance_type,
    make_offering,
    make_placement,
    make_running_attempt,
    make_selection,
    task_id,
)
from relaunch.core.jobs.attempt import Placement, PlacementState, Stop, StopKind
from relaunch.core.jobs.effects import RequestLaunch
from relaunch.core.jobs.progress import SavedCheckpoint
from relaunch.core.launches.derived_revision import PreparedRevision
from relaunch.core.launches.launch import LaunchDeferred, LaunchUncertain
from relaunch.core.lifecycle.events import LaunchAnswered, OfferingChosen
from unit.core.lifecycle.steps import SOON, after, chosen, decided
from unit.core.lifecycle.table_matrix import HOST_LOST, SITUATIONS, answered, seen, with_attempt


def test_the_next_attempt_begins_with_what_the_one_before_kept():
    attempt = make_running_attempt(stop=Stop(StopKind.INTERRUPTION, NOW + timedelta(minutes=5)))
    before = replace(SITUATIONS["wr"], attempt=attempt, progress=replace(SITUATIONS["wr"].progress, kept_seconds=60.0))
    saved = SavedCheckpoint("s3://c/", 7, attempt.number, NOW + timedelta(minutes=2))

    assert after(before, replace(chosen(), newest=saved)).progress.kept_seconds == 180.0
    assert after(before, chosen()).progress.kept_seconds == 0.0, "what no checkpoint keeps is lost"


def test_the_step_that_a_retry_begins_with_is_kept_while_it_has_a_checkpoint_of_its_own():
    of_other, own = "s3://c/other/attempt-3/step-0000600/", "s3://c/resnet/attempt-1/step-0000700/"
    saved = SavedCheckpoint(own, 700, 1, NOW)

    begun = after(SITUATIONS["wr"], replace(chosen(), resume_uri=of_other))
    assert begun.progress.first_step == 600
    again = replace(SITUATIONS["wr"], progress=replace(SITUATIONS["wr"].progress, first_step=600))
    assert after(again, replace(chosen(), resume_uri=own, newest=saved)).progress.first_step == 600
    assert after(again, chosen()).progress.first_step == 0, "it begins from the beginning"


def test_the_first_launch_freezes_everything_the_request_is_made_of():
    decision = decided(SITUATIONS["w0"], chosen("s3://c/resnet/x/attempt-1/"))

    attempt = decision.job.current_attempt
    assert (attempt.number, attempt.placement.number) == (1, 1)
    assert attempt.placement.state is PlacementState.PENDING
    assert attempt.placement.requested_at == SOON
    assert attempt.placement.capacity_provider == "g5-xlarge-spot"
    assert attempt.placement.resume_uri == "s3://c/resnet/x/attempt-1/"
    assert attempt.task_id is None
    assert decision.selection is not None
    assert decision.selected_at == SOON
    assert decision.job.pending == ()
    assert decision.timeline[0].detail == (
        "g5.xlarge spot by g5-xlarge-spot at $0.4000/h, resuming from s3://c/resnet/x/attempt-1/"
    )


def test_everything_that_was_prepared_is_saved_with_the_placement():
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


def test_the_prices_of_the_zones_are_saved_with_the_placement_until_it_is_closed():
    prices = {"us-east-1a": 0.30, "us-east-1b": 0.40}

    first = after(SITUATIONS["w0"], chosen(usd_per_hour_by_zone=prices))
    failed = after(first, LaunchAnswered(1, 1, make_failed_placement("RESOURCE:GPU")))
    second = after(failed, chosen(usd_per_hour_by_zone=prices, on_demand_usd_per_hour=None)).current_attempt

    placement = first.current_attempt.placement
    assert (placement.usd_per_hour_by_zone, placement.limit_usd_per_hour) == (prices, 1.0)
    assert (second.placement.usd_per_hour_by_zone, second.placement.limit_usd_per_hour) == (prices, 0.0)
    assert [each.usd_per_hour_by_zone for each in second.closed_placements] == [{}]


def test_a_neuron_job_is_told_its_devices():
    chosen_devices = OfferingChosen(make_offering(), make_selection(), None, PreparedRevision(None, (3,)))

    entry = decided(SITUATIONS["w0"], chosen_devices).timeline[0]

    assert entry.detail == "g5.xlarge spot by g5-xlarge-spot at $0.4000/h, Neuron device 3"


def test_an_offering_with_neither_provider_nor_price_is_saved_without():
    bare = chosen(capacity_provider=None, price_usd_per_hour=None, on_demand_usd_per_hour=None)

    placement = after(SITUATIONS["w0"], bare).current_attempt.placement

    assert (placement.capacity_provider, placement.price_usd_per_hour) == ("", 0.0)
    assert not placement.is_price_limit


def test_a_launch_ends_what_was_said_of_the_wait():
    assert after(replace(SITUATIONS["wc"], reason="nothing is available right now"), chosen()).reason == ""


def test_spot_without_a_known_price_is_charged_at_most_the_on_demand_price():
    job = after(SITUATIONS["w0"], chosen(price_usd_per_hour=None, on_demand_usd_per_hour=1.0))

    placement = job.current_attempt.placement
    assert (placement.price_usd_per_hour, placement.is_price_limit) == (1.0, True)
    assert not after(SITUATIONS["w0"], chosen()).current_attempt.placement.is_price_limit


def test_an_attempt_that_never_started_keeps_its_number_and_its_closed_tries():
    earlier = make_attempt(
        placement=make_placement(3, state=PlacementState.CLOSED, task_id=task_id(3)),
        closed_placements=(make_placement(2, state=PlacementState.CLOSED, task_id=task_id(2)),),
        stop=Stop(StopKind.NO_CAPACITY, NOW),
    )

    attempt = after(replace(SITUATIONS["w0"], attempt=earlier), chosen()).current_attempt

    assert (attempt.number, attempt.placement.number) == (1, 4)
    assert [each.task_id for each in attempt.closed_placements] == [task_id(2), task_id(3)]
    assert attempt.stop is None
    assert attempt.task_version == 0


def test_an_attempt_that_started_uses_its_number_up():
    attempt = after(SITUATIONS["wr"], chosen()).current_attempt

    assert (attempt.number, attempt.placement.number) == (2, 1)
    assert attempt.closed_placements == ()
    assert attempt.started_at is None
    assert attempt.instance_id is None


def test_an_attempt_whose_task_was_lost_uses_its_number_up_for_it_may_have_started():
    tried = make_placement(state=PlacementState.CLOSED, task_id=task_id(), is_lost=True)
    lost = make_attempt(placement=tried, stop=Stop(StopKind.HOST_LOST, NOW))

    attempt = after(replace(SITUATIONS["w0"], attempt=lost), chosen()).current_attempt

    assert (attempt.number, attempt.placement.number) == (2, 1)
    assert attempt.closed_placements == ()


@pytest.mark.parametrize(("may_have_run", "number"), [(True, 2), (False, 1)])
def test_an_attempt_of_which_nobody_knows_whether_it_ran_uses_its_number_up(may_have_run, number):
    stopped = seen("STOPPED", **HOST_LOST, container_exit_codes={})
    gone = replace(stopped, observation=replace(stopped.observation, may_have_run=may_have_run))
    job = after(SITUATIONS["pl"], gone)

    # Another training under its prefix would write over what it wrote.
    assert after(job, chosen()).current_attempt.number == number


def test_only_the_latest_tries_are_kept_and_their_numbers_go_on():
    job = SITUATIONS["w0"]
    for _ in range(12):
        job = after(job, chosen())
        number = job.current_attempt.placement.number
        job = after(job, LaunchAnswered(1, number, make_failed_placement("RESOURCE:GPU")))

    assert job.current_attempt.placement.number == 12
    assert [each.number for each in after(job, chosen()).current_attempt.closed_placements] == list(range(5, 13))


@pytest.mark.parametrize(
    ("with_task", "kept"),
    [
        pytest.param((1, 2), [1, 2, 5, 6, 7, 8, 9, 10], id="old-tries-that-had-a-task"),
        pytest.param(range(1, 10), range(3, 11), id="all-but-the-last-had-a-task"),
        pytest.param((*range(1, 9), 10), [*range(2, 9), 10], id="all-but-the-last-but-one-had-a-task"),
        pytest.param(range(1, 11), range(3, 11), id="all-had-a-task"),
    ],
)
def test_placements_without_a_task_are_dropped_first_because_a_late_event_needs_its_placement(with_task, kept):
    tries = [
        make_placement(number, state=PlacementState.CLOSED, task_id=task_id(number) if number in with_task else None)
        for number in range(1, 11)
    ]
    earlier = make_attempt(placement=tries[-1], closed_placements=tuple(tries[:-1]))

    attempt = after(replace(SITUATIONS["w0"], attempt=earlier), chosen()).current_attempt

    assert [each.number for each in attempt.closed_placements] == list(kept)


@pytest.mark.parametrize("outcome", [LaunchUncertain("no answer"), LaunchDeferred("ThrottlingException")])
def test_copies_of_a_launch_request_lead_to_one_more_request_together(outcome):
    old = with_attempt("fz", placement=make_placement(requested_at=SOON - timedelta(minutes=4)))
    first = decided(replace(old, wake_at=SOON), answered(outcome))
    assert [type(effect) for effect in first.job.pending] == [RequestLaunch]

    second = decided(replace(first.job, pending=()), answered(outcome))

    assert second.is_ignored
    assert second.job.pending == ()
    due = decided(replace(first.job, pending=()), answered(outcome), first.job.wake_at)
    assert [type(effect) for effect in due.job.pending] == [RequestLaunch]
