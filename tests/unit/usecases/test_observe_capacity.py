"""Warnings and ends of machines reach the jobs on them, in time and only those."""

from datetime import timedelta
from unittest.mock import Mock

import pytest

from fakes.builders import make_offering_key
from fakes.story import MINUTE, Story, machine, push
from relaunch.core.jobs.attempt import StopKind
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.instance_events import InstanceEvent, InstanceEventKind
from relaunch.ports import PermanentError, TransientError
from relaunch.usecases.cancel_job import cancel_job
from relaunch.usecases.observe_capacity import observe_capacity

HERE = machine().instance_id


def fail_once(method):
    def call(*arguments):
        if not failures:
            failures.append(True)
            raise TransientError("storing: no answer")
        return method(*arguments)

    failures = []
    return call


def no_answer(*_arguments):
    raise TransientError("no answer")


def three_jobs_of_which_the_first_cannot_be_loaded(story: Story) -> list[str]:
    """Launch three jobs on a machine; return their ids in the order in which they are told."""
    for digit in "abc":
        story.launch(push(digit * 40))
    job_ids = story.jobs.load_on_instance(HERE)
    load = story.jobs.load_job
    story.jobs.load_job = lambda job_id: no_answer() if job_id == job_ids[0] else load(job_id)
    return job_ids


def rebalance(story: Story, instance_id: str = HERE):
    return observe_capacity(InstanceEvent(InstanceEventKind.REBALANCE_RECOMMENDATION, instance_id), story.deps)


def test_machines_that_are_not_ours_are_nobodys_business(story):
    story.launch()

    assert story.warn("i-0somebody") == []
    assert story.change_host("i-0somebody", "terminated") == []
    assert rebalance(story, "i-0somebody") == []
    assert story.tasks.stops == []


def test_every_task_on_a_machine_is_stopped(story):
    first, second = story.launch(), story.launch(push("b" * 40))

    jobs = story.warn(HERE)

    assert {job.job_id for job in jobs} == {first, second}
    assert [arn for arn, _ in story.tasks.stops] == [story.arn(first), story.arn(second)]


def test_a_warning_looks_only_at_the_jobs_that_still_run_on_the_machine(story):
    # One that is kept runs hundreds, of which a warning leaves no time to load each.
    over = [story.launch(push(digit * 40)) for digit in "abc"]
    for job_id in over:
        story.end(job_id)
    running = story.launch(push("d" * 40))
    loaded: list[str] = []
    load = story.jobs.load_job
    story.jobs.load_job = lambda job_id: loaded.append(job_id) or load(job_id)

    assert [job.job_id for job in story.warn(HERE)] == [running]
    assert set(loaded) == {running}


def test_a_machine_that_was_not_noted_yet_is_asked_for_at_ecs(story, placed_id):
    story.tasks.run(story.arn(placed_id), machine())
    assert story.jobs.load_on_instance(HERE) == []

    story.warn(HERE)

    assert story.job(placed_id).state is JobState.STOPPING
    assert story.attempt(placed_id).instance_id == HERE
    assert story.tasks.stops[0][0] == story.arn(placed_id)


def test_a_warning_that_comes_before_runtasks_answer_is_stored_is_heeded(story):
    job_id = story.launch_unanswered(takes_effect=True)
    (arn,) = story.tasks.tasks
    story.tasks.run(arn, machine(), started_at=story.now)

    story.warn(HERE)

    assert story.job(job_id).state is JobState.STOPPING
    assert [stopped for stopped, _ in story.tasks.stops] == [arn]


def test_of_two_tasks_on_a_machine_the_one_that_was_not_noted_yet_is_stopped_too(story):
    noted = story.launch()
    unnoted = story.submit(push("b" * 40))
    story.deliver()
    story.tasks.run(story.arn(unnoted), machine())

    story.warn(HERE)

    assert story.job(noted).state is JobState.STOPPING
    assert story.job(unnoted).state is JobState.STOPPING
    assert len(story.tasks.stops) == 2


def test_tasks_of_others_on_our_machine_are_left_alone(story, running_id):
    other = story.tasks.change(story.arn(running_id), started_by="somebody")
    story.tasks.tasks[story.arn(running_id)] = other

    story.warn(HERE)

    assert [job.job_id for job in story.warn(HERE)] == [running_id]


def test_a_second_warning_changes_nothing(story, running_id):
    story.warn(HERE)
    warned = story.job(running_id)

    story.clock.advance(30)
    story.warn(HERE)

    assert story.job(running_id) == warned
    assert len(story.tasks.stops) == 1


def test_a_late_warning_of_the_old_machine_does_not_stop_the_new_attempt(story, running_id):
    story.lose_host(running_id)
    story.settle()
    story.run(running_id, machine(2, "g6.xlarge"))

    story.warn(HERE)
    story.change_host(HERE, "terminated")

    assert story.job(running_id).state is JobState.RUNNING
    assert story.attempt(running_id).warned_at is None
    assert story.attempt(running_id).host_ended_at is None
    assert story.tasks.stops == []


def test_the_trouble_of_one_job_does_not_cost_another_its_two_minutes(story):
    first, second = story.launch(), story.launch(push("b" * 40))
    story.tasks.stop_failure = TransientError("ThrottlingException")

    story.tasks.find_tasks_on = lambda _instance_id: []

    with pytest.raises(TransientError):
        story.warn(HERE)
    assert [arn for arn, _ in story.tasks.stops] == [story.arn(second)]

    story.warn(HERE)
    assert [arn for arn, _ in story.tasks.stops] == [story.arn(second), story.arn(first)]
    assert story.job(first).state is JobState.STOPPING


def test_a_warning_that_finds_a_task_tells_that_it_lives_though_ecs_did_not_know_it(story, running_id):
    story.warn(HERE)
    task = story.tasks.tasks.pop(story.arn(running_id))
    story.reconcile(after=10 * MINUTE)
    assert story.attempt(running_id).missing is not None

    story.tasks.tasks[task.task_id] = task
    story.warn(HERE)

    assert story.attempt(running_id).missing is None


def test_a_job_that_cannot_be_loaded_keeps_no_other_job_of_the_machine_from_being_stopped(story):
    first, *others = three_jobs_of_which_the_first_cannot_be_loaded(story)

    with pytest.raises(TransientError, match="no answer"):
        story.warn(HERE)

    # The task of the first one is known to ECS.
    assert [arn for arn, _ in story.tasks.stops] == [story.arn(job_id) for job_id in (*others, first)]
    assert story.tasks.drained == [HERE]


def test_a_job_that_cannot_be_loaded_keeps_no_other_job_from_hearing_that_the_machine_ended(story):
    first, *others = three_jobs_of_which_the_first_cannot_be_loaded(story)

    with pytest.raises(TransientError, match="no answer"):
        story.change_host(HERE, "terminated")

    assert story.attempt(first).host_ended_at is None
    assert [story.attempt(job_id).host_ended_at for job_id in others] == [story.now] * 2


def test_a_job_that_cannot_be_loaded_does_not_keep_a_rebalance_recommendation_from_being_counted(story):
    three_jobs_of_which_the_first_cannot_be_loaded(story)

    with pytest.raises(TransientError, match="no answer"):
        rebalance(story)

    assert sum(runs.interruptions for runs in story.deps.capacity.load_capacity(story.now)[1]) == 0.5


@pytest.mark.parametrize(
    ("port", "call"),
    [
        pytest.param("jobs", "load_on_instance", id="the table finds no jobs"),
        pytest.param("tasks", "find_tasks_on", id="ECS lists no tasks"),
    ],
)
def test_a_warning_is_heeded_by_the_one_of_table_and_ecs_that_answers(story, running_id, port, call):
    setattr(getattr(story, port), call, no_answer)

    with pytest.raises(TransientError, match="no answer"):
        story.warn(HERE)

    assert [arn for arn, _ in story.tasks.stops] == [story.arn(running_id)]
    assert story.tasks.drained == [HERE]


def test_an_outage_of_one_job_is_retried_though_another_can_never_be_loaded(story):
    story.launch()
    story.launch(push("b" * 40))
    story.jobs.load_job = Mock(side_effect=[PermanentError("unreadable"), TransientError("no answer")])

    with pytest.raises(TransientError, match="no answer"):
        story.change_host(HERE, "terminated")


def test_a_warned_machine_takes_no_new_task_once_every_stop_was_sent(story):
    story.launch()
    story.tasks.drain_failure = TransientError("ThrottlingException: draining")

    with pytest.raises(TransientError, match="draining"):
        story.warn(HERE)
    assert len(story.tasks.stops) == 1
    assert story.tasks.drained == []

    story.warn(HERE)
    assert story.tasks.drained == [HERE]
    assert len(story.tasks.stops) == 1


def test_a_warning_is_handled_though_its_machine_may_not_be_drained(story):
    job_id = story.launch()
    story.tasks.drain_failure = PermanentError("AccessDeniedException: draining")

    assert [job.job_id for job in story.warn(HERE)] == [job_id]
    assert len(story.tasks.stops) == 1
    assert "not drained" in story.log.decisions


def test_a_warning_that_cannot_be_stored_is_heeded_all_the_same(story):
    story.launch()
    story.jobs.save_warning = fail_once(story.jobs.save_warning)

    with pytest.raises(TransientError, match="storing"):
        story.warn(HERE)
    assert len(story.tasks.stops) == 1

    story.warn(HERE)
    assert story.jobs.load_warning(HERE) == story.now


def test_a_task_that_lands_on_a_warned_machine_is_warned_too(story):
    story.warn(HERE)
    warned_at = story.now
    story.clock.advance(5)
    job_id = story.submit_and_deliver()

    story.run(job_id, machine())

    assert story.job(job_id).state is JobState.STOPPING
    assert story.attempt(job_id).warned_at == warned_at
    assert [arn for arn, _ in story.tasks.stops] == [story.arn(job_id)]


def test_a_warning_that_cannot_be_looked_for_is_looked_for_again(story):
    story.warn(HERE)
    job_id = story.submit_and_deliver()
    story.jobs.load_warning = fail_once(story.jobs.load_warning)

    with pytest.raises(TransientError, match="storing"):
        story.run(job_id, machine())
    assert story.job(job_id).state is JobState.RUNNING

    story.tell(story.tasks.tasks[story.arn(job_id)])
    assert story.job(job_id).state is JobState.STOPPING


def test_a_task_that_was_cancelled_before_its_warned_machine_was_known_stays_cancelled(story):
    story.warn(HERE)
    job_id = story.submit_and_deliver()
    cancel_job(job_id, "not needed", story.deps)

    story.run(job_id, machine())
    story.end(job_id, 0, stop_code="UserInitiated")

    assert story.job(job_id).state is JobState.CANCELLED
    assert story.job(job_id).pending == ()


def test_an_interruption_shuts_no_offering_for_other_jobs(story):
    job_id = story.launch()
    story.warn(HERE)
    story.lose_host(job_id)

    memory, (runs,), _ = story.deps.capacity.load_capacity(story.now)
    assert memory == {}
    assert (runs.offering, runs.interruptions) == (make_offering_key(zone="us-east-1a"), 1.0)


@pytest.mark.parametrize("seconds", [110, -5], ids=["answers-the-warning", "ahead-of-the-warning"])
def test_a_program_that_exits_0_about_the_time_of_a_warning_has_not_finished(story, running_id, seconds):
    story.clock.advance(10 * MINUTE)
    warned_at = story.now
    story.warn(HERE)

    story.end(running_id, 0, stopped_at=warned_at + timedelta(seconds=seconds), stop_code="EssentialContainerExited")

    stop = story.attempt(running_id).stop
    assert stop is not None
    assert stop.kind is StopKind.INTERRUPTION
    assert story.job(running_id).state is JobState.WAITING


@pytest.mark.parametrize("state", ["shutting-down", "terminated", "stopping", "stopped"])
def test_the_end_of_a_machine_is_noted_and_its_task_looked_at_soon(story, running_id, state):
    story.clock.advance(MINUTE)

    (job,) = story.change_host(HERE, state)

    assert job.job_id == running_id
    assert story.attempt(running_id).host_ended_at == story.now
    assert story.job(running_id).wake_at == story.now + MINUTE
    assert story.tasks.stops == []


@pytest.mark.parametrize("state", ["pending", "running"])
def test_the_beginning_of_a_machine_means_nothing(story, running_id, state):
    before = story.job(running_id)

    assert story.change_host(HERE, state) == []
    assert story.job(running_id) == before


def test_a_rebalance_recommendation_only_counts_for_the_rate_once_per_machine(story, running_id):
    before = story.job(running_id)

    assert [job.job_id for job in rebalance(story)] == [running_id]
    rebalance(story)

    assert story.job(running_id) == before
    memory, (runs,), _ = story.deps.capacity.load_capacity(story.now)
    assert (memory, runs.interruptions) == ({}, 0.5)


def test_a_rebalance_recommendation_for_a_machine_the_job_has_left_is_ignored(story, running_id):
    story.end(running_id, 1)
    story.settle()
    story.run(running_id, machine(2))

    assert rebalance(story) == []
    assert story.deps.capacity.load_capacity_memory(story.now) == {}


def test_the_tasks_of_a_warned_machine_are_stopped_though_the_table_does_not_answer(story):
    arns = [story.arn(story.launch(push(digit * 40))) for digit in "ab"]
    story.jobs.save_warning = no_answer
    story.jobs.load_on_instance = Mock(side_effect=AssertionError("each call that hangs takes half of the time"))
    story.jobs.load_job = no_answer

    with pytest.raises(TransientError, match="no answer"):
        story.warn(HERE)

    reason = f"Relaunch: spot interruption warning for {HERE}, while its job could not be read"
    assert story.tasks.stops == [(arn, reason) for arn in arns]
    assert story.tasks.drained == [HERE]


def test_a_rebalance_recommendation_stops_nothing_that_the_table_does_not_know(story):
    story.launch()
    story.jobs.load_on_instance = no_answer

    with pytest.raises(TransientError, match="no answer"):
        rebalance(story)

    assert story.tasks.stops == []
