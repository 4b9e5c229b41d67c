"""Jobs of several nodes: their tasks are seen as one, stopped together, and judged by the first that failed."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import INSTANCE_ID, NOW, task_id
from relaunch.core.jobs.attempt import IntentKind, PlacementState, StopIntent, StopKind
from relaunch.core.jobs.effects import AbandonMachine, LookForWarning
from relaunch.core.jobs.job import claimed_machines
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.launch import LaunchRefused, PlacementFailed, Shortage, TaskPhase, TaskPlaced
from relaunch.core.launches.launch_plan import plan_launch
from relaunch.core.lifecycle.decision import CLOSE_LOOK, linked_instances
from relaunch.core.lifecycle.events import HostEnded, HostWarned, TaskMissing, TaskSeen, TimePassed
from relaunch.core.lifecycle.gangs import PEERS_MAY_TAKE, has_gang, is_gang, observe_gang
from relaunch.core.lifecycle.running import MISSING_GRACE
from unit.core.lifecycle.gang_ranks import (
    BY_RELAUNCH,
    DEFINITION,
    EVERY,
    ended,
    gang,
    pending,
    rank,
    stopped_tasks,
    tell,
    together,
)
from unit.core.lifecycle.steps import SOON, after, decided
from unit.core.lifecycle.table_matrix import SITUATIONS, answered, seen


def test_a_job_of_one_node_is_no_gang():
    assert (is_gang(SITUATIONS["ro"]), has_gang(SITUATIONS["ro"].current_attempt)) == (False, False)
    assert (is_gang(gang()), has_gang(gang().current_attempt)) == (True, True)
    assert claimed_machines(gang()) == {"m-0", "m-0-n1", "m-0-n2"}
    assert linked_instances(gang()) == (INSTANCE_ID, "i-1", "i-2")


@pytest.mark.parametrize(
    ("statuses", "phase", "status"),
    [
        (("PROVISIONING", "PENDING", "RUNNING"), TaskPhase.PENDING, "1 of 3 RUNNING"),
        (("PENDING", "PENDING", "RUNNING"), TaskPhase.STARTING, "1 of 3 RUNNING"),
        (("RUNNING", "RUNNING", "RUNNING"), TaskPhase.RUNNING, "RUNNING"),
    ],
)
def test_a_gang_is_as_far_as_the_last_of_its_ranks(statuses, phase, status):
    found = together(gang(), *(rank(number, each) for number, each in enumerate(statuses)))

    assert (found.phase, found.status, found.rank_count, found.live_ranks) == (phase, status, 3, (0, 1, 2))
    assert found.version == 18


def test_a_gang_has_started_when_the_last_of_its_ranks_has():
    late = NOW + timedelta(minutes=2)

    assert together(gang(), rank(0), rank(1, started_at=late), rank(2)).started_at == late
    assert together(gang(), rank(0), rank(1, "PENDING"), rank(2)).started_at is None


def test_nothing_is_said_of_a_gang_of_which_the_target_does_not_know_a_rank():
    job = gang()

    assert observe_gang(job, {task_id(1): rank(0), task_id(2): rank(1), task_id(3): None}, SOON) is None
    assert observe_gang(job, {}, SOON) is None
    # One that is known to live is waited for, whatever became of the others.
    assert together(job, rank(0), ended(1, 1), None).live_ranks == (0,)


def test_a_gang_that_starts_is_looked_at_every_minute_for_what_is_said_of_a_rank_may_be_old():
    starting = tell(gang("pl"), rank(0), rank(1, "PENDING"), rank(2))
    looked_at = after(starting, TimePassed(), now=SOON + CLOSE_LOOK)

    assert (starting.state, starting.wake_at) == (JobState.LAUNCHING, SOON + CLOSE_LOOK)
    assert looked_at.wake_at == SOON + 2 * CLOSE_LOOK


@pytest.mark.parametrize("situation", ["pl", "ro"])
def test_the_others_are_stopped_with_the_first_that_fails(situation):
    job = tell(gang(situation), rank(0), ended(1, 7), rank(2))

    assert (job.state, job.current_attempt.live_ranks) == (JobState.STOPPING, (0, 2))
    assert job.current_attempt.intent == StopIntent(
        IntentKind.RANK_ENDED, SOON, "rank 1: Essential container in task exited"
    )
    assert stopped_tasks(job) == EVERY


def test_the_first_that_failed_decides():
    job = tell(gang(), rank(0), ended(1, 7), rank(2))
    over = tell(job, ended(0, 1, **BY_RELAUNCH), ended(1, 7), ended(2, 134, SOON + timedelta(seconds=1)))

    assert over.current_attempt.stop is None or over.current_attempt.stop.exit_code == 7
    found = together(job, ended(0, 1, **BY_RELAUNCH), ended(1, 7, SOON + timedelta(seconds=9)), ended(2, 0))
    assert found.report.text == "rank 1: Essential container in task exited"


def test_one_that_had_ended_before_the_others_decides_though_it_was_asked_to_stop_before_its_agent_said_so():
    first = ended(0, 137, SOON - timedelta(seconds=4), **BY_RELAUNCH)
    found = together(gang(), first, ended(1, 1), ended(2, 1))

    assert found.containers["main"].exit_code == 137
    assert found.report.text == "rank 0: it had ended before it was stopped"
    assert together(gang(), ended(0, 137, **BY_RELAUNCH), ended(1, 1), ended(2, 1)).containers["main"].exit_code == 1


def test_those_that_are_done_wait_for_the_others_as_long_as_torchrun_does():
    job = gang()
    early = together(job, ended(0, 0), rank(1), ended(2, 0))
    late = together(job, ended(0, 0), rank(1), ended(2, 0), now=SOON + PEERS_MAY_TAKE)

    assert (early.phase, late.phase) == (TaskPhase.RUNNING, TaskPhase.STOPPING)
    changed = together(job, ended(0, 0), rank(1, version=4), ended(2, 0))
    assert early.version < late.version < changed.version
    waiting = tell(job, ended(0, 0), rank(1), ended(2, 0))
    assert (waiting.state, waiting.wake_at) == (JobState.RUNNING, SOON + timedelta(minutes=1))


def test_the_end_of_the_last_rank_is_news_after_it_had_taken_too_long():
    """What was seen while it took too long has no version of its own: the end of the last rank may be the next one."""
    at = SOON + PEERS_MAY_TAKE
    first = ended(0, 7, version=4)
    overdue = tell(gang(), first, rank(1, version=2), ended(2, 143, version=4, **BY_RELAUNCH), now=at)
    over = tell(overdue, first, ended(1, 143, at, version=3, **BY_RELAUNCH), ended(2, 143, version=4, **BY_RELAUNCH))

    assert (overdue.state, overdue.current_attempt.live_ranks) == (JobState.STOPPING, (1,))
    assert over.current_attempt.live_ranks == ()
    assert over.current_attempt.held is not None or over.current_attempt.stop is not None


def test_a_rank_that_had_to_be_stopped_alone_is_a_failure():
    job = tell(gang(), ended(0, 0), rank(1), ended(2, 0), now=SOON + PEERS_MAY_TAKE)
    assert job.state is JobState.STOPPING
    at = SOON + PEERS_MAY_TAKE + timedelta(minutes=1)
    host = replace(
        seen("RUNNING"), observation=together(job, ended(0, 0), ended(1, 143, at, **BY_RELAUNCH), ended(2, 0))
    )

    stop = decided(job, host, at + timedelta(minutes=5)).job.current_attempt.stop
    assert stop is not None
    assert stop.kind is StopKind.USER_ERROR


def test_a_rank_without_a_reason_says_which_did_not_end_with_it():
    found = together(gang(), ended(0, 1, stopped_reason=""), rank(1), rank(2))

    assert found.report.text == "rank 0 ended; rank 1, 2 did not end with it"
    assert found.status == "STOPPING, 2 RUNNING"
    assert together(gang(), ended(0, 1, stopped_reason=""), ended(1, 1), ended(2, 1)).report.text == ""


def test_an_observation_of_one_rank_alone_changes_nothing():
    assert decided(gang(), TaskSeen(rank(0, version=99))).is_ignored
    assert decided(gang(), TaskSeen(rank(2, version=99))).is_ignored


def test_a_rank_that_is_seen_before_all_are_placed_is_no_orphan():
    assert decided(pending(), TaskSeen(rank(1))).is_ignored
    other = replace(pending(), attempt=replace(pending().current_attempt, number=2))
    assert stopped_tasks(decided(other, TaskSeen(rank(1))).job) == {task_id(2)}


def test_all_are_linked_to_their_machines_once_they_are_placed():
    decision = decided(pending(), answered(TaskPlaced(task_id(1), (task_id(2), task_id(3)))))

    placement = decision.job.current_attempt.placement
    assert (placement.state, placement.task_ids) == (PlacementState.PLACED, (task_id(1), task_id(2), task_id(3)))
    assert decision.link_instance
    assert {each.instance_id for each in decision.job.pending if isinstance(each, LookForWarning)} == {
        INSTANCE_ID,
        "i-1",
        "i-2",
    }


@pytest.mark.parametrize(
    "outcome",
    [
        PlacementFailed(("RESOURCE:PORTS",), shortages=frozenset({Shortage.PORTS}), placed=(task_id(1),)),
        LaunchRefused("AccessDenied", may_heal=True, placed=(task_id(1),)),
    ],
)
def test_what_was_placed_is_stopped_where_not_all_could_be(outcome):
    job = decided(pending(), answered(outcome)).job

    assert (job.state, job.current_attempt.placement.followers) == (JobState.STOPPING, ())
    assert stopped_tasks(job) == {task_id(1)}
    # A warning that came before its task was known counts.
    assert {each.instance_id for each in job.pending if isinstance(each, LookForWarning)} == {INSTANCE_ID}
    # The machines of those that were not are not needed.
    assert claimed_machines(job) == {"m-0"}
    cancelled = replace(pending().current_attempt, intent=StopIntent(IntentKind.CANCEL, NOW, "enough"))
    over = decided(replace(pending(), attempt=cancelled), answered(replace(outcome, placed=(task_id(1), task_id(2)))))
    assert over.job.current_attempt.intent == cancelled.intent
    assert over.job.current_attempt.placement.task_ids == (task_id(1), task_id(2))


@pytest.mark.parametrize("instance_id", [INSTANCE_ID, "i-1", "i-2"])
def test_a_warning_of_any_machine_stops_all(instance_id):
    job = decided(gang(), HostWarned(instance_id, SOON)).job

    assert (job.state, stopped_tasks(job)) == (JobState.STOPPING, EVERY)
    assert job.machine_id == ""


def test_the_machines_of_a_gang_are_asked_for_once_its_tasks_have_ended():
    job = decided(gang(), HostWarned("i-1", SOON)).job
    job = tell(job, ended(0, 0), ended(1, 1, **BY_RELAUNCH), ended(2, 0))

    assert job.state is JobState.WAITING
    assert job.current_attempt.stop is not None
    assert job.current_attempt.stop.kind is StopKind.INTERRUPTION


def test_a_machine_that_ends_stops_the_others_which_would_wait_for_it():
    job = decided(gang(), HostEnded("i-2", "terminated", SOON)).job

    assert (job.state, stopped_tasks(job)) == (JobState.STOPPING, EVERY)
    assert job.current_attempt.lost_instances == ("i-2",)
    assert decided(job, HostEnded("i-2", "terminated", SOON)).is_ignored
    second = decided(job, HostEnded("i-1", "terminated", SOON)).job
    assert second.current_attempt.lost_instances == ("i-2", "i-1")


def test_a_gang_is_not_lost_with_a_machine_while_others_may_live():
    late = SOON + timedelta(minutes=45)
    ended_host = decided(gang(live_ranks=(1, 2)), HostEnded("i-2", "terminated", SOON)).job
    lives = decided(ended_host, TimePassed(), late).job
    assert lives.current_attempt.stop is None
    only = replace(ended_host, attempt=replace(ended_host.current_attempt, live_ranks=(2,)))
    assert decided(only, TimePassed(), late).job.current_attempt.stop is not None


def test_a_gang_is_lost_some_time_after_its_last_machine_has_ended():
    first = decided(gang(live_ranks=(1, 2)), HostEnded("i-2", "terminated", SOON)).job
    later = SOON + timedelta(minutes=25)
    both = decided(first, HostEnded("i-1", "terminated", later)).job
    assert decided(both, TimePassed(), later + timedelta(minutes=10)).job.current_attempt.stop is None
    lost = decided(both, TimePassed(), later + timedelta(minutes=45)).job
    assert lost.current_attempt.stop is not None
    # By its record it ran until then.
    assert lost.current_attempt.stop.at == later
    assert lost.current_attempt.task_ids == (task_id(1), task_id(2), task_id(3))


def test_a_gang_of_which_no_rank_was_seen_is_not_lost_with_one_of_its_machines():
    unseen = decided(gang(live_ranks=()), HostEnded("i-2", "terminated", SOON)).job
    assert decided(unseen, TimePassed(), SOON + timedelta(minutes=45)).job.current_attempt.stop is None


def test_the_machines_of_the_ranks_that_do_not_stop_are_given_up():
    job = replace(gang("so", live_ranks=(1,)), state_since=NOW)
    late = decided(job, TimePassed(is_described=True), NOW + timedelta(minutes=20)).job

    assert [each.machine_id for each in late.pending if isinstance(each, AbandonMachine)] == ["m-0-n1"]


def test_only_machines_are_given_up_whose_ranks_nobody_saw_stop_whatever_the_target_has_forgotten_meanwhile():
    """Versions of tasks that ECS does not describe any more are missing from the sum."""
    job = replace(gang("so", live_ranks=(0, 1, 2)), state_since=NOW)
    first = tell(job, ended(0, 143, **BY_RELAUNCH), rank(1), rank(2))
    second = tell(first, None, rank(1), ended(2, 143, **BY_RELAUNCH))
    assert second.current_attempt.task_version == first.current_attempt.task_version
    # One that is not described though it lived is not taken for stopped.
    hidden = tell(first, ended(0, 143, **BY_RELAUNCH), None, rank(2, version=20))
    assert (second.current_attempt.live_ranks, hidden.current_attempt.live_ranks) == ((1,), (1, 2))

    late = decided(second, TimePassed(is_described=True), NOW + timedelta(minutes=20)).job
    assert [each.machine_id for each in late.pending if isinstance(each, AbandonMachine)] == ["m-0-n1"]


def test_a_rank_that_stays_unknown_stops_the_others():
    job = after(gang(), TaskMissing(task_id(1)))
    for minute in range(1, 6):
        job = decided(job, TaskMissing(task_id(1)), SOON + timedelta(minutes=minute)).job

    assert minute * timedelta(minutes=1) >= MISSING_GRACE
    assert (job.state, stopped_tasks(job)) == (JobState.STOPPING, EVERY)


def test_each_rank_has_its_own_instance_and_environment():
    request = plan_launch(gang("fz"))
    ranks = request.ranks

    assert [each.instance_id for each in ranks] == [INSTANCE_ID, "i-1", "i-2"]
    assert [each.environment["RELAUNCH_NODE_RANK"] for each in ranks] == ["0", "1", "2"]
    assert {each.environment["PET_MASTER_ADDR"] for each in ranks} == {"10.0.0.7"}
    assert {each.environment["PET_NNODES"] for each in ranks} == {"3"}
    # torchrun makes a folder of that name.
    assert not any("/" in each.environment["PET_RDZV_ID"] for each in ranks)
    own = replace(gang("fz"), definition=replace(DEFINITION, environment={"PET_NNODES": "1:3"}))
    assert {each.environment["PET_NNODES"] for each in plan_launch(own).ranks} == {"1:3"}
    assert plan_launch(SITUATIONS["fz"]).ranks == (plan_launch(SITUATIONS["fz"]),)
