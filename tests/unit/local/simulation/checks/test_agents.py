"""How long a job may wait for an agent, by what RunTask answered."""

from datetime import timedelta

import pytest

from relaunch_local.ecs import Clock
from relaunch_local.simulation.checks.agents import AgentChecks
from relaunch_local.simulation.checks.facts import AccountFacts

JOB = "j-1"
HOST = "arn:host"
MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("said_away", "lost", "is_violated"),
    [
        ((0, 20), (), False),
        ((0, 21), (), True),
        ((0, 24), (2, 19), False),
        ((0, 24), (2,), True),
        ((0, 24, 37), (2, 19), False),
        ((0, 24, 38), (2, 19), True),
        ((0, 10, 24), (2, 19), True),
    ],
)
def test_a_job_waits_for_runtask_between_calls_that_are_lost(
    said_away: tuple[int, ...], lost: tuple[int, ...], *, is_violated: bool
) -> None:
    clock = Clock()
    began_at = clock.now()
    facts = AccountFacts(clock, lambda _arn: HOST)
    facts.unanswered_jobs[JOB] = [began_at + minute * MINUTE for minute in lost]
    violations = []
    checks = AgentChecks(clock, lambda name, is_held, _: None if is_held else violations.append(name), facts, {})

    for minute in said_away:
        clock.advance_to(began_at + minute * MINUTE)
        checks.run_task_answered(f"{JOB}/1", HOST)

    assert violations == ["a job waits for an agent for minutes"] * is_violated
