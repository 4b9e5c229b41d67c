"""The time until the local world is ready, and from a push until its task runs.

The world is that of `make demo`: the built template deployed into the emulator, and the ECS simulator, whose
delays are divided by its speed. There is one round only.
"""

import json
import os
import time
from datetime import UTC, datetime
from unittest.mock import patch

import boto3

from benchmarks.errors import NotMeasurableError
from benchmarks.recording import example_definitions
from benchmarks.session import Session
from benchmarks.tables import Table
from fakes.webhook import load_event, make_request, post
from relaunch.bootstrap import make_dependencies
from relaunch.core.jobs.job import Job
from relaunch.core.jobs.state import JobState
from relaunch.ports import Dependencies
from relaunch.settings import Settings
from relaunch_local.stack.local_world import LocalWorld, LocalWorldSettings, local_world

TIMEOUT_SECONDS = 60.0
LOOK_SECONDS = 0.1


def measure(_session: Session) -> list[Table]:
    """Open a local world and process one push in it."""
    started = time.perf_counter()
    reported: list[tuple[str, float]] = []
    settings = LocalWorldSettings()
    with local_world(settings, lambda text: reported.append((text.split(" at ")[0], time.perf_counter()))) as local:
        ready = time.perf_counter()
        with patch.dict(os.environ, local.environment()):
            world = make_dependencies(Settings.from_stack_outputs(local.deployment.outputs), boto3.Session())
            pushed = _carry_push(local, world)
        ending = time.perf_counter()
    ended = time.perf_counter()
    making = [(what.split(",")[0], at - started) for what, at in reported]
    making += [("ready", ready - started), ("removing all of it", ended - ending)]
    return [
        Table("Making the local world", ("reached", "seconds"), making),
        Table(
            "From a signed push, sent to the webhook's URL",
            ("until", "seconds"),
            pushed,
            (
                f"The simulated region is {settings.speed:.0f} times as fast as AWS's documented or reported delays: "
                "it takes 3.6 s from RunTask to RUNNING.",
                "Functions start cold: each step has a new execution environment of the emulator.",
            ),
        ),
    ]


def run_pushed_job(local: LocalWorld, world: Dependencies) -> Job:
    """Register the example definitions, push, and return the job once it runs.

    Raises:
        NotMeasurableError: the push was not accepted, or no job ran in time.
    """
    _push(local, world)
    return _wait_until_running(world)


def _push(local: LocalWorld, world: Dependencies) -> tuple[datetime, datetime]:
    """Return when the push was sent, and when it was answered."""
    for definition in example_definitions():
        world.definitions.save_definition(definition)
    push = make_request(json.dumps(load_event("github.push")).encode(), secret=local.deployment.webhook_secret)
    sent_at = datetime.now(UTC)
    status = post(local.deployment.webhook_url, push)
    if status != 202:
        raise NotMeasurableError(f"the webhook answered {status}")
    return sent_at, datetime.now(UTC)


def _carry_push(local: LocalWorld, world: Dependencies) -> list[tuple[str, float]]:
    sent_at, answered_at = _push(local, world)
    job = _wait_until_running(world)
    run_task = next(each for each in local.simulator.requests if each.action == "RunTask")
    history = world.jobs.load_history(job.job_id)
    timeline = history.timeline if history else ()
    running_at = next(entry.at for entry in timeline if entry.state is JobState.RUNNING)
    moments: list[tuple[str, datetime | None]] = [
        ("answered 202", answered_at),
        ("job accepted", job.accepted_at),
        ("RunTask received by ECS", run_task.at),
        ("task runs, says ECS", job.totals.first_started_at),
        ("job is RUNNING, says the jobs table", running_at),
    ]
    return [(what, (at - sent_at).total_seconds()) for what, at in moments if at is not None]


def _wait_until_running(world: Dependencies) -> Job:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        jobs, _ = world.jobs.list_jobs(1)
        job = world.jobs.load_job(jobs[0].job_id) if jobs else None
        if job is not None and job.state is JobState.RUNNING:
            return job
        time.sleep(LOOK_SECONDS)
    raise NotMeasurableError(f"no job was RUNNING within {TIMEOUT_SECONDS:.0f} s of the push")
