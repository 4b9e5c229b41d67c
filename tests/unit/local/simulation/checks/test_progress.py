"""What the check of progress says of the tasks of a job, by what they left in S3."""

from datetime import timedelta
from typing import Any

import pytest

from fakes.builders import NOW, make_definition, make_job
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.recipes import Recipe
from relaunch_local.simulation.aws.s3 import ObjectStore
from relaunch_local.simulation.checks.facts import AccountFacts
from relaunch_local.simulation.checks.progress import check_progress

RECIPE = Recipe(work_seconds=7_200.0, checkpoint_seconds=600.0)
ENDS, ONLY_THOSE = "a job without progress ends", "only a job without progress ends for that"
NO_PROGRESS = "3 attempts in a row gained no step"


class World:
    """The tasks of one job, an hour apart, and what they saved."""

    def __init__(self) -> None:
        self.objects, self.facts = ObjectStore(), AccountFacts(Clock(), lambda _arn: "")
        self.tasks: dict[str, dict[str, Any]] = {}

    def train(self, minutes: int = 40, *, saves: int | None = None, resumes: int = 0) -> None:
        number = len(self.tasks) + 1
        began = NOW + number * timedelta(hours=1)
        environment = [{"name": "RELAUNCH_RESUME_URI", "value": f"s3://b/attempt-1/step-{resumes:07d}/"}]
        self.tasks[f"task-{number}"] = {
            "taskArn": f"task-{number}",
            "startedBy": f"resnet-1f2e3d4c/{number}",
            "startedAt": began.isoformat(),
            "stoppedAt": (began + timedelta(minutes=minutes)).isoformat(),
            "overrides": {"containerOverrides": [{"environment": environment if resumes else []}]},
        }
        if saves is not None:
            key = f"resnet/resnet-1f2e3d4c/attempt-{number}/step-{saves:07d}/manifest.json"
            self.objects.write("acme-checkpoints", key, b"{}", began + timedelta(minutes=minutes - 1))

    def broken(self, job: Job) -> set[str]:
        failed: set[str] = set()

        def check(name: str, holds: bool, _message: str) -> None:
            if not holds:
                failed.add(name)

        check_progress(check, job, self.tasks, RECIPE, 1.0, self.objects, self.facts)
        return failed


def over(reason: str = "", state: JobState = JobState.FAILED, **fields: Any) -> Job:
    return make_job(state=state, reason=reason, **fields)


@pytest.fixture
def world() -> World:
    return World()


def test_three_tasks_that_gain_nothing_end_a_job_and_a_fourth_is_too_many(world):
    for _ in range(3):
        world.train()
    assert world.broken(over(NO_PROGRESS)) == set()
    world.train()
    assert world.broken(over(NO_PROGRESS)) == {ENDS}
    unsaved = make_definition(checkpoint_uri=None)
    assert world.broken(over(definition=unsaved)) == set()
    assert world.broken(over(NO_PROGRESS, definition=unsaved)) == {ONLY_THOSE}


def test_a_step_gained_begins_a_new_row_and_the_same_step_again_does_not(world):
    for step in (100, 100, 100, 100, 100):
        world.train(saves=step, resumes=100)
    assert world.broken(over()) == {ENDS}
    world = World()
    for step in (100, 200, 200, 300, 300):
        world.train(saves=step, resumes=step - 100)
    assert world.broken(over(state=JobState.SUCCEEDED)) == set()


def test_tasks_that_are_too_short_to_have_saved_count_for_nothing(world):
    for _ in range(6):
        world.train(20)
    assert world.broken(over(state=JobState.SUCCEEDED)) == set()


@pytest.mark.parametrize("minutes", [5, 40])
def test_a_job_ends_for_no_progress_after_three_that_show_it_and_no_sooner(world, minutes):
    world.train(minutes)
    world.train(minutes)
    assert world.broken(over(NO_PROGRESS)) == {ONLY_THOSE}
    world.train(minutes)
    assert world.broken(over(NO_PROGRESS)) == ({ONLY_THOSE} if minutes == 5 else set())


def test_what_a_task_that_ecs_hid_gained_is_not_certain(world):
    for _ in range(4):
        world.train()
    world.facts.forgotten = {"task-2"}
    assert world.broken(over(NO_PROGRESS)) == set()
