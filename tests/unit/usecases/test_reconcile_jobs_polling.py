"""Jobs of targets without events: one question per target and run, as long as one of them has a task."""

from dataclasses import replace
from unittest.mock import Mock

import pytest

from fakes.builders import make_definition
from fakes.story import MINUTE, Story, push
from fakes.tasks import FakeTasks
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, PurchasePolicy
from relaunch.core.definitions.kubernetes_workload import KubernetesWorkload
from relaunch.core.definitions.targets import Target
from relaunch.core.jobs.attempt import StopKind
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.metrics import Metric
from relaunch.core.lifecycle.unconfirmed_stops import ELSEWHERE, UNCONFIRMED, describe_unconfirmed
from relaunch.core.triggers.events import DirectRequest
from relaunch.ports import PermanentError, Targets, TransientError

ON_ACS = make_definition(
    task_definition="",
    target=Target.ACS,
    kubernetes=KubernetesWorkload("registry.example/trainer:1", vcpus=4, memory_mib=16 * 1024, gpu_model="T4"),
    accelerator=AcceleratorRequirement(gpu=GpuRequirement()),
    purchase=PurchasePolicy.SPOT,
)


@pytest.fixture
def on_acs():
    return Story(ON_ACS, target=Target.ACS)


def describe_as_told(story):
    """Count the questions to the target, which are answered as before."""
    story.tasks.describe = Mock(side_effect=story.tasks.describe)
    return story.tasks.describe


def test_nothing_is_asked_while_no_job_has_a_task(on_acs):
    describe = describe_as_told(on_acs)
    on_acs.submit()

    on_acs.reconcile(after=6 * MINUTE)

    assert describe.call_count == 0


def test_a_job_is_followed_from_its_start_to_its_end_within_a_minute_each(on_acs):
    job_id = on_acs.submit_and_deliver()

    on_acs.tasks.run(on_acs.arn(job_id), None, started_at=on_acs.now)
    on_acs.reconcile(after=MINUTE)
    running = on_acs.job(job_id).state
    on_acs.tasks.end(on_acs.arn(job_id), 0, stopped_at=on_acs.now)
    on_acs.reconcile(after=MINUTE)

    assert (running, on_acs.job(job_id).state) == (JobState.RUNNING, JobState.SUCCEEDED)


def test_all_jobs_are_asked_for_at_once_however_many_they_are():
    definition = replace(ON_ACS, max_running_jobs=200)
    story = Story(definition, target=Target.ACS)
    story.deps = replace(story.deps, limits=replace(story.deps.limits, max_running_jobs=500))
    for number in range(130):
        story.submit(push(f"{number:040x}"))
    story.settle()
    describe = describe_as_told(story)

    assert story.reconcile(after=MINUTE) == 130

    (asked,) = (call.args[0] for call in describe.call_args_list)
    assert len(set(asked)) == 130


@pytest.mark.parametrize("error", [TransientError("no answer"), PermanentError("forbidden")])
def test_a_cluster_that_does_not_answer_delays_its_jobs_only(on_acs, error):
    job_id = on_acs.submit_and_deliver()
    answer = on_acs.tasks.describe
    on_acs.tasks.describe = Mock(side_effect=error)
    on_acs.tasks.run(on_acs.arn(job_id), None, started_at=on_acs.now)

    on_acs.reconcile(after=MINUTE)
    launching = on_acs.job(job_id).state
    on_acs.tasks.describe = answer
    on_acs.reconcile(after=MINUTE)

    assert (launching, on_acs.job(job_id).state) == (JobState.LAUNCHING, JobState.RUNNING)


@pytest.mark.parametrize("error", [TransientError("no answer"), PermanentError("Unauthorized (HTTP 401)")])
def test_a_cluster_whose_tasks_cannot_be_seen_is_counted_with_every_look_and_not_once_it_answers(on_acs, error):
    on_acs.submit_and_deliver()
    answer = on_acs.tasks.describe
    on_acs.tasks.describe = Mock(side_effect=error)

    on_acs.reconcile(after=MINUTE)
    on_acs.reconcile(after=MINUTE)
    assert on_acs.metrics.values(Metric.CLUSTERS_UNREADABLE) == [1, 1]
    on_acs.tasks.describe = answer
    on_acs.reconcile(after=MINUTE)

    assert on_acs.metrics.values(Metric.CLUSTERS_UNREADABLE) == [1, 1]


def test_a_cluster_that_does_not_answer_does_not_delay_jobs_of_others(on_acs):
    acs, ecs = FakeTasks(), on_acs.tasks
    on_acs.deps = replace(on_acs.deps, targets=Targets({Target.ECS: lambda: ecs, Target.ACS: lambda: acs}))
    on_acs.deps.definitions.save_definition(make_definition(name="on-ecs", triggers=()))
    on_acs.deps.definitions.save_definition(replace(ON_ACS, name="on-acs", triggers=()))
    acs.describe = Mock(side_effect=TransientError("no answer"))

    ids = [on_acs.submit_and_deliver(DirectRequest(f"request:{name}", name)) for name in ("on-ecs", "on-acs")]
    ecs.run(on_acs.arn(ids[0]), None, started_at=on_acs.now)

    on_acs.reconcile(after=16 * MINUTE)

    assert [on_acs.job(each).state for each in ids] == [JobState.RUNNING, JobState.LAUNCHING]


def test_a_warning_stops_the_task_which_saves_and_is_launched_again(on_acs):
    job_id = on_acs.submit_and_deliver()
    task_id = on_acs.arn(job_id)
    on_acs.tasks.run(task_id, None, started_at=on_acs.now)
    on_acs.reconcile(after=MINUTE)
    observed = on_acs.tasks.tasks[task_id]
    on_acs.tasks.tasks[task_id] = replace(observed, warned_at=on_acs.now)

    for _ in range(2):
        on_acs.reconcile(after=MINUTE)
    stops = list(on_acs.tasks.stops)
    on_acs.tasks.end(task_id, 0, stopped_at=on_acs.now)
    on_acs.reconcile(after=MINUTE)
    stop = on_acs.attempt(job_id).stop
    on_acs.settle()

    assert [each[0] for each in stops] == [task_id], "asked for once"
    assert stop.kind is StopKind.INTERRUPTION
    assert on_acs.attempt(job_id).number == 2


def test_a_job_says_who_announced_that_its_node_is_taken_away(on_acs):
    job_id = on_acs.submit_and_deliver()
    task_id = on_acs.arn(job_id)
    on_acs.tasks.run(task_id, None, started_at=on_acs.now)
    on_acs.reconcile(after=MINUTE)
    warning = "warning of Karpenter that its node is taken away (taint karpenter.sh/disrupted)"
    seen = on_acs.tasks.tasks[task_id]
    on_acs.tasks.tasks[task_id] = replace(seen, warned_at=on_acs.now, warning=warning)

    on_acs.reconcile(after=MINUTE)

    assert on_acs.attempt(job_id).intent.detail.startswith(f"{warning} for ")


def test_a_job_that_was_deleted_in_the_cluster_is_lost_after_a_while_and_launched_again(on_acs):
    job_id = on_acs.submit_and_deliver()
    task_id = on_acs.arn(job_id)
    on_acs.tasks.run(task_id, None, started_at=on_acs.now)
    on_acs.reconcile(after=MINUTE)
    on_acs.tasks.forget(task_id)

    for _ in range(7):
        on_acs.reconcile(after=MINUTE)
    on_acs.settle()

    assert on_acs.attempt(job_id).number == 2
    assert on_acs.attempt(job_id).task_id != task_id


@pytest.fixture
def moved(on_acs):
    """A job that runs in a cluster which the stack does not ask any more."""
    on_acs.tasks.cluster = "a1b2c3/training"
    job_id = on_acs.submit_and_deliver()
    on_acs.tasks.run(on_acs.arn(job_id), None, started_at=on_acs.now)
    on_acs.reconcile(after=MINUTE)
    left = on_acs.tasks.tasks
    on_acs.tasks.tasks = {}
    on_acs.tasks.cluster = "d4e5f6/training"
    for _ in range(8):
        on_acs.reconcile(after=MINUTE)
    on_acs.settle()
    return on_acs, job_id, left


def test_a_job_whose_cluster_was_changed_is_not_launched_beside_its_pod(moved):
    story, job_id, _ = moved
    assert (story.job(job_id).state, story.job(job_id).reason) == (JobState.STOPPING, ELSEWHERE)
    assert story.attempt(job_id).number == 1

    for _ in range(62):
        story.reconcile(after=MINUTE)
    explained = " ".join(describe_unconfirmed(story.job(job_id), story.now))
    assert UNCONFIRMED in story.timeline(job_id)
    assert f"or delete the Job {story.arn(job_id)} in the cluster before" in explained
    for _ in range(24 * 12 + 2):
        story.reconcile(after=5 * MINUTE)

    assert story.job(job_id).state is JobState.FAILED
    assert ELSEWHERE in story.job(job_id).reason
    assert len(story.tasks.requests) == 1


def test_a_job_whose_cluster_is_set_back_saves_and_goes_on(moved):
    story, job_id, left = moved
    story.tasks.tasks = left
    story.tasks.cluster = "a1b2c3/training"
    for _ in range(4):
        story.reconcile(after=MINUTE)
    story.tasks.end(story.arn(job_id), 0, stopped_at=story.now)
    story.reconcile(after=MINUTE)

    assert story.attempt(job_id).stop.kind is StopKind.INTERRUPTION
    story.settle()
    assert story.attempt(job_id).number == 2


def test_a_job_that_the_cluster_still_knows_goes_on_though_its_identity_is_another(on_acs):
    on_acs.tasks.cluster = "a1b2c3/training"
    job_id = on_acs.submit_and_deliver()
    on_acs.tasks.run(on_acs.arn(job_id), None, started_at=on_acs.now)
    on_acs.reconcile(after=MINUTE)
    on_acs.tasks.cluster = "d4e5f6/training"
    on_acs.tasks.change(on_acs.arn(job_id))
    on_acs.reconcile(after=MINUTE)

    assert (on_acs.job(job_id).state, on_acs.attempt(job_id).cluster) == (JobState.RUNNING, "d4e5f6/training")
