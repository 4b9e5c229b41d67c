"""Days in which machines are launched, paid for, and of no use."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import make_definition, make_failed_placement
from fakes.machine_story import MachineStory
from fakes.story import MINUTE
from relaunch.adapters.aws.ecs.stop_reports import report_of_task
from relaunch.core.jobs.cost import cost_so_far, machine_cost
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.launch import LaunchOutcome, LaunchRefused
from relaunch.core.machines.machine import MachineState
from relaunch.core.machines.starts import AT_ONCE, MOST_USELESS

DENIED = (
    "ResourceInitializationError: unable to pull secrets or registry auth: AccessDeniedException: User is not "
    "authorized to perform: secretsmanager:GetSecretValue"
)


def watch(story: MachineStory, hours: float) -> None:
    """Let hours pass in which reconcile runs every minute."""
    until = story.now + timedelta(hours=hours)
    while story.now < until:
        story.look(after=MINUTE)
        story.reconcile()
        story.settle_all()


def test_a_job_whose_machines_never_register_gets_six_in_a_day_pays_for_them_and_fails():
    story = MachineStory()
    job_id = story.start()

    watch(story, 23.5)
    asked = len(story.fleet.requests)
    assert asked <= 6
    assert story.job(job_id).state is JobState.WAITING
    watch(story, 2)

    job = story.job(job_id)
    assert job.state is JobState.FAILED
    assert "it never registered" in job.reason
    usd, _ = cost_so_far(job, story.now)
    # Each lives for five minutes and some seconds, at 0.40 to 1.10 USD per hour.
    assert asked * 0.40 / 12 <= usd <= 7 * 1.10 / 10
    assert {each.overrides[0].offering.instance_type for each in story.fleet.requests} == {"g5.xlarge", "g6.xlarge"}


def test_a_job_that_the_cluster_places_nowhere_gets_six_machines_in_a_day():
    story = MachineStory()
    story.tasks.launch = lambda _request: make_failed_placement("MemberOf placement constraint unsatisfied.")
    job_id = story.start()

    until = story.now + timedelta(hours=23.5)
    while story.now < until:
        job = story.job(job_id)
        if job.machine_id and story.machine(job_id).instance_id:
            story.register(story.machine(job_id))
        story.look(after=MINUTE)
        story.reconcile()
        story.settle_all()

    assert len(story.fleet.requests) == 6
    assert "MemberOf placement constraint unsatisfied." in story.job(job_id).reason
    assert machine_cost(story.job(job_id), story.now).usd > 0


def test_jobs_that_come_later_know_of_an_image_of_which_no_machine_became_ready():
    story = MachineStory()
    job_ids = []
    for number in range(20):
        job_ids.append(story.start(f"{number:040x}"))
        watch(story, 0.25)

    assert len(story.fleet.requests) <= 12
    assert "machines of the stack do not become ready" in story.job(job_ids[-1]).reason


def bought_in_a_day(
    outcome: LaunchOutcome | None = None, *, heals_after: float = 24.0
) -> tuple[MachineStory, list[str], list[float]]:
    """Let 20 jobs of one family meet it for 23 hours; return when machines were requested, in hours.

    RunTask answers `outcome`; without one it places their tasks, and ECS does not start them.
    """
    story = MachineStory(make_definition(max_running_jobs=99), max_machines=40)
    launch: Callable[..., LaunchOutcome] = story.tasks.launch
    if outcome is not None:
        story.tasks.launch = lambda _request: outcome
    begun_at, bought = story.now, []
    job_ids = [story.start(f"{number:040x}") for number in range(20)]
    # Once it is over only the machines run.
    while (hours := (story.now - begun_at) / timedelta(hours=1)) < min(heals_after + 6.5, 23):
        if hours >= heals_after:
            story.tasks.launch = launch
        for job_id in job_ids:
            go_on(story, job_id, is_healed=hours >= heals_after)
        story.look(after=2 * MINUTE)
        story.reconcile()
        story.settle_all()
        bought += [hours] * (len(story.fleet.requests) - len(bought))
    return story, job_ids, bought


def go_on(story: MachineStory, job_id: str, *, is_healed: bool) -> None:
    """Let the machine of a job register, and its task run, or not start."""
    job = story.job(job_id)
    if job.machine_id and story.machine(job_id).state is MachineState.STARTING:
        story.register(story.machine(job_id))
    if job.state is not JobState.LAUNCHING or not job.current_attempt.task_id:
        return
    if is_healed:
        story.run(job_id)
    elif job.current_attempt.stop is None:
        refuse_start(story, job_id)


def refuse_start(story: MachineStory, job_id: str) -> None:
    """Let ECS stop the task of a job that it placed, because the execution role may not read its secret."""
    attempt = story.job(job_id).current_attempt
    stop = {"stop_code": "TaskFailedToStart", "stopped_reason": DENIED, "stopped_at": story.now}
    seen = story.tasks.end(attempt.task_id, None, **stop)
    node, report = f"node-of-{attempt.placement.instance_id}", report_of_task("TaskFailedToStart", DENIED)
    story.tell(replace(seen, node=node, started_at=None, report=report))


REFUSALS = {
    "refused": LaunchRefused("AccessDeniedException: ecs:RunTask", may_heal=True),
    "agent away": make_failed_placement("AGENT"),
    "placed nowhere": make_failed_placement("MemberOf placement constraint unsatisfied."),
    "start refused": None,
}


@pytest.mark.parametrize("what", REFUSALS)
def test_what_keeps_the_tasks_of_a_family_from_running_costs_twelve_machines_in_a_day(what: str):
    story, job_ids, bought = bought_in_a_day(REFUSALS[what])

    assert len(bought) <= MOST_USELESS
    assert sum(hours < 0.25 for hours in bought) <= AT_ONCE, "the others are left for probes"
    assert max(bought) > 12, "it is tried again all day"
    assert {story.job(each).state for each in job_ids} == {JobState.WAITING}


@pytest.mark.parametrize("what", ["refused", "start refused"])
def test_once_that_is_over_the_next_probe_lets_all_run(what: str):
    story, job_ids, bought = bought_in_a_day(REFUSALS[what], heals_after=2.0)

    assert {story.job(each).state for each in job_ids} == {JobState.RUNNING}
    assert min(hours for hours in bought if hours > 2) < 8.5


@pytest.mark.parametrize("what", REFUSALS)
def test_a_job_says_what_machines_cost_that_were_up_and_refused(what: str):
    story = MachineStory()
    outcome = REFUSALS[what]
    if outcome is not None:
        story.tasks.launch = lambda _request: outcome
    job_id = story.start()
    until = story.now + timedelta(hours=2)
    while story.now < until:
        go_on(story, job_id, is_healed=False)
        story.look(after=MINUTE)
        story.reconcile()
        story.settle_all()

    # Each lived for a minute until its first answer, and is kept for ten at most.
    minutes = machine_cost(story.job(job_id), story.now).usd / len(story.fleet.requests) / 0.40 * 60
    assert 0.9 <= minutes <= 12
