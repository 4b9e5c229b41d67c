"""A change that EventBridge never took is missed, unless a hundred later ones of its job waited behind it."""

from dataclasses import replace
from datetime import timedelta
from itertools import cycle

import pytest

from fakes.builders import make_job
from relaunch.core.jobs.state import JobState
from relaunch_local.ecs import Clock
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.checks.job_events import JobEventChecks

JOB = "resnet-1"


@pytest.mark.parametrize(("changes", "is_missed"), [(101, False), (100, True)])
@pytest.mark.parametrize("taken", [None, 50])
def test_a_change_may_be_given_up_for_a_hundred_later_ones(changes: int, taken: int | None, *, is_missed: bool) -> None:
    clock = Clock()
    broken: list[str] = []
    checks = JobEventChecks(
        clock, Chance(1, clock.now), lambda name, is_good, _: None if is_good else broken.append(name), list, {}
    )
    for number, state in zip(range(1, changes + 1), cycle((JobState.WAITING, JobState.RUNNING))):
        checks.job_saved(replace(make_job(JOB), state=state))
        clock.advance_to(clock.now() + timedelta(seconds=1))
        if number == taken:
            checks.taken_at[f"{JOB}:{number}"] = clock.now()
    checks.taken.update({f"{JOB}:{number}": "" for number in range(2, changes + 1)})
    checks.check_end()

    assert bool(broken) is (is_missed or taken is not None)
