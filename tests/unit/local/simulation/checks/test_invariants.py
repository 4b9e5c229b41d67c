"""A task that ECS hides for longer than it documents may be given up, and has to be stopped once it is shown again."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from fakes.builders import make_definition, make_job, make_placement, make_running_attempt
from relaunch.core.jobs.job import Job
from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.s3 import ObjectStore
from relaunch_local.simulation.checks.facts import LONGEST_MISSING, TASK_STATE_CHANGE, AccountFacts
from relaunch_local.simulation.checks.functions import unlisted_since
from relaunch_local.simulation.checks.invariants import LONGEST_ORPHANED, Invariants

JOB = "resnet-1"
HOST = "i-1"
HIDDEN = "arn:aws:ecs:us-east-1:111122223333:task/relaunch/hidden"
OTHER = "arn:aws:ecs:us-east-1:111122223333:task/relaunch/other"


class World:
    """The invariants over tasks of one job."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.span: tuple[datetime, datetime] | None = None
        self.facts = AccountFacts(self.clock, lambda _arn: HOST)
        self.facts.hidden_span = lambda arn: self.span if arn == HIDDEN else None
        self.invariants = Invariants(self.clock, ObjectStore(), 5, self.facts)
        self.invariants.jobs[JOB] = make_job(JOB)

    def task(self, arn: str, status: str = "RUNNING", job_id: str = JOB, **words: Any) -> None:
        detail: dict[str, Any] = {"taskArn": arn, "startedBy": f"{job_id}/1", "lastStatus": status, "version": 1}
        event = {"detail-type": TASK_STATE_CHANGE, "detail": {**detail, "containerInstanceArn": "arn:node", **words}}
        self.facts.observe(event)
        self.invariants.task_changed(event)

    def connect(self, *, is_connected: bool) -> None:
        words = {"ec2InstanceId": HOST, "agentConnected": is_connected}
        self.facts.observe({"detail-type": "ECS Container Instance State Change", "detail": words})

    def end_host(self) -> None:
        words = {"instance-id": HOST, "state": "shutting-down"}
        self.facts.observe({"detail-type": "EC2 Instance State-change Notification", "detail": words})

    def hide(self, minutes: int) -> None:
        now = self.clock.now()
        self.span = (now, now + timedelta(minutes=minutes))
        self.invariants.hide(HIDDEN)

    def wait(self, time: timedelta) -> None:
        self.clock.advance_to(self.clock.now() + time)

    @property
    def broken(self) -> set[str]:
        return {violation.split(" ", 2)[2].partition(":")[0] for violation in self.invariants.violations}


@pytest.fixture
def world() -> World:
    world = World()
    world.task(HIDDEN)
    return world


@pytest.mark.parametrize(
    ("hidden_for", "broken"),
    [
        (LONGEST_MISSING - timedelta(seconds=7), {"never two live tasks of one job"}),
        # The clocks of two functions differ by up to six seconds.
        (LONGEST_MISSING - timedelta(seconds=6), set()),
    ],
    ids=["before-the-documented-time", "after-it"],
)
def test_another_task_may_run_beside_one_that_ecs_has_hidden_for_the_documented_time(
    world: World, hidden_for: timedelta, broken: set[str]
) -> None:
    world.hide(40)
    world.wait(hidden_for)

    world.task(OTHER)

    assert world.broken == broken


def _is_stopped(world: World) -> None:
    world.task(HIDDEN, "STOPPED")


def _is_kept(world: World) -> None:
    kept: Job = make_job(JOB, attempt=make_running_attempt(placement=make_placement(task_id=HIDDEN)))
    world.invariants.jobs[JOB] = kept


@pytest.mark.parametrize(
    ("meanwhile", "broken"),
    [
        (lambda _world: None, {"what was hidden is stopped or kept once it is shown"}),
        (_is_stopped, set()),
        (_is_kept, set()),
    ],
    ids=["it-lives-on", "it-is-stopped", "its-job-has-kept-it"],
)
def test_what_was_hidden_is_stopped_or_kept_once_ecs_has_shown_it_for_long_enough(
    world: World, meanwhile: Callable[[World], None], broken: set[str]
) -> None:
    world.hide(40)
    world.wait(timedelta(minutes=40))
    meanwhile(world)

    world.wait(LONGEST_ORPHANED - timedelta(minutes=1))
    assert world.broken == set()
    world.wait(timedelta(minutes=1))
    assert world.broken == broken


@pytest.mark.parametrize(
    ("is_wanted", "is_back", "broken"),
    [
        (False, False, {"what was hidden is stopped or kept once it is shown"}),
        (True, False, set()),
        (True, True, {"what was hidden is stopped or kept once it is shown"}),
    ],
    ids=["nobody-asked", "asked", "its-agent-is-back"],
)
def test_what_was_hidden_lives_on_while_ecs_has_lost_the_agent_that_is_to_stop_it(
    world: World, *, is_wanted: bool, is_back: bool, broken: set[str]
) -> None:
    world.hide(40)
    world.connect(is_connected=False)
    world.wait(timedelta(minutes=40))
    if is_wanted:
        world.task(HIDDEN, desiredStatus="STOPPED")
    world.wait(LONGEST_ORPHANED)
    if is_back:
        world.connect(is_connected=True)
        world.wait(timedelta(minutes=10))

    assert world.broken == broken


@pytest.mark.parametrize(("minutes", "broken"), [(9, {"never two live tasks of one job"}), (10, set())])
def test_another_task_may_run_beside_one_whose_host_ended_so_long_ago(minutes: int, broken: set[str]) -> None:
    world = World()
    world.task(HIDDEN)
    world.end_host()
    world.wait(timedelta(minutes=minutes))

    world.task(OTHER, containerInstanceArn=None)

    assert world.broken == broken


@pytest.mark.parametrize(
    ("hours", "is_asked", "broken"),
    [
        (23, True, {"no more tasks than max_running_jobs"}),
        (24, True, set()),
        (24, False, {"no more tasks than max_running_jobs"}),
    ],
)
def test_a_task_whose_stop_nobody_confirms_for_a_day_keeps_no_other_job_from_its_slot(
    hours: int, *, is_asked: bool, broken: set[str]
) -> None:
    world = World()
    job_ids = [f"resnet-{number}" for number in range(6)]
    world.invariants.jobs |= {each: make_job(each, definition=make_definition(max_running_jobs=5)) for each in job_ids}
    for job_id in job_ids[:5]:
        world.task(f"arn:{job_id}", job_id=job_id)
    if is_asked:
        world.facts.stop_asked("arn:resnet-0")
    world.wait(timedelta(hours=hours))

    world.task("arn:resnet-5", job_id="resnet-5")

    assert world.broken == broken


def test_a_task_that_ecs_shows_again_in_time_excuses_nothing(world: World) -> None:
    world.hide(4)
    world.wait(LONGEST_MISSING)

    world.task(OTHER)

    assert world.broken == {"never two live tasks of one job"}


def test_a_sweep_may_pass_over_as_many_tasks_as_left_the_list_since_it_began() -> None:
    world, now = World(), Clock().now()
    ended = {"stoppingAt": now.isoformat()}
    for arn, words in (("gone", ended), ("long-gone", {"stoppingAt": (now - timedelta(minutes=4)).isoformat()})):
        detail = {"taskArn": arn, "startedBy": f"{JOB}/1", "lastStatus": "STOPPING", "version": 1}
        detail |= {"desiredStatus": "STOPPED", **words}
        world.invariants.task_changed({"detail-type": TASK_STATE_CHANGE, "detail": detail})
    world.task(OTHER)

    assert unlisted_since(world.invariants.tasks, now - timedelta(minutes=3)) == 1
