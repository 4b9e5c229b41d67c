"""What is noted about trainings is held against what lies in S3."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fakes.builders import make_running_job
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState, NotedProgress
from relaunch_local.ecs import Clock
from relaunch_local.simulation.aws.recipes import Recipe
from relaunch_local.simulation.aws.s3 import ObjectStore
from relaunch_local.simulation.aws.trainings import Trainings, _Training
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.checks.facts import AccountFacts
from relaunch_local.simulation.checks.stalls import StallChecks

HOUR = timedelta(hours=1)
UNSAVED = "what is noted of a training is saved"
SAVES = "only a training that saves nothing has stalled"
TWICE = "a stall is said once"
KNOWN = "how far a training is, is known in time"
TRAINS = "a job that trains is not said to be stalled"


@pytest.mark.parametrize(
    ("noted", "state", "broken"),
    [
        ({}, JobState.RUNNING, []),
        ({"stalled_since": -HOUR}, JobState.RUNNING, []),
        ({"stalled_since": -HOUR}, JobState.STOPPING, [SAVES]),
        ({"step": 70}, JobState.RUNNING, [UNSAVED]),
        ({"step": 50, "stalled_since": -HOUR}, JobState.RUNNING, [SAVES]),
        ({"at": -HOUR / 6, "stalled_since": -HOUR / 6}, JobState.RUNNING, [SAVES]),
    ],
)
def test_a_note_that_s3_contradicts_is_found(noted, state, broken):
    found, checks, now = make_checks()
    times = {name: now + value for name, value in noted.items() if isinstance(value, timedelta)}
    progress = replace(NotedProgress(60, now - HOUR, 1), **{**noted, **times})

    checks.job_saved(None, make_running_job(noted_progress=progress, state=state))

    assert found == broken


def test_a_stall_that_is_said_again_is_found():
    found, checks, now = make_checks()
    moving = NotedProgress(60, now - HOUR, 1)
    jobs: list[Job] = [
        make_running_job(noted_progress=each)
        for each in (moving, replace(moving, stalled_since=now), moving, replace(moving, stalled_since=now))
    ]
    for before, after in zip([None, *jobs], jobs, strict=False):
        checks.job_saved(before, after)

    assert found == [TWICE]


@pytest.mark.parametrize(
    ("since", "stalls_at", "broken"),
    [
        pytest.param(-HOUR, None, [TRAINS], id="its next checkpoint is not due yet"),
        pytest.param(-2 * HOUR, None, [], id="it is due"),
        pytest.param(-HOUR, 60.0, [], id="it gains nothing"),
        pytest.param(None, None, [], id="it does not work"),
    ],
)
def test_a_stall_of_a_training_that_works_is_found(since, stalls_at, broken):
    found, checks, now = make_checks()
    job = make_running_job(noted_progress=NotedProgress(60, now - HOUR, 1, stalled_since=now))
    recipe = Recipe(work_seconds=90_000.0, checkpoint_seconds=7_200.0)
    started_at = None if since is None else now + since
    training = _Training(None, None, recipe, job.job_id, 1, 60.0, None, resumed_at=started_at, stalls_at=stalls_at)
    checks._trainings().running[job.current_attempt.task_id] = training

    checks.job_saved(None, job)

    assert found == broken


@pytest.mark.parametrize(
    ("has_ended", "is_named_before", "broken"),
    [
        pytest.param(False, False, [KNOWN], id="it runs"),
        pytest.param(True, True, [KNOWN], id="it was known when it ended"),
        pytest.param(True, False, [], id="it was named once ECS had forgotten it"),
    ],
)
def test_a_step_that_is_not_known_is_found_unless_nobody_could_know_that_its_task_ran(
    has_ended, is_named_before, broken
):
    found, checks, now = make_checks()
    job = make_running_job()
    task_id = job.current_attempt.task_id
    attempt = replace(job.current_attempt, started_at=now - 2 * HOUR)
    job = replace(job, attempt=attempt, state_since=now - 2 * HOUR)
    checks._chance.is_calm = True
    checks._calm_since = now - HOUR
    facts = checks._facts
    facts.forgotten = {task_id}
    facts.known_at[task_id] = now - 2 * HOUR if is_named_before else now
    if has_ended:
        facts._stopped_at[task_id] = now - HOUR

    checks.job_saved(None, job)

    assert found == broken


def make_checks():
    """Make checks of a job that saved its steps 50 and 60 two hours and one hour ago, what they find, and the time."""
    clock = Clock()
    objects = ObjectStore()
    now = clock.now()
    found: list[str] = []

    def check(name: str, is_good: bool, _: str) -> None:
        found.extend([] if is_good else [name])

    for step, hours in ((50, 2), (60, 1)):
        key = f"resnet/resnet-1f2e3d4c/attempt-1/step-{step:07d}/manifest.json"
        objects.write("acme-checkpoints", key, b"{}", now - hours * HOUR)
    trainings = Trainings(clock, Chance(1, clock.now), objects, {})
    facts = AccountFacts(clock, lambda _arn: "")
    checks = StallChecks(clock, objects, check, lambda: trainings, Chance(0, clock.now), facts)
    return found, checks, now
