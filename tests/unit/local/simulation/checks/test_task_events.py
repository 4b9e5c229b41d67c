"""Of several tasks nothing is kept before the table has them: who began before that may know no event."""

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from fakes.builders import make_definition, make_job, make_placement, make_running_attempt
from relaunch.core.jobs.job import Job
from relaunch_local.ecs import Clock
from relaunch_local.simulation.checks.facts import AccountFacts
from relaunch_local.simulation.checks.task_events import TaskEvents

JOB = "resnet-1"
TASK = "arn:aws:ecs:us-east-1:111122223333:task/relaunch/first"


def passes(nodes: int, began: timedelta, version: int) -> bool:
    """Return whether the check holds of an event of version 2 that a function began so long after the save."""
    clock = Clock()
    jobs: dict[str, Job] = {}
    found: list[bool] = []

    def check(_name: str, holds: bool, _message: str = "") -> None:
        found.append(holds)

    events = TaskEvents(check, clock, AccountFacts(clock, lambda _arn: "i-1"), jobs, set())
    attempt = replace(make_running_attempt(placement=make_placement(task_id=TASK)), task_version=version)
    jobs[JOB] = make_job(JOB, definition=make_definition(nodes=nodes), attempt=attempt)
    events.job_saved(jobs[JOB])
    saved_at: datetime = clock.now()
    clock.advance_to(saved_at + timedelta(minutes=1))
    events.job_saved(jobs[JOB])
    detail = {"taskArn": TASK, "startedBy": f"{JOB}/1", "lastStatus": "STOPPED", "version": 2}
    events.handled(detail, saved_at + began)
    (is_kept,) = found
    return is_kept


@pytest.mark.parametrize(
    ("nodes", "seconds", "version", "is_violated"),
    [
        (2, -1, 1, False),
        (2, 0, 1, True),
        (2, 1, 0, True),
        (2, 1, 2, False),
        (1, -1, 1, True),
        (1, 1, 2, False),
    ],
)
def test_only_who_began_before_the_tasks_were_saved_may_know_nothing(
    nodes: int, seconds: int, version: int, *, is_violated: bool
) -> None:
    assert passes(nodes, timedelta(seconds=seconds), version) is not is_violated
