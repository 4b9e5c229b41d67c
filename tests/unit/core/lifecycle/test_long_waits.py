from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from fakes.builders import NOW, make_definition, make_job, make_running_attempt, make_running_job, make_selection
from relaunch.core.definitions.accelerator import PurchasePolicy
from relaunch.core.jobs.attempt import IntentKind
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import JobState, Waiting, WaitReason
from relaunch.core.lifecycle.decision import set_next_check
from relaunch.core.lifecycle.events import (
    CheckpointsUnreadable,
    JobEvent,
    MachineLimitReached,
    NothingKept,
    SlotDenied,
    TimePassed,
)
from relaunch.core.lifecycle.long_waits import (
    QUEUE_LIMIT,
    START_LIMIT,
    TOLD_EVERY,
    UNREADABLE_LIMIT,
    WAITS_LONG,
    describe_bound,
    describe_end,
    goes_without_reserved,
    look_or_tell,
    wait_of,
)
from relaunch.core.lifecycle.table import decide
from unit.core.lifecycle.steps import chosen
from unit.core.lifecycle.table_matrix import seen_stopped

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
NOTHING = NothingKept(make_selection(kept=()), "nothing", WaitReason.CAPACITY, retry_at=None)


def waiting(reason: WaitReason, **fields) -> Job:
    held = Waiting(reason, NOW, f"waits for {reason}", slot="resnet" if reason is WaitReason.SLOT else "")
    return make_job(**{"waiting": held, "reason": held.detail, "accepted_at": NOW, **fields})


def looked(job: Job, after: timedelta):
    now = NOW + after
    return look_or_tell(job, now, set_next_check(job, now + HOUR))


@pytest.mark.parametrize("reason", [WaitReason.IMAGE, WaitReason.REFUSED, WaitReason.CHECKPOINT])
def test_what_has_a_bound_of_its_own_has_no_other(reason):
    assert wait_of(waiting(reason), NOW + QUEUE_LIMIT) is None
    assert describe_bound(waiting(reason), NOW) == ""


def test_a_deadline_is_the_only_bound_of_a_wait_and_a_task_that_runs_waits_for_nothing():
    assert wait_of(waiting(WaitReason.CAPACITY, definition=make_definition(deadline=HOUR)), NOW) is None
    assert wait_of(make_running_job(), NOW + QUEUE_LIMIT) is None
    assert wait_of(make_job(state=JobState.RUNNING, waiting=None), NOW) is not None


@pytest.mark.parametrize("reason", [WaitReason.SLOT, WaitReason.MACHINE_LIMIT])
def test_places_behind_others_are_waited_for_for_two_weeks_before_the_first_run_and_again_since_then(reason):
    fresh = waiting(reason, queued_before_seconds=HOUR.total_seconds())
    ran = replace(fresh, totals=replace(fresh.totals, first_started_at=NOW - HOUR))

    assert wait_of(fresh, NOW + HOUR).waited == 2 * HOUR
    assert wait_of(ran, NOW + HOUR).waited == HOUR
    assert not wait_of(ran, NOW + QUEUE_LIMIT - HOUR).is_over
    assert wait_of(ran, NOW + QUEUE_LIMIT).is_over


@pytest.mark.parametrize("has_run", [False, True])
def test_what_was_waited_for_before_for_another_reason_is_no_place_behind_others(has_run: bool):
    refused = CheckpointsUnreadable("AccessDenied")
    story = ((0, SlotDenied("resnet", 5)), (1, refused), (20, MachineLimitReached("machines")))
    job = make_job(accepted_at=NOW, first_started_at=NOW if has_run else None)
    for hours, event in story:
        job = replace(decide(job, event, NOW + hours * HOUR, StackLimits()).job, pending=())

    assert wait_of(job, NOW + 22 * HOUR).waited == 3 * HOUR


def test_waits_behind_others_are_no_part_of_the_day_in_which_a_job_does_not_start():
    job = waiting(WaitReason.CAPACITY, held_back_before_seconds=(5 * HOUR).total_seconds())

    assert wait_of(job, NOW + 30 * HOUR).waited == 25 * HOUR
    patient = replace(job, definition=make_definition(patience=9 * HOUR))
    assert (wait_of(job, NOW).limit, wait_of(patient, NOW).limit) == (START_LIMIT, START_LIMIT + 9 * HOUR)


def test_the_start_of_a_reservation_is_waited_for_until_it_must_have_come():
    reserved = make_definition(purchase=PurchasePolicy.RESERVED)
    job = waiting(WaitReason.CAPACITY, definition=reserved)

    assert not wait_of(job, NOW + timedelta(weeks=8)).is_over
    assert wait_of(job, NOW + timedelta(weeks=9)).is_over
    assert wait_of(replace(job, totals=replace(job.totals, first_started_at=NOW)), NOW).limit == START_LIMIT
    mixed = replace(job, definition=make_definition(purchase=PurchasePolicy.RESERVED_THEN_SPOT))
    assert wait_of(mixed, NOW).limit == START_LIMIT


def test_somebody_is_told_at_half_of_the_bound_and_a_day_later_again():
    job = waiting(WaitReason.SLOT)

    assert looked(job, QUEUE_LIMIT / 2 - HOUR).timeline == ()
    told = looked(job, QUEUE_LIMIT / 2)
    assert [(each.event, each.detail) for each in told.timeline] == [
        (WAITS_LONG, "168 of at most 336 hours: waits for slot")
    ]
    assert (told.job.waiting, told.job.wake_at) == (job.waiting, NOW + QUEUE_LIMIT / 2 + HOUR)
    assert looked(told.job, QUEUE_LIMIT / 2 + TOLD_EVERY - HOUR).timeline == ()
    assert looked(told.job, QUEUE_LIMIT / 2 + TOLD_EVERY).timeline != ()


def test_a_wait_behind_others_ends_with_what_it_waited_for():
    job = waiting(WaitReason.MACHINE_LIMIT)
    wait = wait_of(job, NOW + QUEUE_LIMIT)

    assert wait is not None
    assert describe_end(job, wait) == "it waited for 336h in all: waits for machine-limit"


def test_a_wait_behind_others_ends_at_its_bound_and_a_place_that_comes_before_is_taken():
    job = waiting(WaitReason.SLOT)
    late = NOW + QUEUE_LIMIT

    ended = decide(job, TimePassed(), late, StackLimits()).job
    assert (ended.state, ended.reason) == (JobState.FAILED, "it waited for 336h in all: waits for slot")
    assert decide(job, TimePassed(), late - HOUR, StackLimits()).job.state is JobState.WAITING
    assert decide(job, chosen(), late, StackLimits()).job.state is JobState.LAUNCHING


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("reason", "denial", "bound"),
    [
        (WaitReason.SLOT, SlotDenied("resnet", 5), QUEUE_LIMIT),
        (WaitReason.MACHINE_LIMIT, MachineLimitReached("usd_per_hour"), QUEUE_LIMIT),
        (WaitReason.CAPACITY, NOTHING, START_LIMIT),
        (WaitReason.MARKET, replace(NOTHING, waits_for=WaitReason.MARKET, retry_at=NOW + QUEUE_LIMIT), START_LIMIT),
    ],
)
def test_a_wait_that_is_denied_again_before_each_wake_is_told_and_ends_in_time(
    reason: WaitReason, denial: JobEvent, bound: timedelta
):
    # Each job that ends, and each machine that is gone, lets the oldest jobs that wait try again.
    job, now, told, every = waiting(reason, wake_at=NOW + HOUR), NOW, [], timedelta(minutes=4)

    while not job.state.is_final and now < NOW + 2 * bound:
        assert job.wake_at is not None
        is_due = job.wake_at <= now + every
        now = job.wake_at if is_due else now + every
        decision = decide(job, TimePassed() if is_due else denial, now, StackLimits())
        told += [now - NOW for each in decision.timeline if each.event == WAITS_LONG]
        job = replace(decision.job, pending=())

    assert (job.state, now - NOW) == (JobState.FAILED, bound)
    assert told == [bound / 2 + days * TOLD_EVERY for days in range(max(bound / 2 // TOLD_EVERY, 1))]


def placed(**fields) -> Job:
    """Return a job that was placed when it had waited for START_LIMIT but a minute."""
    attempt = make_running_attempt(started_at=None, **fields)
    at = NOW + START_LIMIT - timedelta(minutes=1)
    attempt = replace(attempt, placement=replace(attempt.placement, requested_at=at, placed_at=at))
    return make_job(
        state=JobState.LAUNCHING, attempt=attempt, waiting=None, accepted_at=NOW, wake_at=NOW, has_slot=True
    )


def ended_after(stopping: Job, now: datetime) -> Job:
    stopped = seen_stopped(None, now, None, stop_code="UserInitiated", started_at=None)
    return decide(replace(stopping, pending=()), stopped, now, StackLimits()).job


def test_a_task_that_never_gets_a_machine_ends_its_job_as_a_wait_that_is_over():
    now = NOW + START_LIMIT
    withdrawn = decide(placed(node=None, instance_id=None), TimePassed(), now, StackLimits()).job
    assert withdrawn.current_attempt.intent.kind is IntentKind.PLACEMENT_WITHDRAWN

    ended = ended_after(withdrawn, now + timedelta(minutes=1))

    assert ended.state is JobState.FAILED
    assert ended.reason.startswith("not running within 24h")
    assert "last: not started within 0:01:00; the cluster says RUNNING" in ended.reason


def test_a_task_that_starts_on_its_machine_is_left_to_do_so_though_the_wait_is_over():
    started_by = NOW + START_LIMIT + timedelta(minutes=29)
    left = decide(placed(), TimePassed(), NOW + START_LIMIT, StackLimits()).job
    assert (left.state, left.wake_at) == (JobState.LAUNCHING, started_by)

    withdrawn = decide(left, TimePassed(), started_by, StackLimits()).job
    assert withdrawn.current_attempt.intent.kind is IntentKind.START_WITHDRAWN
    ended = ended_after(withdrawn, started_by + timedelta(minutes=1))

    assert ended.state is JobState.FAILED
    assert "last: not started within 0:30:00; the cluster says RUNNING" in ended.reason


def test_the_bound_of_a_wait_that_is_over_is_now():
    ends_at = NOW + START_LIMIT

    words = f"; it fails if it waits until {ends_at:%Y-%m-%d %H:%M} UTC"
    assert describe_bound(waiting(WaitReason.CAPACITY), NOW + HOUR) == words
    late = ends_at + HOUR
    assert (
        describe_bound(waiting(WaitReason.CAPACITY), late) == f"; it fails if it waits until {late:%Y-%m-%d %H:%M} UTC"
    )


@pytest.mark.parametrize(
    ("policy", "since", "expected"),
    [
        (PurchasePolicy.RESERVED_THEN_SPOT, UNREADABLE_LIMIT, True),
        (PurchasePolicy.RESERVED_THEN_SPOT, UNREADABLE_LIMIT - SECOND, False),
        (PurchasePolicy.RESERVED, 9 * HOUR, False),
    ],
)
def test_a_job_waits_some_minutes_for_reservations_that_cannot_be_read_unless_it_takes_nothing_else(
    policy: PurchasePolicy, since: timedelta, expected: bool
):
    job = make_job(definition=make_definition(purchase=policy), accepted_at=NOW - since)

    assert goes_without_reserved(job, NOW) is expected


def test_a_task_that_runs_is_not_moved_while_reservations_cannot_be_read():
    job = make_running_job(definition=make_definition(purchase=PurchasePolicy.RESERVED_THEN_SPOT))

    assert not goes_without_reserved(job, NOW + 9 * HOUR)
