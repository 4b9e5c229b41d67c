from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes.builders import NOW, make_capacity_failure, make_offering_key
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.capacity_memory import (
    FORGOTTEN_AFTER,
    LONGEST,
    QUEUE_AVOIDED,
    SAME_EVENT,
    describe_key,
    forgotten_at,
    image_scope,
    placement_scope,
    purchase_scope,
    queued,
    quota_scope,
    remaining_failures,
    remember,
    reopened,
    sound,
    with_job_failures,
    zone_scope,
)
from relaunch.core.offerings.instance_types import AmiKind
from relaunch.core.offerings.offering import CapacityFailure, OfferingKey

SPOT = PurchaseOption.SPOT
IMAGE = image_scope(AmiKind.GPU)

HALF_HOUR = timedelta(minutes=30)


def failed(at: datetime = NOW, avoided_for: timedelta = HALF_HOUR) -> CapacityFailure:
    return make_capacity_failure(at=at, until=at + avoided_for)


def fail_in_a_row(count: int) -> CapacityFailure:
    """Fail each time a minute after the offering was let go."""
    memory = remember(None, failed())
    for _ in range(count - 1):
        memory = remember(memory, failed(memory.until + timedelta(minutes=1)))
    return memory


def test_the_first_failure_is_remembered_as_it_is():
    assert remember(None, failed()) == failed()


@pytest.mark.parametrize(("count", "hours"), [(1, 0.5), (2, 1), (3, 2), (4, 4), (5, 4), (12, 4)])
def test_failures_in_a_row_double_the_avoidance_up_to_four_hours(count, hours):
    memory = fail_in_a_row(count)

    assert memory.until - memory.at == timedelta(hours=hours)


@pytest.mark.parametrize(
    ("quiet", "consecutive_failures"),
    [
        pytest.param(timedelta(0), 3, id="none while nothing was quiet"),
        pytest.param(FORGOTTEN_AFTER - timedelta(seconds=1), 3, id="none just before its time"),
        pytest.param(FORGOTTEN_AFTER, 2, id="one"),
        pytest.param(3 * FORGOTTEN_AFTER, 0, id="all"),
        pytest.param(99 * FORGOTTEN_AFTER, 0, id="never more than there are"),
    ],
)
def test_each_period_without_a_failure_reduces_their_number_by_one(quiet, consecutive_failures):
    memory = fail_in_a_row(3)

    assert remaining_failures(memory, memory.until + quiet) == consecutive_failures


def test_after_a_long_quiet_time_a_failure_is_a_first_one_again():
    memory = fail_in_a_row(3)
    later = forgotten_at(memory)

    again = remember(memory, failed(later))

    assert (again.consecutive_failures, again.until) == (1, later + HALF_HOUR)


def test_while_it_is_avoided_nothing_is_forgotten():
    memory = fail_in_a_row(3)

    assert remaining_failures(memory, memory.at) == 3


def test_an_earlier_failure_that_is_told_late_counts_and_shortens_nothing():
    memory = failed(avoided_for=timedelta(hours=3))
    late = failed(NOW - timedelta(hours=1), timedelta(minutes=10))

    assert remember(memory, late) == replace(memory, consecutive_failures=2)


def test_a_failure_that_is_to_be_avoided_longer_than_the_longest_keeps_its_time():
    assert remember(fail_in_a_row(1), failed(NOW + HALF_HOUR, timedelta(hours=9))).until == NOW + timedelta(hours=9.5)


failures = st.builds(
    lambda minutes, avoided: failed(NOW + timedelta(minutes=minutes), timedelta(minutes=avoided)),
    st.integers(0, 60 * 24),
    st.integers(1, 60),
)


@given(st.lists(failures, min_size=1, max_size=12))
def test_whatever_comes_the_avoidance_never_gets_shorter_nor_longer_than_the_longest(story):
    memory = None
    for failure in story:
        before, memory = memory, remember(memory, failure)
        assert memory.until >= failure.until
        assert memory.until <= max(before.until if before else NOW, failure.at + LONGEST)
        assert before is None or memory.until >= before.until
        assert memory.consecutive_failures >= 1


long_failures = failures.map(lambda each: replace(each, until=each.until + SAME_EVENT))


@given(long_failures, st.integers(-4, 4))
def test_the_events_of_one_failure_may_come_in_any_order_and_often(failure, minutes):
    other = replace(failure, at=failure.at + timedelta(minutes=minutes), until=failure.until + timedelta(minutes=1))
    assert abs(other.at - failure.at) < SAME_EVENT

    told = remember(remember(failure, other), failure)

    assert (told.consecutive_failures, told.until) == (1, other.until)
    assert (told.consecutive_failures, told.until) == (
        remember(other, failure).consecutive_failures,
        remember(other, failure).until,
    )


def test_what_fails_as_soon_as_a_short_avoidance_is_over_is_avoided_twice_as_long():
    short = timedelta(minutes=3)
    first = failed(NOW, short)

    again = remember(first, failed(first.until, short))

    assert (again.consecutive_failures, again.until) == (2, first.until + 2 * short)
    assert remember(again, first) == again
    assert remember(again, failed(first.until, short)) == again


@pytest.mark.parametrize(
    "scope", [zone_scope("us-east-1a", SPOT), purchase_scope(SPOT), quota_scope("g5.xlarge", SPOT)]
)
def test_what_offerings_share_is_avoided_as_long_as_each_failure_says(scope):
    first = replace(failed(), offering=scope, vcpus=192)
    before_it_ends = replace(failed(first.until - timedelta(minutes=1)), offering=scope, vcpus=4)
    afterwards = replace(failed(before_it_ends.until), offering=scope, vcpus=48)

    both = remember(first, before_it_ends)

    assert both == before_it_ends == remember(before_it_ends, first)
    assert remember(both, first) == both
    assert remember(both, afterwards) == afterwards


def test_while_a_small_instance_has_no_room_in_a_quota_a_large_one_has_none():
    small = replace(failed(avoided_for=2 * HALF_HOUR), offering=quota_scope("g5.xlarge", SPOT), vcpus=4)
    large = replace(failed(NOW + timedelta(minutes=1)), offering=small.offering, vcpus=192)

    assert remember(small, large) == replace(large, until=small.until, vcpus=4)


def test_failures_are_of_one_event_until_five_minutes_lie_between_them():
    memory = fail_in_a_row(3)

    assert remember(memory, failed(memory.at + SAME_EVENT - timedelta(seconds=1))).consecutive_failures == 3
    assert remember(memory, failed(memory.at + SAME_EVENT)).consecutive_failures == 4


@pytest.mark.parametrize(("seconds", "is_remembered"), [(0, False), (539, False), (540, True)])
def test_what_failed_before_the_instance_registered_is_not_remembered_once_refuted(seconds, is_remembered):
    refuted = reopened(failed(NOW), NOW + timedelta(minutes=9))
    again = failed(NOW + timedelta(seconds=seconds))

    assert (remember(refuted, again) != refuted) == is_remembered


@pytest.mark.parametrize("minutes", [1, 4, 10])
def test_an_offering_that_fails_again_once_it_was_reopened_is_avoided_twice_as_long(minutes):
    memory = fail_in_a_row(2)
    reopened_at = memory.at + timedelta(minutes=1)
    open_again = reopened(memory, reopened_at)
    again = failed(memory.at + timedelta(minutes=minutes))

    assert (open_again.until, open_again.consecutive_failures) == (reopened_at, 2)
    assert remember(open_again, again) == replace(again, consecutive_failures=3, until=again.at + 4 * HALF_HOUR)


def test_launches_that_are_withdrawn_together_after_a_reopening_are_one_event():
    again = failed(NOW + timedelta(minutes=10))
    memory = remember(reopened(failed(NOW), NOW + timedelta(minutes=9)), again)

    assert remember(memory, failed(again.at + timedelta(minutes=1))).consecutive_failures == 2


def test_an_instance_that_arrives_late_after_each_failure_does_not_keep_the_avoidance_short():
    memory, avoided = None, []
    for turn in range(6):
        failure = failed(NOW + turn * timedelta(minutes=30))
        memory = remember(memory, failure)
        avoided.append(memory.until - failure.at)
        memory = reopened(memory, failure.at + timedelta(minutes=1))

    assert avoided == [HALF_HOUR, 2 * HALF_HOUR, 4 * HALF_HOUR, LONGEST, LONGEST, LONGEST]


def test_failures_before_a_reopening_are_forgotten_in_time():
    open_again = reopened(fail_in_a_row(3), NOW + timedelta(hours=9))
    later = forgotten_at(open_again)

    assert later == open_again.until + 3 * FORGOTTEN_AFTER
    assert remember(open_again, failed(later)) == failed(later)


@pytest.mark.parametrize("minutes", [-1, 0, 1])
def test_of_two_failures_for_an_offering_a_job_heeds_the_longer_avoidance(minutes):
    known, other = failed(NOW), replace(failed(NOW), offering=make_offering_key("g6.xlarge"))
    own = replace(known, reason="own", until=known.until + timedelta(minutes=minutes))

    assert with_job_failures({known.offering: known}, (own, other)) == {
        known.offering: own if minutes > 0 else known,
        other.offering: other,
    }


@pytest.fixture
def queue() -> CapacityFailure:
    return queued(make_capacity_failure(capacity_provider="g5", at=NOW + HALF_HOUR, until=NOW + 2 * HALF_HOUR))


def test_a_provider_whose_machines_run_other_tasks_is_a_queue_and_counts_as_no_failure(queue):
    assert queue.reason == "the machines of capacity provider g5 run other tasks"
    assert queue.until - queue.at == QUEUE_AVOIDED
    again = replace(queue, at=queue.until, until=queue.until + QUEUE_AVOIDED)
    assert remember(None, queue) == queue
    assert remember(remember(None, queue), again) == again

    failure = replace(failed(queue.at + timedelta(minutes=1)), capacity_provider="g5")
    assert remember(queue, failure) == failure


def test_a_queue_neither_shortens_what_failed_nor_forgets_it_nor_comes_back_once_a_machine_was_free(queue):
    long = replace(failed(NOW, timedelta(hours=4)), capacity_provider="g5", consecutive_failures=4)
    over = replace(long, until=queue.at)
    free = reopened(queue, queue.at + timedelta(minutes=1))

    assert remember(long, queue) == long
    assert remember(over, queue) == replace(queue, consecutive_failures=4)
    assert remember(free, queue) == free


def unready(at: datetime, offering: OfferingKey = IMAGE) -> CapacityFailure:
    until = at if offering == IMAGE else at + timedelta(minutes=3)
    return CapacityFailure(offering, "it never registered", at, until, is_unready=True)


def test_a_pool_whose_machines_do_not_become_ready_is_avoided_four_times_as_long_each_time():
    memory, avoided = None, []
    for _ in range(6):
        at = NOW if memory is None else memory.until + timedelta(minutes=5)
        memory = remember(memory, unready(at, make_offering_key()))
        avoided.append(int((memory.until - memory.at).total_seconds()) // 60)

    assert avoided == [3, 12, 48, 192, 240, 240]


def test_an_image_is_avoided_from_the_third_machine_on_for_four_hours_at_most():
    memory, avoided = None, []
    for _ in range(8):
        at = NOW if memory is None else memory.until + timedelta(minutes=5)
        memory = remember(memory, unready(at))
        avoided.append((memory.until - memory.at).total_seconds() / 3600)

    assert avoided == [0, 0, 0.25, 1, 4, 4, 4, 4]


def test_one_machine_of_an_image_counts_once_however_often_it_is_remembered():
    memory = remember(remember(None, unready(NOW)), replace(unready(NOW), machine_id="m-1"))

    for minutes in range(3):
        again = remember(memory, replace(unready(NOW + timedelta(minutes=minutes)), machine_id="m-1"))
        assert again == memory


def test_a_machine_counts_once_although_another_one_failed_in_between():
    memory = None
    for number, machine_id in enumerate(["m-1", "m-2", "m-1", "m-2", "m-1"]):
        memory = remember(memory, replace(unready(NOW + timedelta(minutes=number)), machine_id=machine_id))
    assert memory.consecutive_failures == 2
    assert memory.until == NOW + timedelta(minutes=1)

    third = remember(memory, replace(unready(NOW + timedelta(minutes=9)), machine_id="m-3"))
    assert (third.consecutive_failures, third.until) == (3, NOW + timedelta(minutes=24))


def test_machines_of_an_image_that_were_launched_before_it_was_avoided_do_not_extend_that():
    memory = None
    for seconds in range(10):
        memory = remember(memory, unready(NOW + timedelta(seconds=seconds)))

    assert memory.until == NOW + timedelta(minutes=15, seconds=2)


def test_a_machine_that_becomes_ready_ends_what_is_known_of_its_image():
    memory = None
    for _ in range(3):
        memory = remember(memory, unready(NOW))
    cleared = sound(memory, NOW)

    assert (cleared.until, forgotten_at(cleared)) == (NOW, NOW)
    after = remember(cleared, unready(NOW + timedelta(minutes=1)))
    assert (after.consecutive_failures, after.until) == (1, after.at)


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (OfferingKey("g5.xlarge", "us-east-1a", SPOT), "g5.xlarge spot us-east-1a"),
        (OfferingKey("g5.xlarge@group", None, SPOT), "g5.xlarge spot of capacity provider group"),
        (zone_scope("us-east-1a", SPOT), "all machines on spot in us-east-1a"),
        (purchase_scope(PurchaseOption.ON_DEMAND), "all machines on on-demand"),
        (
            quota_scope("g5.xlarge", SPOT),
            'all types of the quota "All G and VT Spot Instance Requests" (L-3819A6DF)',
        ),
        (quota_scope("p6-b200.48xlarge", SPOT), "all sizes of p6-b200 on spot"),
        (IMAGE, "all machines with the gpu image"),
        (placement_scope("arn:aws:ecs:a:1:task-definition/trainer:7"), "machines for tasks of arn:aws:ecs:a:1:task"),
    ],
)
def test_what_a_key_stands_for_is_said_in_words(key, words):
    assert describe_key(key).startswith(words)
