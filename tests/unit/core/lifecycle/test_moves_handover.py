"""A task that trains on, although EC2 takes its machine away, until the next one is ready or it has to save."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from fakes.builders import INSTANCE_ID, make_container, make_revision
from relaunch.core.jobs.attempt import Handover, IntentKind, StopKind
from relaunch.core.jobs.effects import RequestLaunch, StopTask
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState, WaitReason
from relaunch.core.lifecycle.decision import HEARTBEAT, Decision
from relaunch.core.lifecycle.events import HostWarned, JobEvent, MachineLost, NextMachineReady, TimePassed
from relaunch.core.lifecycle.moves import is_last_moment, last_moment, stops_by
from relaunch.core.lifecycle.table import decide
from relaunch.core.machines.machine import Consequence
from unit.core.lifecycle.table_matrix import EVENTS, LIMITS, SITUATIONS, SOON, seen, seen_stopped, with_attempt

SECOND = timedelta(seconds=1)
WARNED = HostWarned(INSTANCE_ID, SOON)
RECOMMENDED = HostWarned(INSTANCE_ID, SOON, is_rebalance=True)
# A stop time-out of 90 s, and ten seconds for the message, StopTask and the agent.
LAST_MOMENT = SOON + timedelta(seconds=120 - 90 - 10)
READY = NextMachineReady("m-1")


def decided(job: Job, event: JobEvent, now=SOON) -> Decision:
    return decide(job, event, now, LIMITS)


def after(job: Job, *events: JobEvent, now=SOON) -> Job:
    for event in events:
        job = decided(job, event, now).job
    return job


@pytest.fixture
def warned() -> Job:
    """Return a job whose task trains on after a warning."""
    return after(SITUATIONS["ro"], WARNED)


def test_after_a_warning_it_trains_on_and_the_next_machine_is_requested_and_its_last_moment_is_set(warned):
    assert warned.state is JobState.RUNNING
    assert warned.current_attempt.warned_at == SOON
    handover = Handover(SOON, f"spot interruption warning for {INSTANCE_ID}", LAST_MOMENT)
    assert warned.current_attempt.handover == handover
    assert warned.current_attempt.intent is None
    assert warned.pending == (RequestLaunch(20), RequestLaunch())
    assert warned.wake_at == LAST_MOMENT


def test_the_timeline_says_until_when():
    (entry,) = decided(SITUATIONS["ro"], WARNED).timeline

    assert entry.event == "interruption warning"
    until = f"it trains on until {LAST_MOMENT:%H:%M:%S} UTC, or until a next machine is ready"
    assert entry.detail == f"spot interruption warning for {INSTANCE_ID}; {until}"


@pytest.mark.parametrize(("own", "left"), [(30, 80), (None, 20), (110, 0), (120, -10)])
def test_the_last_moment_leaves_the_jobs_own_stop_time_out(own: int | None, left: int):
    revision = make_revision(containers=(make_container(stop_timeout_seconds=own),))
    job = replace(SITUATIONS["ro"], revision=revision)

    assert last_moment(job, SOON) == SOON + timedelta(seconds=left)
    assert after(job, WARNED).state is (JobState.RUNNING if left > 0 else JobState.STOPPING)


def test_before_the_end_of_a_block_it_trains_on_until_its_own_last_moment():
    ends_at = SOON + timedelta(minutes=10)
    job = after(SITUATIONS["ro"], replace(WARNED, ends_at=ends_at))

    stop_by = ends_at - timedelta(seconds=100)
    assert (job.state, job.current_attempt.handover.stop_by) == (JobState.RUNNING, stop_by)
    assert job.pending == (RequestLaunch(500), RequestLaunch())
    assert job.current_attempt.handover.reason == (
        f"end of the Capacity Block, to be left by {ends_at:%H:%M} UTC, for {INSTANCE_ID}"
    )


@pytest.mark.parametrize(
    ("cause", "days", "said"),
    [
        ("retirement by AWS", 14, "retirement by AWS, to be left by {0:%Y-%m-%d %H:%M} UTC, for"),
        ("retirement by AWS", 0, "retirement by AWS, to be left by {0:%H:%M} UTC, for"),
        ("interruption of the capacity reservation", None, "interruption of the capacity reservation for"),
        ("", None, "spot interruption warning for"),
    ],
)
def test_a_warning_says_its_cause_and_a_far_end_with_its_date(cause: str, days: int | None, said: str):
    ends_at = None if days is None else SOON + timedelta(days=days, hours=1)
    job = after(SITUATIONS["ro"], replace(WARNED, ends_at=ends_at, cause=cause))

    assert job.current_attempt.handover.reason == f"{said.format(ends_at)} {INSTANCE_ID}"


def test_the_message_for_a_far_last_moment_is_delayed_as_long_as_a_message_can_be():
    job = after(SITUATIONS["ro"], replace(WARNED, ends_at=SOON + timedelta(hours=2)))

    assert job.pending == (RequestLaunch(900), RequestLaunch())


def test_a_revision_without_its_container_gets_what_relaunch_sets():
    job = replace(SITUATIONS["ro"], revision=make_revision(containers=()))

    assert last_moment(job, SOON) == LAST_MOMENT


@pytest.mark.parametrize(("late", "state"), [(19, JobState.RUNNING), (20, JobState.STOPPING), (90, JobState.STOPPING)])
def test_a_warning_that_comes_late_leaves_less_or_nothing_to_train(late: int, state: JobState):
    job = after(SITUATIONS["ro"], WARNED, now=SOON + late * SECOND)

    assert job.state is state
    if state is JobState.RUNNING:
        assert job.pending == (RequestLaunch(20 - late), RequestLaunch())


@pytest.mark.parametrize("situation", ["ru", "pl"])
def test_a_task_of_a_capacity_provider_or_one_that_has_not_started_is_stopped_at_once(situation: str):
    job = SITUATIONS[situation]
    if situation == "pl":
        job = with_attempt("pl", placement=replace(job.current_attempt.placement, machine_id="m-0"))

    assert after(job, WARNED).state is JobState.STOPPING


def test_before_its_last_moment_it_is_only_looked_at_again(warned):
    job = after(warned, TimePassed(), now=LAST_MOMENT - SECOND)

    assert (job.state, job.wake_at, job.pending) == (JobState.RUNNING, LAST_MOMENT, (RequestLaunch(),))


def test_at_its_last_moment_it_is_stopped_whether_there_is_a_machine_or_not(warned):
    with_machine = after(warned, EVENTS["machine-claimed"])
    for job in (warned, with_machine):
        stopping = after(job, TimePassed(), now=LAST_MOMENT)

        assert stopping.state is JobState.STOPPING
        assert stopping.current_attempt.intent.kind is IntentKind.INTERRUPTION
        assert isinstance(stopping.pending[0], StopTask)
        assert stopping.machine_id == job.machine_id
        # Without one it is requested while the task saves.
        assert (RequestLaunch() in stopping.pending) is not job.machine_id


def test_once_the_next_machine_is_ready_it_is_stopped(warned):
    decision = decided(after(warned, EVENTS["machine-claimed"]), READY)

    assert decision.job.state is JobState.STOPPING
    assert (decision.job.machine_id, decision.timeline[0].event) == ("m-1", "next machine ready")
    assert [type(each) for each in decision.job.pending] == [StopTask]


def test_a_claim_while_it_trains_changes_neither_its_state_nor_its_last_moment(warned):
    claimed = after(warned, EVENTS["machine-claimed"])

    assert (claimed.state, claimed.wake_at) == (JobState.RUNNING, LAST_MOMENT)
    assert stops_by(claimed) == LAST_MOMENT
    assert claimed.machine_id == "m-1"


@pytest.mark.parametrize(("refusal", "effects"), [(Consequence.NEXT, (RequestLaunch(),)), (None, ())])
def test_if_the_next_machine_is_lost_it_trains_on(warned, refusal, effects):
    job = after(warned, EVENTS["machine-claimed"], MachineLost("m-1", refusal, "EC2 has no capacity for it"))

    assert (job.state, job.machine_id) == (JobState.RUNNING, "")
    assert [each for each in job.pending if each.kind != "release-machine"] == list(effects)
    assert stops_by(job) == LAST_MOMENT


def test_on_a_recommendation_there_is_no_last_moment_and_no_warning():
    job = after(SITUATIONS["ro"], RECOMMENDED)

    assert job.current_attempt.handover == Handover(SOON, f"rebalance recommendation for {INSTANCE_ID}")
    assert job.current_attempt.warned_at is None
    assert job.pending == (RequestLaunch(),)
    assert job.wake_at == SOON + HEARTBEAT
    assert not is_last_moment(job, SOON + timedelta(hours=9))


def test_without_a_next_machine_it_trains_on_its_old_one_and_asks_again():
    recommended = after(SITUATIONS["ro"], RECOMMENDED)
    for minutes in (10, 20):
        recommended = after(recommended, TimePassed(), now=SOON + timedelta(minutes=minutes))

    assert (recommended.state, recommended.pending) == (JobState.RUNNING, (RequestLaunch(),))
    assert recommended.current_attempt.placement.machine_id == "m-0"


def test_a_program_that_finishes_after_a_recommendation_has_succeeded_and_needs_no_next_machine():
    job = after(SITUATIONS["ro"], RECOMMENDED, EVENTS["machine-claimed"])

    ended = after(job, seen_stopped(0, SOON))

    assert ended.state is JobState.SUCCEEDED
    assert {each.machine_id for each in ended.pending if each.kind == "release-machine"} == {"m-0", "m-1"}


def test_a_program_that_fails_while_it_trains_on_gives_the_next_machine_up_for_its_pause():
    job = after(SITUATIONS["ro"], RECOMMENDED, EVENTS["machine-claimed"])

    failed = after(job, seen_stopped(1, SOON))

    assert failed.waiting.reason is WaitReason.BACKOFF
    assert failed.machine_id == ""


def test_a_warning_after_a_recommendation_sets_the_last_moment_and_keeps_the_next_machine():
    recommended = after(SITUATIONS["ro"], RECOMMENDED, EVENTS["machine-claimed"])
    later = SOON + timedelta(minutes=7)

    job = after(recommended, HostWarned(INSTANCE_ID, later), now=later)

    assert (job.state, job.machine_id) == (JobState.RUNNING, "m-1")
    assert job.current_attempt.handover.since == SOON
    assert stops_by(job) == later + timedelta(seconds=20)


@pytest.mark.parametrize("at", [SOON - SECOND, SOON, SOON + SECOND])
def test_a_recommendation_after_the_warning_does_not_take_the_last_moment_away(warned, at):
    assert decided(warned, HostWarned(INSTANCE_ID, at, is_rebalance=True)).is_ignored


def test_a_warning_that_comes_twice_changes_nothing_and_an_earlier_one_counts(warned):
    assert decided(warned, WARNED).is_ignored

    earlier = after(warned, HostWarned(INSTANCE_ID, SOON - 5 * SECOND))

    assert stops_by(earlier) == LAST_MOMENT - 5 * SECOND


@pytest.mark.parametrize("ends_at", [SOON + timedelta(days=14), SOON + timedelta(minutes=10)])
def test_an_interruption_counts_though_the_instance_was_to_be_retired_later(ends_at: datetime):
    job = after(SITUATIONS["ro"], replace(WARNED, ends_at=ends_at, cause="retirement by AWS"))
    later = SOON + timedelta(minutes=5)
    interrupted = HostWarned(INSTANCE_ID, later)

    saving = after(job, interrupted, now=later)

    assert (saving.state, stops_by(saving)) == (JobState.RUNNING, later + timedelta(seconds=20))
    assert decided(saving, interrupted, later).is_ignored
    # The retirement is announced again, or was handled late.
    for at in (SOON, later + SECOND):
        assert decided(saving, HostWarned(INSTANCE_ID, at, ends_at=ends_at), later + SECOND).is_ignored


def test_a_program_that_left_by_itself_for_an_interruption_before_its_retirement_was_interrupted():
    job = after(SITUATIONS["ro"], replace(WARNED, ends_at=SOON + timedelta(days=14), cause="retirement by AWS"))
    later = SOON + timedelta(minutes=5)
    left = seen_stopped(0, later, execution_stopped_at=later)
    job = after(job, left, HostWarned(INSTANCE_ID, later + 5 * SECOND), now=later + 6 * SECOND)

    ended = after(job, left, now=later + timedelta(minutes=2))

    assert (ended.state, ended.current_attempt.stop.kind) == (JobState.WAITING, StopKind.INTERRUPTION)


def test_an_observation_of_the_running_task_does_not_move_its_last_moment(warned):
    job = after(warned, seen("RUNNING"))

    assert (job.wake_at, stops_by(job)) == (LAST_MOMENT, LAST_MOMENT)


def test_a_task_that_ecs_does_not_know_for_now_is_looked_at_at_its_last_moment_all_the_same(warned):
    assert after(warned, EVENTS["missing"]).wake_at == LAST_MOMENT
    assert after(SITUATIONS["rh"], EVENTS["missing"]).wake_at == SOON + timedelta(minutes=1)
    late = replace(warned.current_attempt.handover, stop_by=SOON + timedelta(hours=1))
    attempt = replace(warned.current_attempt, handover=late)
    assert after(replace(warned, attempt=attempt), EVENTS["missing"]).wake_at == SOON + timedelta(minutes=1)


def test_a_job_that_is_cancelled_or_out_of_time_while_it_trains_on_needs_no_next_machine(warned):
    claimed = after(warned, EVENTS["machine-claimed"])

    for event, now in ((EVENTS["cancel"], SOON), (TimePassed(), SOON + timedelta(hours=40))):
        stopping = after(claimed, event, now=now)
        assert (stopping.state, stopping.machine_id) == (JobState.STOPPING, "")
        assert stops_by(stopping) is None


def test_only_a_task_that_trains_on_has_a_last_moment():
    assert stops_by(SITUATIONS["ro"]) is None
    assert stops_by(SITUATIONS["w0"]) is None
    assert not is_last_moment(SITUATIONS["ro"], SOON)
