from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import (
    INSTANCE_ID,
    NOW,
    container_instance_arn,
    make_definition,
    make_node,
    make_offering_key,
    make_running_attempt,
    make_running_job,
    task_id,
)
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.jobs.attempt import IntentKind, PlacementState, Stop, StopIntent, StopKind
from relaunch.core.jobs.effects import CountRun, Effect, LookForWarning, StopTask
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.events import CancelAsked, HostEnded, HostWarned, TaskMissing, TaskSeen, TimePassed
from relaunch.core.lifecycle.running import LONGEST_UNWATCHED, MISSING_GRACE
from relaunch.core.lifecycle.table import decide
from relaunch.core.lifecycle.unconfirmed_stops import HOST_END_GRACE
from relaunch.core.offerings.spot_runs import Observed, SpotRun
from unit.core.lifecycle.steps import SOON, after, decided
from unit.core.lifecycle.table_matrix import LIMITS, SITUATIONS, intent, seen, seen_stopped, with_attempt

WARNING = f"spot interruption warning for {INSTANCE_ID}"
UNKNOWN_TO_THE_CLUSTER = "the cluster does not know the task any more"


def stop_because(reason: str) -> Effect:
    return StopTask(task_id(), f"Relaunch: {reason}")


def test_a_task_that_starts_starts_the_clocks():
    job = after(SITUATIONS["pl"], seen("RUNNING", started_at=NOW + timedelta(seconds=30)))

    assert job.current_attempt.started_at == NOW + timedelta(seconds=30)
    assert job.totals.first_started_at == NOW + timedelta(seconds=30)
    assert job.wake_at == SOON + timedelta(minutes=10)


def test_a_task_that_runs_without_a_start_time_started_when_it_was_seen():
    assert after(SITUATIONS["pl"], seen("RUNNING")).current_attempt.started_at == SOON


def test_the_next_look_is_not_after_the_jobs_own_limit():
    job = replace(SITUATIONS["pl"], definition=make_definition(max_runtime=timedelta(minutes=4)))

    assert after(job, seen("RUNNING", started_at=NOW)).wake_at == NOW + timedelta(minutes=4)


def test_the_machine_is_saved_with_the_observation_that_has_it():
    machine = make_node(instance_id="i-0aaa", zone="us-east-1b")
    pending = seen("PENDING", node=container_instance_arn())

    decision = decided(SITUATIONS["fz"], TaskSeen(pending.observation, machine))

    attempt = decision.job.current_attempt
    assert decision.link_instance
    assert (attempt.instance_id, attempt.zone) == ("i-0aaa", "us-east-1b")
    assert attempt.node == container_instance_arn()
    assert decision.timeline[0].detail == "i-0aaa us-east-1b"
    assert not decided(SITUATIONS["fz"], pending).link_instance


def test_a_stopped_task_unlinks_the_job_from_its_machine_once():
    running = with_attempt("ru", instance_id="i-0aaa")

    still = decided(running, seen("RUNNING", version=7))
    stopped = decided(running, seen_stopped(0, version=7))
    unknown = decided(with_attempt("ru", instance_id=None), seen_stopped(0, version=7))
    later = decided(stopped.job, CancelAsked("no more"))

    assert (still.unlinked_instances, stopped.unlinked_instances) == ((), ("i-0aaa",))
    assert (unknown.unlinked_instances, later.unlinked_instances) == ((), ())


def test_a_warning_that_came_before_it_was_known_whose_machine_it_is_is_looked_for_once():
    machine = make_node(instance_id="i-0aaa")
    stopping = seen("RUNNING", desired_status="STOPPED")

    first = decided(SITUATIONS["fz"], TaskSeen(seen("PENDING").observation, machine))
    again = decided(first.job, seen("PENDING", version=7))
    stops = decided(SITUATIONS["fx"], TaskSeen(stopping.observation, machine))

    assert first.job.pending == (LookForWarning("i-0aaa"),)
    assert (again.job.current_attempt.instance_id, again.job.pending, again.link_instance) == ("i-0aaa", (), False)
    assert stops.job.pending == (stop_because("cancel"), LookForWarning("i-0aaa"))


def test_a_start_on_spot_is_counted_once_since_when_the_task_runs():
    run = SpotRun(make_offering_key(), "resnet-1f2e3d4c/1/1", Observed.START, NOW + timedelta(seconds=30))
    first = decided(SITUATIONS["pl"], seen("RUNNING", started_at=run.at))
    again = decided(first.job, seen("RUNNING", version=7))

    assert first.job.pending == (CountRun(run),)
    assert again.job.pending == ()


def test_a_start_on_a_machine_of_our_own_says_that_it_is_one():
    placement = replace(SITUATIONS["pl"].current_attempt.placement, machine_id="m-1")

    (count,) = after(with_attempt("pl", placement=placement), seen("RUNNING")).pending

    assert isinstance(count, CountRun)
    assert count.run.on_own_machine


def test_a_start_on_demand_says_nothing_of_spot():
    offering = make_offering_key(purchase=PurchaseOption.ON_DEMAND)
    placement = replace(SITUATIONS["pl"].current_attempt.placement, offering=offering)

    assert after(with_attempt("pl", placement=placement), seen("RUNNING")).pending == ()


def test_an_observation_before_the_response_of_run_task_places_the_task():
    attempt = after(SITUATIONS["fz"], seen("PENDING")).current_attempt

    assert attempt.task_id == task_id()
    assert attempt.placement.state is PlacementState.PLACED
    assert attempt.placement.placed_at == SOON
    assert attempt.placement.outcome == "task seen before the answer to its launch"
    assert (attempt.task_version, attempt.task_status) == (6, "PENDING")


def test_a_task_that_gets_its_machine_has_longer_to_start():
    waiting = after(SITUATIONS["fz"], seen("PROVISIONING"))
    pulling = after(SITUATIONS["fz"], seen("PENDING", node=container_instance_arn()))

    assert waiting.wake_at == SOON + timedelta(minutes=15)
    assert pulling.wake_at == SOON + timedelta(minutes=30)


def test_a_task_that_turns_out_to_exist_after_a_cancel_is_stopped():
    job = after(SITUATIONS["fx"], seen("PROVISIONING"))

    assert job.state is JobState.STOPPING
    assert job.current_attempt.intent == intent(IntentKind.CANCEL)
    assert job.pending == (stop_because("cancel"),)


def test_a_task_that_starts_while_it_is_withdrawn_has_used_its_attempt_up():
    withdrawn = with_attempt("pl", intent=intent(IntentKind.PLACEMENT_WITHDRAWN))

    job = after(replace(withdrawn, state=JobState.STOPPING), seen("RUNNING", started_at=SOON))

    assert job.state is JobState.STOPPING
    assert job.current_attempt.started_at == SOON


def test_a_stop_says_why_once_and_then_how_far_it_has_come():
    stopping = seen("RUNNING", desired_status="STOPPED", stopped_reason="Essential container in task exited")
    first = decided(SITUATIONS["ru"], stopping)
    times = {"pull_started_at": NOW, "pull_stopped_at": SOON, "execution_stopped_at": SOON}
    then = decided(
        first.job,
        seen("DEPROVISIONING", version=7, stopped_reason="Essential container in task exited", **times),
    )

    assert first.timeline[0].detail == "Essential container in task exited"
    assert then.timeline[0].detail == "DEPROVISIONING"
    assert then.job.current_attempt.task_status == "DEPROVISIONING"
    assert then.job.current_attempt.program_ended_at == SOON
    assert then.job.current_attempt.pulled == (NOW, SOON)
    assert decided(SITUATIONS["ru"], seen("DEACTIVATING")).timeline[0].detail == "DEACTIVATING"


def test_a_job_that_runs_again_is_not_interrupted_any_more():
    job = replace(SITUATIONS["pl"], interrupted_at=NOW)

    assert after(job, seen("PENDING")).interrupted_at == NOW
    assert after(job, seen("RUNNING")).interrupted_at is None


def test_a_task_that_runs_is_said_to_run_once():
    first = decided(SITUATIONS["pl"], seen("RUNNING"))
    then = decided(first.job, seen("RUNNING", version=7))

    assert [entry.event for entry in (*first.timeline, *then.timeline)] == ["running", "still running"]


def test_a_warning_saves_the_intent_stops_the_task_and_shuts_the_offering_for_nobody():
    job = after(SITUATIONS["ru"], HostWarned(INSTANCE_ID, SOON))

    assert job.current_attempt.warned_at == SOON
    assert job.current_attempt.intent == StopIntent(IntentKind.INTERRUPTION, SOON, WARNING)
    assert job.pending == (stop_because(WARNING),)
    assert job.totals.interruptions == 0


def test_a_warning_from_ecs_tells_the_machine_too():
    running = make_running_job(attempt=make_running_attempt(instance_id=None))

    assert after(running, HostWarned("i-0aaa", SOON, task_id())).current_attempt.instance_id == "i-0aaa"


def test_a_warning_of_another_task_is_not_ours():
    assert decided(SITUATIONS["ru"], HostWarned("i-0aaa", SOON, task_id(9))).is_ignored


def test_the_earliest_of_several_warnings_counts_whichever_comes_first():
    earlier, later = (HostWarned(INSTANCE_ID, SOON + timedelta(seconds=seconds)) for seconds in (0, 70))

    job = after(SITUATIONS["ru"], later, earlier)

    assert job.current_attempt.warned_at == SOON
    assert [decided(job, each).is_ignored for each in (earlier, later)] == [True, True]


def test_a_training_that_saw_the_warning_first_and_exited_0_is_launched_again():
    stopping = after(SITUATIONS["ru"], seen("DEACTIVATING", desired_status="STOPPED"))
    warned = after(stopping, HostWarned(INSTANCE_ID, SOON + timedelta(seconds=2)))

    job = after(warned, seen_stopped(0, version=7, execution_stopped_at=SOON))

    assert warned.current_attempt.intent is None
    assert warned.pending == ()
    assert job.state is JobState.WAITING
    assert job.totals.interruptions == 1


def test_a_machine_that_ends_is_kept_in_mind_since_its_first_word():
    job = after(SITUATIONS["ru"], HostEnded(INSTANCE_ID, "shutting-down", SOON))
    job = after(job, HostEnded(INSTANCE_ID, "terminated", SOON + timedelta(minutes=1)))

    assert job.current_attempt.host_ended_at == SOON
    assert job.wake_at == SOON + timedelta(minutes=1)


def test_what_ec2_tells_again_of_the_end_of_a_machine_puts_off_no_look_and_fills_no_timeline():
    ended = after(SITUATIONS["ru"], HostEnded(INSTANCE_ID, "terminated", SOON))

    again = decided(ended, HostEnded(INSTANCE_ID, "terminated", SOON), SOON + timedelta(minutes=1))
    earlier = after(ended, HostEnded(INSTANCE_ID, "shutting-down", SOON - timedelta(minutes=4)))

    assert again.is_ignored
    assert earlier.current_attempt.host_ended_at == SOON - timedelta(minutes=4)


@pytest.mark.parametrize("situation", ["ru", "pl"])
@pytest.mark.parametrize("event", [TaskMissing(task_id()), HostEnded(INSTANCE_ID, "terminated", SOON)])
def test_a_task_that_seems_to_be_gone_is_looked_at_every_minute(situation, event):
    doubtful = after(SITUATIONS[situation], event)

    looked_at = after(doubtful, TimePassed(), now=SOON + timedelta(minutes=1))

    assert looked_at.wake_at == SOON + timedelta(minutes=2)


def test_a_missing_task_is_lost_only_when_it_is_missing_at_every_look_throughout_the_grace():
    missing = TaskMissing(task_id())
    first = after(SITUATIONS["ru"], missing)

    again = decided(first, missing, SOON + timedelta(minutes=2))
    early = decided(again.job, missing, SOON + timedelta(minutes=4))
    late = after(early.job, missing, now=SOON + MISSING_GRACE)

    assert first.wake_at == SOON + timedelta(minutes=1)
    assert (again.job.wake_at, again.timeline) == (SOON + timedelta(minutes=3), ())
    assert (early.job.wake_at, early.timeline) == (SOON + MISSING_GRACE, ())
    assert early.job.current_attempt.missing == (SOON, SOON + timedelta(minutes=4))
    assert late.state is JobState.WAITING
    assert late.current_attempt.stop == Stop(StopKind.HOST_LOST, SOON, stopped_reason=UNKNOWN_TO_THE_CLUSTER)
    assert late.current_attempt.placement.is_lost is True
    assert late.current_attempt.task_status == "STOPPED"
    assert late.totals.run_seconds == 60
    assert late.totals.interruptions == 1


def test_a_missing_task_that_nobody_looked_at_for_a_while_may_have_been_there_meanwhile():
    first = after(SITUATIONS["ru"], TaskMissing(task_id()))
    later = SOON + LONGEST_UNWATCHED + timedelta(seconds=1)

    again = after(first, TaskMissing(task_id()), now=later)
    much_later = after(again, TaskMissing(task_id()), now=later + timedelta(hours=1))
    assert again.current_attempt.missing == (later, later)
    assert much_later.state is JobState.RUNNING
    # Once its host has ended it was not, but the target may describe its end.
    ended = HostEnded(INSTANCE_ID, "terminated", later - HOST_END_GRACE)
    once = after(first, ended, TaskMissing(task_id()), now=later)
    twice = after(once, TaskMissing(task_id()), now=later + timedelta(hours=1))
    assert (once.state, twice.state) == (JobState.RUNNING, JobState.WAITING)


def test_a_task_that_ecs_knows_again_is_not_lost():
    job = after(SITUATIONS["ru"], TaskMissing(task_id()))
    assert job.current_attempt.missing == (SOON, SOON)
    found = after(job, seen("RUNNING", version=5))

    assert found.state is JobState.RUNNING
    assert found.current_attempt.missing is None
    assert found.current_attempt.started_at == NOW


@pytest.mark.parametrize(
    ("kind", "intent_at", "state"),
    [
        pytest.param(IntentKind.INTERRUPTION, NOW, JobState.WAITING, id="interrupted"),
        pytest.param(IntentKind.INTERRUPTION, NOW + timedelta(minutes=3), JobState.WAITING, id="interrupted-meanwhile"),
        pytest.param(IntentKind.CANCEL, NOW, JobState.CANCELLED, id="cancelled"),
        pytest.param(IntentKind.TIME_OUT, NOW, JobState.TIMED_OUT, id="out-of-time"),
        pytest.param(IntentKind.PLACEMENT_WITHDRAWN, NOW, JobState.WAITING, id="withdrawn"),
    ],
)
def test_a_task_that_is_gone_after_our_own_stop_was_stopped_by_it(kind, intent_at, state):
    attempt = make_running_attempt(intent=StopIntent(kind, intent_at, "because"), missing=(SOON, SOON + MISSING_GRACE))
    stopping = make_running_job(state=JobState.STOPPING, attempt=attempt)

    job = after(stopping, TaskMissing(task_id()), now=SOON + MISSING_GRACE)

    assert job.state is state
    assert job.totals.failures == 0
    assert job.current_attempt.placement.is_lost is True
    stop = job.current_attempt.stop
    assert stop is not None
    assert (stop.at, stop.stopped_reason) == (max(SOON, intent_at), UNKNOWN_TO_THE_CLUSTER)


def test_a_cancel_stops_the_task_with_the_intent_saved_first():
    job = after(SITUATIONS["ru"], CancelAsked("not needed"))

    assert job.cancel_requested == "not needed"
    assert job.current_attempt.intent == StopIntent(IntentKind.CANCEL, SOON, "not needed")
    assert job.pending == (stop_because("not needed"),)


def test_a_job_cancelled_while_its_task_stops_for_another_reason_is_not_launched_again():
    job = after(SITUATIONS["si"], CancelAsked("not needed"), seen_stopped(143))

    assert job.state is JobState.CANCELLED
    assert job.reason.startswith("not needed (the machine was taken away")
    assert job.totals.interruptions == 1


def test_a_program_that_finishes_by_itself_before_it_is_cancelled_has_succeeded():
    job = after(SITUATIONS["sn"], CancelAsked("not needed"), seen_stopped(0))

    assert job.state is JobState.SUCCEEDED


def test_a_stop_that_nobody_answers_is_asked_for_again():
    decision = decided(SITUATIONS["si"], TimePassed())

    assert decision.job.pending == (stop_because("interruption"),)
    assert decision.job.wake_at == SOON + timedelta(minutes=3)
    assert len(decision.timeline) == 1


def test_no_task_is_stopped_by_us_without_an_intent():
    decision = decided(SITUATIONS["sn"], TimePassed())

    assert decision.job.pending == ()
    assert decision.job.wake_at == SOON + timedelta(minutes=3)
    assert decision.timeline == ()


def test_a_running_job_is_looked_at_again_and_again_in_silence():
    decision = decided(replace(SITUATIONS["ru"], pending=(stop_because("done"),)), TimePassed())

    assert decision.job == replace(SITUATIONS["ru"], wake_at=SOON + timedelta(minutes=10))
    assert decision.timeline == ()


@pytest.mark.parametrize("situation", ["ru", "pl"])
def test_a_job_out_of_time_has_its_task_stopped(situation):
    job = after(SITUATIONS[situation], TimePassed(), now=NOW + timedelta(hours=36))

    reason = "the deadline of 36h after acceptance has passed"
    assert job.current_attempt.intent == StopIntent(IntentKind.TIME_OUT, NOW + timedelta(hours=36), reason)
    assert [type(effect) for effect in job.pending] == [StopTask]
    assert after(job, seen_stopped(0, NOW + timedelta(hours=37)), now=NOW + timedelta(hours=37)).state is (
        JobState.TIMED_OUT
    )


def test_the_verdict_on_a_task_that_a_signal_ended_waits_a_minute():
    held = after(SITUATIONS["ru"], seen_stopped(143))
    assert (held.state, held.wake_at) == (JobState.STOPPING, SOON + timedelta(minutes=1))

    again = decide(held, seen_stopped(143), SOON + timedelta(seconds=10), LIMITS)
    assert (again.job.wake_at, again.timeline) == (held.wake_at, ())

    late = decide(replace(held, pending=()), seen_stopped(143), SOON + timedelta(minutes=1), LIMITS).job
    assert (late.state, late.totals.failures) == (JobState.WAITING, 1)


def test_a_verdict_that_no_event_of_ec2_changes_waits_for_none():
    job = with_attempt("ru", intent=StopIntent(IntentKind.INTERRUPTION, NOW, ""))

    assert after(job, seen_stopped(143)).state is JobState.WAITING


def test_the_container_that_ended_first_is_kept():
    statuses = {"main": "RUNNING", "log": "STOPPED"}
    stopping = seen("RUNNING", desired_status="STOPPED", container_statuses=statuses)

    assert after(SITUATIONS["ru"], stopping).current_attempt.ended_first == "log"
