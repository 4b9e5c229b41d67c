"""Comparing the jobs table with the live cluster."""

from datetime import timedelta
from unittest.mock import Mock

import pytest

from fakes.builders import NOW, make_job, task_id
from fakes.story import MINUTE, Story, machine, push
from relaunch.core.jobs.effects import StopTask
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.metrics import Metric
from relaunch.ports import PermanentError, TransientError
from relaunch.usecases.cancel_job import cancel_job
from relaunch.usecases.sweep_cluster import GRACE, is_sweep_due, sweep_cluster

STRAY = task_id(77)


def watch_single_calls(story: Story) -> list[Mock]:
    """Count from now on the calls that are about one task or one machine."""
    story.tasks.find_tasks_of = Mock(wraps=story.tasks.find_tasks_of)
    story.tasks.find_node = Mock(wraps=story.tasks.find_node)
    return [story.tasks.find_tasks_of, story.tasks.find_node]


def let_live(story: Story, started_by: str, arn: str = STRAY, **fields) -> str:
    """Let a task run that no job knows."""
    return story.tasks.say(arn, "RUNNING", started_by=started_by, created_at=story.now, **fields).task_id


def stops(story: Story) -> list[str]:
    return [arn for arn, _ in story.tasks.stops]


def test_a_sweep_is_due_every_tenth_minute():
    assert [minute for minute in range(60) if is_sweep_due(NOW.replace(minute=minute))] == [0, 10, 20, 30, 40, 50]


def test_running_jobs_are_left_alone(story):
    job_ids = [story.launch(push(sha=f"{number:040x}")) for number in range(3)]
    story.clock.advance(GRACE)
    before = [story.job(job_id) for job_id in job_ids]

    sweep = sweep_cluster(story.deps)

    assert (sweep.tasks, sweep.told, sweep.orphans, sweep.is_complete) == (3, set(), set(), True)
    assert [story.job(job_id) for job_id in job_ids] == before
    assert stops(story) == []


def test_the_whole_cluster_is_read_by_pages_and_no_call_is_about_one_job(story):
    for number in range(5):
        story.launch(push(sha=f"{number:040x}"))
    for arn in story.tasks.tasks:
        story.tasks.change(arn, created_at=story.now)
    story.clock.advance(GRACE)
    story.tasks.page_size, story.tasks.page_count = 2, 0
    single_calls = watch_single_calls(story)

    assert sweep_cluster(story.deps).tasks == 5

    assert story.tasks.page_count == 3 + 1  # five tasks, one machine
    assert [each.call_count for each in single_calls] == [0, 0]


def test_a_task_of_a_job_that_is_over_is_stopped(story, running_id):
    story.end(running_id, 0)
    let_live(story, f"{running_id}/1")
    story.clock.advance(GRACE)

    assert sweep_cluster(story.deps).orphans == {STRAY}

    assert stops(story) == [STRAY]
    assert story.job(running_id).state is JobState.SUCCEEDED
    assert story.jobs.events_of(running_id)[-1] == "orphaned task"
    assert story.metrics.values(Metric.ORPHANED_TASKS) == [1]


def test_a_second_task_beside_the_current_one_is_stopped_and_the_current_one_goes_on(story, running_id):
    let_live(story, f"{running_id}/1")
    story.clock.advance(GRACE)

    sweep_cluster(story.deps)

    assert stops(story) == [STRAY]
    assert story.job(running_id).state is JobState.RUNNING


def test_a_live_task_of_a_waiting_job_is_stopped(story, running_id):
    story.clock.advance(60 * MINUTE)
    story.lose_host(running_id)
    let_live(story, f"{running_id}/1")
    story.clock.advance(GRACE)
    assert story.job(running_id).state is JobState.WAITING

    sweep_cluster(story.deps)

    assert stops(story) == [STRAY]


def test_a_task_whose_answer_was_never_saved_becomes_the_current_one(story):
    """RunTask took effect and its response was lost: the job has a pending placement without a task."""
    job_id = story.launch_unanswered(takes_effect=True)
    (arn,) = story.tasks.tasks
    assert story.attempt(job_id).task_id is None
    story.tasks.run(arn, machine(1), created_at=story.now)
    story.clock.advance(GRACE)

    sweep = sweep_cluster(story.deps)

    assert (sweep.told, sweep.orphans) == ({arn}, set())
    assert (story.arn(job_id), story.job(job_id).state) == (arn, JobState.RUNNING)
    assert story.jobs.load_on_instance(machine(1).instance_id) == [job_id]
    assert stops(story) == []


def test_the_machine_of_a_task_is_known_without_another_call(story, placed_id):
    story.tasks.run(story.arn(placed_id), machine(1), created_at=story.now)
    story.clock.advance(GRACE)
    single_calls = watch_single_calls(story)

    sweep_cluster(story.deps)

    assert story.attempt(placed_id).instance_id == machine(1).instance_id
    assert [each.call_count for each in single_calls] == [0, 0]


def test_a_task_that_has_just_been_made_is_left_to_its_events(story, running_id):
    let_live(story, f"{running_id}/1")
    story.clock.advance(GRACE - timedelta(seconds=1))

    assert sweep_cluster(story.deps).orphans == set()
    assert stops(story) == []


def test_an_orphan_that_ends_meanwhile_is_not_stopped(story, running_id):
    let_live(story, f"{running_id}/1")
    story.clock.advance(GRACE)
    pages = list(story.tasks.list_tasks())
    story.tasks.end(STRAY)
    story.tasks.list_tasks = lambda: iter(pages)
    story.tasks.describe = Mock(wraps=story.tasks.describe)

    sweep = sweep_cluster(story.deps)

    assert tuple(story.tasks.describe.call_args.args[0]) == (STRAY,)
    assert sweep.orphans == set()
    assert story.jobs.events_of(running_id)[-1] == "running"


def test_what_was_seen_before_the_job_went_on_stops_nothing_that_is_current(story, running_id):
    """The page is old by the time it is looked at: the task it shows has ended, and the job has another one."""
    story.tasks.change(story.arn(running_id), created_at=story.now)
    story.clock.advance(60 * MINUTE)
    old_page = list(story.tasks.list_tasks())
    story.lose_host(running_id)
    story.settle()
    story.run(running_id, machine(2))
    current = story.arn(running_id)
    story.tasks.list_tasks = lambda: iter(old_page)

    sweep = sweep_cluster(story.deps)

    assert sweep.orphans == set()
    assert current not in stops(story)
    assert story.job(running_id).state is JobState.RUNNING


def test_a_job_that_goes_on_between_looking_and_saving_is_looked_at_again(story, running_id):
    """Somebody else saves the job while the orphan is decided on."""
    let_live(story, f"{running_id}/1")
    story.clock.advance(GRACE)
    load_job = story.jobs.load_job
    loads: list[str] = []

    def load_then_change(wanted):
        job = load_job(wanted)
        loads.append(wanted)
        if len(loads) == 2:  # the second look at the orphan
            story.jobs.load_job = load_job
            cancel_job(running_id, "a typo", story.deps)
        return job

    story.jobs.load_job = load_then_change
    sweep_cluster(story.deps)

    assert story.job(running_id).state is JobState.STOPPING
    assert sorted(stops(story)) == sorted([story.arn(running_id), STRAY])


def test_tasks_of_others_and_of_services_are_none_of_our_business(story):
    let_live(story, "somebody", task_id(80))
    let_live(story, "ecs-svc/9223370494312345678", task_id(81))
    story.clock.advance(GRACE)

    sweep = sweep_cluster(story.deps)

    assert (sweep.tasks, sweep.unknown, stops(story)) == (2, [], [])


def test_a_task_of_a_job_that_is_not_in_the_table_is_named_and_left_alone(story):
    let_live(story, "resnet-00000000/1")
    story.clock.advance(GRACE)

    sweep = sweep_cluster(story.deps)

    assert sweep.unknown == [STRAY]
    assert stops(story) == []
    assert story.metrics.values(Metric.UNKNOWN_TASKS) == [1]
    assert story.log.lines[-1][1]["unknown_tasks"] == [STRAY]


def test_a_quiet_cluster_says_so_in_its_metrics(story):
    sweep_cluster(story.deps)

    assert [story.metrics.values(each) for each in (Metric.UNKNOWN_TASKS, Metric.IDLE_MACHINES)] == [[0], [0]]


def test_a_sweep_whose_time_is_up_stops_what_it_found_and_says_so(story, running_id):
    let_live(story, f"{running_id}/1", task_id(0))
    story.tasks.tasks = dict(sorted(story.tasks.tasks.items()))
    story.clock.advance(GRACE)
    story.tasks.page_size = 1

    sweep = sweep_cluster(story.deps, lambda: False)

    assert (sweep.tasks, sweep.is_complete) == (1, False)
    assert stops(story) == [task_id(0)]
    assert "did not suffice" in story.log.lines[-1][1]["reason"]


def test_a_sweep_whose_time_is_up_ends_within_a_page(story, running_id):
    let_live(story, f"{running_id}/1", task_id(0))
    story.clock.advance(GRACE)

    sweep = sweep_cluster(story.deps, lambda: False)

    assert len(story.tasks.tasks) == 2
    assert (sweep.tasks, sweep.is_complete) == (1, False)


@pytest.mark.parametrize("error", [TransientError("throttled"), PermanentError("denied")])
def test_one_jobs_trouble_does_not_keep_the_others_waiting(story, error):
    first, second = (story.launch(push(sha=f"{number:040x}")) for number in range(2))
    let_live(story, f"{first}/1", task_id(80))
    let_live(story, f"{second}/1", task_id(81))
    story.clock.advance(GRACE)
    story.jobs.fail_next(error)

    sweep_cluster(story.deps)

    assert len(stops(story)) == 1
    assert "postponed" in story.log.decisions


def test_what_a_dead_function_left_undone_is_done(story, running_id):
    job = story.job(running_id)
    story.clock.advance(GRACE)
    story.jobs.fail_next(KeyboardInterrupt(), after_effect=True)
    with pytest.raises(KeyboardInterrupt):
        cancel_job(running_id, "a typo", story.deps)
    assert [type(effect) for effect in story.job(running_id).pending] == [StopTask]

    sweep_cluster(story.deps)

    assert stops(story) == [job.current_attempt.task_id]


def test_a_cluster_that_cannot_be_listed_is_left_to_the_next_sweep(story):
    story.tasks.list_tasks = Mock(side_effect=TransientError("throttled"))

    assert not sweep_cluster(story.deps).is_complete
    assert story.log.decisions == ["postponed"]
    assert story.metrics.recorded == []


def test_an_orphan_that_nobody_told_of_is_found_and_paid_for_no_longer(story):
    """The whole story: an answer of RunTask that came when the try was closed long ago, and whose events got lost."""
    job_id = story.launch_unanswered(takes_effect=True)
    (late,) = story.tasks.tasks
    hidden = story.tasks.tasks.pop(late)
    story.clock.advance(60 * MINUTE)
    story.settle()
    story.run(job_id, machine(2))
    current = story.arn(job_id)
    assert current != late

    story.tasks.tasks[late] = hidden
    story.tasks.change(late, last_status="RUNNING", version=5, created_at=NOW)
    story.clock.advance(10 * MINUTE)
    sweep_cluster(story.deps)
    story.tell(story.tasks.end(late, 143))
    story.clock.advance(60 * MINUTE)
    story.end(job_id, 0)

    assert stops(story) == [late]
    job = story.job(job_id)
    assert (job.state, job.totals.failures, job.totals.interruptions) == (JobState.SUCCEEDED, 0, 0)


def test_a_task_of_an_attempt_that_its_job_has_not_begun_is_left(story):
    story.jobs.create_job(make_job("bert-5a6b7c8d", attempt=None), ())
    let_live(story, "bert-5a6b7c8d/1")
    story.clock.advance(GRACE)

    sweep_cluster(story.deps)

    assert stops(story) == []
