"""No receiver of notices, however dead, changes when a job is launched, or anything else that becomes of it."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from relaunch_local.simulation import Options
from relaunch_local.simulation.chance import Chance
from relaunch_local.simulation.drawn_scenario import draw_scenario
from relaunch_local.simulation.notice_plans import FOR_EVER, Absence, Away, NoticePlan
from relaunch_local.simulation.run import SeedRun
from relaunch_local.simulation.scenario import Scenario

DEAD = Absence(0.0, FOR_EVER, Away.SILENT)


def drawn(seed: int) -> Scenario:
    return draw_scenario(Chance(seed, lambda: datetime(2026, 1, 1, tzinfo=UTC)))


def timelines(seed: int, notices: NoticePlan | None) -> dict[str, list[tuple[str, str, float]]]:
    """Return what became of each job, and when, in seconds after the beginning of the run."""
    run = SeedRun(seed, Options(scenario=replace(drawn(seed), notices=notices)))
    assert not run.run().violations
    begin = run.account.started_at
    return {
        job_id: [(each.event, str(each.state), (each.at - begin).total_seconds()) for each in timeline]
        for job_id, timeline in run.account.invariants.timelines.items()
    }


@pytest.mark.parametrize("seed", [15])
def test_jobs_do_the_same_at_the_same_time_whether_receivers_are_dead_alive_or_none(seed: int) -> None:
    plan = drawn(seed).notices
    assert plan is not None
    dead = replace(plan, receivers=tuple(replace(each, absences=(DEAD,)) for each in plan.receivers))

    without = timelines(seed, None)

    assert any(event == "launching" for timeline in without.values() for event, _, _ in timeline)
    assert timelines(seed, dead) == without
    assert timelines(seed, plan) == without
