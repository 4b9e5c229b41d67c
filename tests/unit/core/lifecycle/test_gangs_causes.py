"""Jobs of several nodes are judged by the cause of the first end, of pods or tasks, whole or in part."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import INSTANCE_ID, NOW, task_id
from relaunch.core.definitions.accelerator import PurchasePolicy
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import IntentKind, StopIntent, StopKind
from relaunch.core.jobs.effects import LookForWarning
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.launch import LaunchUncertain, PlacementFailed, ReportedCause, StopReport, TaskPlaced
from relaunch.core.lifecycle.events import HostWarned, TaskSeen, TimePassed
from relaunch.core.lifecycle.gangs import MET_WITHIN, PEERS_MAY_TAKE, decided_by_part, observe_gang
from relaunch.core.lifecycle.stop_reason import classify_stop
from relaunch.core.lifecycle.verdicts import judge
from unit.core.lifecycle.gang_ranks import (
    BY_RELAUNCH,
    DEFINITION,
    ended,
    gang,
    pending,
    rank,
    stopped_tasks,
    tell,
    together,
)
from unit.core.lifecycle.steps import SOON, decided
from unit.core.lifecycle.table_matrix import SITUATIONS, answered, seen


def on_cluster(**fields: object) -> Job:
    """Return a job of three nodes whose pods are one task, and run."""
    job = SITUATIONS["ro"]
    definition = replace(DEFINITION, target=Target.ACK, kubernetes=KubernetesWorkload("trainer"))
    return replace(job, definition=definition, attempt=replace(job.current_attempt, **fields))


@pytest.mark.parametrize(("warned_at", "kind"), [(None, IntentKind.RANK_ENDED), (SOON, IntentKind.INTERRUPTION)])
def test_the_pods_of_a_cluster_are_stopped_together_and_those_that_are_taken_away_say_so(warned_at, kind):
    stopping = replace(seen("STOPPING").observation, warned_at=warned_at)

    job = decided(on_cluster(), TaskSeen(stopping), SOON).job

    assert job.current_attempt.intent.kind is kind
    assert stopped_tasks(job) == {job.current_attempt.task_id}


def test_what_a_pod_announces_is_saved_with_the_stop_of_the_others_as_nothing_shows_it_once_the_pod_is_gone():
    stopping = replace(seen("STOPPING").observation, warned_at=SOON, warning="rank 0 does not end")

    attempt = decided(on_cluster(), TaskSeen(stopping), SOON).job.current_attempt

    assert attempt.warned_at == SOON
    assert attempt.intent.detail.endswith("; rank 0 does not end")
    earlier = decided(on_cluster(warned_at=NOW), TaskSeen(stopping), SOON).job.current_attempt
    assert earlier.warned_at == NOW


@pytest.mark.parametrize(("started_at", "kind"), [(NOW, StopKind.HOST_LOST), (None, StopKind.USER_ERROR)])
def test_a_rank_that_is_gone_without_a_word_explains_the_others_if_all_had_run(started_at, kind):
    stopped = ended(0, 1)
    causes = frozenset({ReportedCause.ENDED, ReportedCause.PEER_LOST})
    gone = replace(stopped, report=replace(stopped.report, causes=causes))
    attempt = on_cluster(node="node-0", started_at=started_at).current_attempt

    assert classify_stop(gone, "main", attempt, SOON, target=Target.ACK).kind is kind


def test_what_was_taken_away_decides_before_peers_that_failed_sooner_and_what_followed_them_never_does():
    late = SOON + timedelta(seconds=9)
    taken = replace(ended(2, 143, at=late), report=StopReport("gone", frozenset({ReportedCause.NODE_LOST})))
    consequence = StopReport("", frozenset({ReportedCause.INTERRUPTED, ReportedCause.PEER_ENDED}))
    follows = replace(ended(0, 1, at=NOW), report=consequence)

    assert together(gang(), follows, ended(1, 1), taken).report.text == "rank 2: gone"
    decided_by = together(gang(), follows, ended(1, 3), ended(2, 1, at=late))
    assert decided_by.containers["main"].exit_code == 3


WARNED = {
    "stop_code": "UserInitiated",
    "stopped_reason": "Relaunch: spot interruption warning for i-1, while its job could not be read",
}


@pytest.mark.parametrize("code", [0, 1, 7])
def test_a_rank_that_was_stopped_for_a_warning_explains_its_peers_before_the_job_knows_of_the_warning(code):
    """The job could not be read when the warning came, and sees first that ranks end."""
    job = tell(gang(), rank(0), rank(1, desired_status="STOPPED", **WARNED), ended(2, code))
    assert job.current_attempt.intent.kind is IntentKind.RANK_ENDED

    late = SOON + timedelta(seconds=9)
    stopped = together(job, ended(0, 143, late, **BY_RELAUNCH), ended(1, 1, late, **WARNED), ended(2, code))
    assert judge(job, stopped, late).kind is StopKind.INTERRUPTION


@pytest.mark.parametrize(
    ("lost", "code", "kind"),
    [
        (("i-1",), None, StopKind.HOST_LOST),
        # It saw its end: whatever became of its instance later, the program of the other failed first.
        (("i-1",), 143, StopKind.USER_ERROR),
        ((), None, StopKind.USER_ERROR),
    ],
)
def test_a_rank_that_goes_with_its_instance_before_anybody_sees_it_stop_was_lost_before_its_peer_failed(
    lost, code, kind
):
    """Its agent was away, and EC2 says minutes later that the instance ends."""
    late = SOON + timedelta(minutes=4)
    job = tell(gang(), ended(0, 1), rank(1), rank(2))
    host_ended_at = SOON + timedelta(seconds=95) if lost else None
    job = replace(job, attempt=replace(job.attempt, lost_instances=lost, host_ended_at=host_ended_at))
    no_end = {**BY_RELAUNCH, "execution_stopped_at": None if code is None else late}

    stopped = together(job, ended(0, 1), ended(1, code, late, **no_end), ended(2, 143, late, **BY_RELAUNCH))

    assert judge(job, stopped, late).kind is kind


def test_a_task_of_several_pods_does_not_stay_where_some_hold_nodes_for_others():
    job = on_cluster(node=None, started_at=None)
    definition = replace(job.definition, purchase=PurchasePolicy.SPOT)
    placed = replace(SITUATIONS["pl"], definition=definition)
    placed = replace(placed, attempt=replace(placed.current_attempt, node=None, started_at=None))
    late = placed.current_attempt.placement.requested_at + timedelta(minutes=40)

    kept = decided(placed, TimePassed(is_described=True), late)
    partial = decided(placed, TimePassed(is_described=True, is_partial=True), late)

    assert kept.job.current_attempt.intent is None
    assert partial.job.current_attempt.intent.kind is IntentKind.PLACEMENT_WITHDRAWN


@pytest.mark.parametrize(
    ("code", "words", "kind"),
    [
        (1, {}, StopKind.NOT_STARTED),
        (0, {}, StopKind.NOT_STARTED),
        (
            None,
            {"stop_code": "TerminationNotice", "stopped_reason": f"Host EC2 (instance {INSTANCE_ID}) terminated."},
            StopKind.HOST_LOST,
        ),
    ],
)
def test_a_part_of_the_ranks_waited_for_the_others_whatever_code_it_ended_with(code, words, kind):
    """It had ended before it was given up."""
    job = decided(pending(), answered(PlacementFailed(("1 of 3 tasks were placed",), placed=(task_id(1),))), SOON).job

    stop = judge(job, ended(0, code, NOW, started_at=None, **words), SOON)

    assert (stop.kind, stop.exit_code) == (kind, code)


def test_a_gang_has_not_started_while_the_target_does_not_know_whether_each_has():
    job = gang("so")

    known = {task_id(2): rank(1), task_id(3): ended(2, 137)}
    found = observe_gang(job, known, SOON)
    assert found is not None
    assert found.started_at is None
    assert together(job, rank(0), rank(1), ended(2, 137)).started_at == NOW


@pytest.mark.parametrize(
    ("others", "waited", "kind"),
    [
        ({"started_at": None}, MET_WITHIN, StopKind.NOT_STARTED),
        ({"started_at": NOW + timedelta(minutes=9)}, MET_WITHIN, StopKind.NOT_STARTED),
        ({"started_at": None}, MET_WITHIN - timedelta(seconds=1), StopKind.USER_ERROR),
        ({"started_at": NOW}, MET_WITHIN, StopKind.USER_ERROR),
    ],
    ids=["never started", "started too late", "failed at once", "all had met"],
)
def test_a_rank_that_waited_for_others_that_had_not_started_is_no_failure_of_the_program(others, waited, kind):
    """RunTask was throttled, or not answered, between two of them."""
    job = gang("ro", started_at=None)
    late = ended(1, None, NOW + timedelta(minutes=10), **{**BY_RELAUNCH, **others})
    now = NOW + timedelta(minutes=11)
    seen_last = together(job, ended(0, 1, NOW + waited), late, replace(late, task_id=task_id(3)), now=now)

    assert judge(job, seen_last, now).kind is kind
    assert not together(job, rank(0), rank(1), rank(2)).waited_in_vain


@pytest.mark.parametrize(("started_at", "kind"), [(NOW, StopKind.USER_ERROR), (None, StopKind.NOT_STARTED)])
def test_a_rank_that_the_target_has_forgotten_may_not_have_started(started_at, kind):
    """Whether all were ever seen to run is known to the attempt."""
    job = gang("ro", started_at=started_at)
    met = ended(1, 143, NOW + MET_WITHIN, **BY_RELAUNCH)
    now = NOW + timedelta(minutes=11)
    known = {task_id(1): ended(0, 1, NOW + MET_WITHIN), task_id(2): met, task_id(3): None}

    found = decided_by_part(job, known, now)

    assert found is not None
    assert judge(job, found, now).kind is kind


@pytest.mark.parametrize(("started_at", "kind"), [(NOW, StopKind.USER_ERROR), (None, StopKind.NOT_STARTED)])
def test_ranks_that_had_all_started_have_waited_for_nobody_whatever_is_left_of_the_others(started_at, kind):
    """A Job that fails deletes the pods that live, and with them when they started."""
    failed = replace(ended(0, 1, NOW + MET_WITHIN), waited_in_vain=True)
    attempt = on_cluster(node="node-0", started_at=started_at).current_attempt

    assert classify_stop(failed, "main", attempt, SOON, target=Target.ACK).kind is kind


@pytest.mark.parametrize(
    ("placed", "ran", "kind"),
    [
        (timedelta(minutes=11), timedelta(minutes=10), StopKind.NOT_STARTED),
        (timedelta(minutes=9), timedelta(minutes=10), StopKind.USER_ERROR),
        (timedelta(minutes=11), MET_WITHIN - timedelta(seconds=1), StopKind.USER_ERROR),
        (None, timedelta(minutes=10), StopKind.USER_ERROR),
    ],
    ids=["before", "after", "failed at once", "not known"],
)
def test_pods_that_end_before_their_launch_does_have_not_found_each_other(placed, ran, kind):
    """Their Service is made last, and the API may refuse it for longer than they wait."""
    job = on_cluster(node="node-0")
    placement = job.current_attempt.placement
    placement = replace(placement, placed_at=None if placed is None else NOW + placed)
    several = replace(job, attempt=replace(job.current_attempt, placement=placement))
    failed = ended(0, 1, NOW + ran)

    assert judge(several, failed, NOW + timedelta(minutes=12)).kind is kind
    assert judge(several, replace(failed, started_at=None), SOON).kind is StopKind.USER_ERROR
    # Its answer was lost, and its effect was not.
    assert judge(several, ended(0, 0, NOW + ran), NOW + timedelta(minutes=12)).kind is StopKind.SUCCESS
    alone = replace(several, definition=replace(several.definition, nodes=1))
    assert judge(alone, failed, NOW + timedelta(minutes=12)).kind is StopKind.USER_ERROR


def test_a_rank_that_never_started_has_waited_for_nobody():
    found = together(gang(), ended(0, None, started_at=None), rank(1), rank(2))

    assert not found.waited_in_vain


def test_a_rank_whose_agent_is_away_is_waited_for_by_those_that_are_done():
    late = SOON + PEERS_MAY_TAKE
    unheard = rank(1, connectivity="DISCONNECTED")

    assert tell(gang(), ended(0, 0), unheard, ended(2, 0), now=late).state is JobState.RUNNING
    assert tell(gang(), ended(0, 0), rank(1), ended(2, 0), now=late).state is JobState.STOPPING
    assert tell(gang(), ended(0, 1), unheard, ended(2, 0), now=late).state is JobState.STOPPING


@pytest.mark.parametrize("task", [task_id(2), None])
def test_a_warning_while_ranks_are_placed_gives_all_up(task):
    warning = HostWarned("i-1", SOON, task_id=task)
    job = decided(pending(), warning).job

    assert job.state is JobState.LAUNCHING
    assert job.current_attempt.intent == StopIntent(IntentKind.INTERRUPTION, SOON, "spot interruption warning for i-1")
    assert stopped_tasks(job) == ({task} if task else set())
    # All that are there are stopped; of a part nothing is interrupted.
    whole = decided(job, answered(TaskPlaced(task_id(1), (task_id(2), task_id(3))))).job
    assert (whole.state, whole.current_attempt.intent) == (JobState.STOPPING, job.current_attempt.intent)
    assert len([each for each in whole.pending if isinstance(each, LookForWarning)]) == 3
    part = decided(job, answered(PlacementFailed(("1 of 3 tasks were placed",), placed=(task_id(1),)))).job
    assert part.current_attempt.intent.kind is IntentKind.START_WITHDRAWN


def test_a_part_that_was_stopped_for_a_warning_was_stopped_by_nobody_outside():
    job = decided(pending(), HostWarned("i-1", SOON, task_id=task_id(1))).job
    much_later = SOON + timedelta(minutes=6)
    placement = PlacementFailed(("1 of 3 tasks were placed",), placed=(task_id(1),))
    part = decided(job, answered(placement), much_later).job
    warned = {"stop_code": "UserInitiated", "stopped_reason": "Relaunch: retirement by AWS for i-1"}

    end = {task_id(1): ended(0, 137, at=SOON + timedelta(minutes=2), **warned)}
    stopped = decided(part, TaskSeen(observe_gang(part, end, much_later)), much_later).job

    assert part.current_attempt.intent.at == SOON
    assert (stopped.state, stopped.current_attempt.stop.kind) == (JobState.WAITING, StopKind.NOT_STARTED)


def test_a_warning_is_of_a_job_whose_ranks_are_placed_there_alone():
    assert decided(pending(), HostWarned("i-9", SOON)).is_ignored
    assert decided(pending(), HostWarned("i-1", SOON, is_rebalance=True)).is_ignored
    assert decided(SITUATIONS["fz"], HostWarned(INSTANCE_ID, SOON)).is_ignored
    cancelled = StopIntent(IntentKind.CANCEL, NOW, "enough")
    job = replace(pending(), attempt=replace(pending().current_attempt, intent=cancelled))
    assert decided(job, HostWarned("i-1", SOON, task_id=task_id(2))).job.current_attempt.intent == cancelled


def test_the_tasks_that_were_named_before_an_answer_was_lost_are_kept():
    job = pending()
    for placed in ((task_id(1),), (task_id(1), task_id(2)), ()):
        job = decided(job, answered(LaunchUncertain("no answer to RunTask", placed=placed)), SOON).job

    assert job.current_attempt.placement.placed_ids == (task_id(1), task_id(2))
    placed = decided(job, answered(TaskPlaced(task_id(1), (task_id(2), task_id(3)))), SOON).job
    assert placed.current_attempt.placement.placed_ids == ()


@pytest.mark.parametrize(
    ("made_at", "code", "kind"),
    [
        (NOW + timedelta(minutes=1), 1, StopKind.INTERRUPTION),
        (NOW + timedelta(minutes=1), 0, StopKind.SUCCESS),
        (NOW - timedelta(minutes=1), 1, StopKind.USER_ERROR),
    ],
)
def test_what_a_pod_ends_with_that_replaced_another_is_no_word_of_those_that_had_met(made_at, code, kind):
    """Servers before 1.25 make one in the place of a pod that went with its node, which finds no others."""
    stopped = replace(ended(0, code), newest_pod_at=made_at)

    assert judge(on_cluster(started_at=NOW), stopped, SOON).kind is kind
