"""Comparing the jobs table with the live cluster."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import NOW, make_job, make_observation, task_arn
from fakes.metrics import ListMetrics
from fakes.story import MINUTE, Story, machine, push
from fakes.tasks import FakeTasks
from relaunch.core.jobs.job import JobState, StopTask
from relaunch.core.launches.launch import LaunchUncertain
from relaunch.core.lifecycle.metrics import Metric
from relaunch.ports import PermanentError, TransientError
from relaunch.usecases.cancel_job import cancel_job
from relaunch.usecases.sweep_cluster import GRACE, IDLE_GRACE, is_sweep_due, sweep_cluster

STRAY = task_arn(77)


class CountingTasks(FakeTasks):
    """Counts calls that are about one task or one machine."""

    def __init__(self) -> None:
        super().__init__()
        self.single_calls = 0
        self.described: list[tuple[str, ...]] = []

    def find_started_by(self, started_by):
        self.single_calls += 1
        return super().find_started_by(started_by)

    def find_container_instance(self, container_instance_arn):
        self.single_calls += 1
        return super().find_container_instance(container_instance_arn)

    def describe(self, task_arns):
        self.described.append(tuple(task_arns))
        return super().describe(task_arns)


@pytest.fixture
def metrics() -> ListMetrics:
    return ListMetrics()


@pytest.fixture
def tasks() -> CountingTasks:
    return CountingTasks()


@pytest.fixture
def story(metrics, tasks) -> Story:
    story = Story(metrics=metrics, tasks=tasks)
    story.tasks = tasks
    return story


def let_live(story: Story, started_by: str, arn: str = STRAY, **fields) -> str:
    """Let a task run that no job knows."""
    running = make_observation("RUNNING", task_arn=arn, started_by=started_by, created_at=story.now, **fields)
    story.tasks.tasks[arn] = running
    return arn


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


def test_the_whole_cluster_is_read_by_pages_and_no_call_is_about_one_job(story, tasks):
    for number in range(5):
        story.launch(push(sha=f"{number:040x}"))
    for arn in tasks.tasks:
        tasks.change(arn, created_at=story.now)
    story.clock.advance(GRACE)
    tasks.page_size, tasks.page_count, tasks.single_calls = 2, 0, 0

    assert sweep_cluster(story.deps).tasks == 5

    assert tasks.page_count == 3 + 1  # five tasks, one machine
    assert tasks.single_calls == 0


def test_a_task_of_a_job_that_is_over_is_stopped(story, metrics):
    job_id = story.launch()
    story.end(job_id, 0)
    let_live(story, f"{job_id}/1")
    story.clock.advance(GRACE)

    assert sweep_cluster(story.deps).orphans == {STRAY}

    assert stops(story) == [STRAY]
    assert story.job(job_id).state is JobState.SUCCEEDED
    assert story.jobs.events_of(job_id)[-1] == "orphaned task"
    assert metrics.values(Metric.ORPHANED_TASKS) == [1]


def test_a_second_task_beside_the_current_one_is_stopped_and_the_current_one_goes_on(story):
    job_id = story.launch()
    let_live(story, f"{job_id}/1")
    story.clock.advance(GRACE)

    sweep_cluster(story.deps)

    assert stops(story) == [STRAY]
    assert story.job(job_id).state is JobState.RUNNING


def test_a_live_task_of_a_waiting_job_is_stopped(story):
    job_id = story.launch()
    story.clock.advance(60 * MINUTE)
    story.lose_host(job_id)
    let_live(story, f"{job_id}/1")
    story.clock.advance(GRACE)
    assert story.job(job_id).state is JobState.WAITING

    sweep_cluster(story.deps)

    assert stops(story) == [STRAY]


def test_a_task_whose_answer_was_never_saved_becomes_the_current_one(story):
    """RunTask took effect and its response was lost: the job has a pending placement without a task."""
    job_id = story.submit()
    story.tasks.places_uncertain = True
    story.tasks.outcomes.append(LaunchUncertain("no answer to RunTask"))
    story.deliver()
    (arn,) = story.tasks.tasks
    assert story.attempt(job_id).task_arn is None
    story.tasks.run(arn, machine(1), created_at=story.now)
    story.clock.advance(GRACE)

    sweep = sweep_cluster(story.deps)

    assert (sweep.told, sweep.orphans) == ({arn}, set())
    assert (story.arn(job_id), story.job(job_id).state) == (arn, JobState.RUNNING)
    assert story.jobs.load_on_instance(machine(1).instance_id) == [job_id]
    assert stops(story) == []


def test_the_machine_of_a_task_is_known_without_another_call(story, tasks):
    job_id = story.submit()
    story.deliver()
    tasks.run(story.arn(job_id), machine(1), created_at=story.now)
    story.clock.advance(GRACE)
    tasks.single_calls = 0

    sweep_cluster(story.deps)

    assert story.attempt(job_id).instance_id == machine(1).instance_id
    assert tasks.single_calls == 0


def test_a_task_that_has_just_been_made_is_left_to_its_events(story):
    job_id = story.launch()
    let_live(story, f"{job_id}/1")
    story.clock.advance(GRACE - timedelta(seconds=1))

    assert sweep_cluster(story.deps).orphans == set()
    assert stops(story) == []


def test_an_orphan_that_ends_meanwhile_is_not_stopped(story, tasks):
    job_id = story.launch()
    let_live(story, f"{job_id}/1")
    story.clock.advance(GRACE)
    pages = list(tasks.list_tasks())
    tasks.end(STRAY)
    tasks.list_tasks = lambda: iter(pages)

    sweep = sweep_cluster(story.deps)

    assert tasks.described[-1] == (STRAY,)
    assert sweep.orphans == set()
    assert story.jobs.events_of(job_id)[-1] == "running"


def test_what_was_seen_before_the_job_went_on_stops_nothing_that_is_current(story, tasks):
    """The page is old by the time it is looked at: the task it shows has ended, and the job has another one."""
    job_id = story.launch()
    tasks.change(story.arn(job_id), created_at=story.now)
    story.clock.advance(60 * MINUTE)
    old_page = list(tasks.list_tasks())
    story.lose_host(job_id)
    story.settle()
    story.run(job_id, machine(2))
    current = story.arn(job_id)
    tasks.list_tasks = lambda: iter(old_page)

    sweep = sweep_cluster(story.deps)

    assert sweep.orphans == set()
    assert current not in stops(story)
    assert story.job(job_id).state is JobState.RUNNING


def test_a_job_that_goes_on_between_looking_and_saving_is_looked_at_again(story, tasks):
    """Somebody else saves the job while the orphan is decided on."""
    job_id = story.launch()
    let_live(story, f"{job_id}/1")
    story.clock.advance(GRACE)
    load_job = story.jobs.load_job
    loads: list[str] = []

    def load_then_change(wanted):
        job = load_job(wanted)
        loads.append(wanted)
        if len(loads) == 2:  # the second look at the orphan
            story.jobs.load_job = load_job
            cancel_job(job_id, "a typo", story.deps)
        return job

    story.jobs.load_job = load_then_change
    sweep_cluster(story.deps)

    assert story.job(job_id).state is JobState.STOPPING
    assert sorted(stops(story)) == sorted([story.arn(job_id), STRAY])


def test_tasks_of_others_and_of_services_are_none_of_our_business(story):
    let_live(story, "somebody", task_arn(80))
    let_live(story, "ecs-svc/9223370494312345678", task_arn(81))
    story.clock.advance(GRACE)

    sweep = sweep_cluster(story.deps)

    assert (sweep.tasks, sweep.unknown, stops(story)) == (2, [], [])


def test_a_task_of_a_job_that_is_not_in_the_table_is_named_and_left_alone(story, metrics):
    let_live(story, "resnet-00000000/1")
    story.clock.advance(GRACE)

    sweep = sweep_cluster(story.deps)

    assert sweep.unknown == [STRAY]
    assert stops(story) == []
    assert metrics.values(Metric.UNKNOWN_TASKS) == [1]
    assert story.log.lines[-1][1]["unknown_tasks"] == [STRAY]


def test_machines_without_tasks_are_named_once_they_should_be_gone(story, metrics):
    busy = story.launch()
    idle, fresh, draining = machine(11), machine(12), machine(13)
    for each in (idle, fresh, draining):
        story.tasks.instances[each.arn] = each
    story.tasks.machine_statuses[draining.arn] = "DRAINING"
    story.clock.advance(IDLE_GRACE)
    story.tasks.registered_at[fresh.arn] = story.now

    sweep = sweep_cluster(story.deps)

    assert sweep.idle_machines == [idle.instance_id]
    assert metrics.values(Metric.IDLE_MACHINES) == [1]
    assert story.log.lines[-1][1]["idle_machines"] == [idle.instance_id]
    assert story.job(busy).state is JobState.RUNNING


def test_a_quiet_cluster_says_so_in_its_metrics(story, metrics):
    sweep_cluster(story.deps)

    assert [metrics.values(each) for each in (Metric.UNKNOWN_TASKS, Metric.IDLE_MACHINES)] == [[0], [0]]


def test_a_sweep_whose_time_is_up_stops_what_it_found_and_says_so(story, tasks):
    job_id = story.launch()
    let_live(story, f"{job_id}/1", task_arn(0))
    tasks.tasks = dict(sorted(tasks.tasks.items()))
    story.clock.advance(GRACE)
    tasks.page_size = 1

    sweep = sweep_cluster(story.deps, lambda: False)

    assert (sweep.tasks, sweep.is_complete) == (1, False)
    assert stops(story) == [task_arn(0)]
    assert "did not suffice" in story.log.lines[-1][1]["reason"]


def test_a_sweep_whose_time_is_up_ends_within_a_page(story, tasks):
    job_id = story.launch()
    let_live(story, f"{job_id}/1", task_arn(0))
    story.clock.advance(GRACE)

    sweep = sweep_cluster(story.deps, lambda: False)

    assert len(tasks.tasks) == 2
    assert (sweep.tasks, sweep.is_complete) == (1, False)


@pytest.mark.parametrize("error", [TransientError("throttled"), PermanentError("denied")])
def test_one_jobs_trouble_does_not_keep_the_others_waiting(story, error):
    first, second = (story.launch(push(sha=f"{number:040x}")) for number in range(2))
    let_live(story, f"{first}/1", task_arn(80))
    let_live(story, f"{second}/1", task_arn(81))
    story.clock.advance(GRACE)
    story.jobs.fail_next(error)

    sweep_cluster(story.deps)

    assert len(stops(story)) == 1
    assert "postponed" in story.log.decisions


def test_what_a_dead_function_left_undone_is_done(story):
    job_id = story.launch()
    job = story.job(job_id)
    left = story.jobs.save_job
    story.clock.advance(GRACE)
    with pytest.MonkeyPatch.context() as dying:

        def save_and_die(write):
            left(write)
            raise KeyboardInterrupt

        dying.setattr(story.jobs, "save_job", save_and_die)
        with pytest.raises(KeyboardInterrupt):
            cancel_job(job_id, "a typo", story.deps)
    assert [type(effect) for effect in story.job(job_id).pending] == [StopTask]

    sweep_cluster(story.deps)

    assert stops(story) == [job.current_attempt.task_arn]


def test_a_cluster_that_cannot_be_listed_is_left_to_the_next_sweep(story, tasks, metrics):
    def refuse():
        raise TransientError("throttled")

    tasks.list_tasks = refuse

    assert not sweep_cluster(story.deps).is_complete
    assert story.log.decisions == ["postponed"]
    assert metrics.recorded == []


def test_an_orphan_that_nobody_told_of_is_found_and_paid_for_no_longer(story):
    """The whole story: an answer of RunTask that came when the try was closed long ago, and whose events got lost."""
    job_id = story.submit()
    story.tasks.places_uncertain = True
    story.tasks.outcomes.append(LaunchUncertain("no answer to RunTask"))
    story.deliver()
    (late,) = story.tasks.tasks
    hidden = story.tasks.tasks.pop(late)
    story.clock.advance(60 * MINUTE)
    story.settle()
    story.run(job_id, machine(2))
    current = story.arn(job_id)
    assert current != late

    story.tasks.tasks[late] = replace(hidden, last_status="RUNNING", version=5, created_at=NOW)
    story.clock.advance(10 * MINUTE)
    sweep_cluster(story.deps)
    story.tell(story.tasks.end(late, 143))
    story.clock.advance(60 * MINUTE)
    story.end(job_id, 0)

    assert stops(story) == [late]
    job = story.job(job_id)
    assert (job.state, job.failures, job.interruptions) == (JobState.SUCCEEDED, 0, 0)


def test_a_job_without_an_attempt_has_no_current_task(story):
    story.jobs.create_job(make_job("bert-5a6b7c8d", attempt=None), ())
    let_live(story, "bert-5a6b7c8d/1")
    story.clock.advance(GRACE)

    sweep_cluster(story.deps)

    assert stops(story) == [STRAY]
