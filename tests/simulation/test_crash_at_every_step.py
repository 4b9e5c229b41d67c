"""A function that dies between any two of its steps changes nothing of how a story ends."""

from collections import Counter
from dataclasses import replace

import pytest

from fakes.simulation_stories import STORIES, Ending, Story, play

# Every function of the stack that touches a job takes at least so many steps in some story.
LEAST_STEPS = {
    "github_webhook": 2,
    "submit_job": 10,
    "job_api": 8,
    "launch_attempt": 12,
    "observe_task": 20,
    "observe_capacity": 8,
    "reconcile": 8,
}


def but_for_the_market(ending: Ending) -> Ending:
    """Leave out offerings without a machine: a delivery that comes minutes later may find another one the cheapest."""
    jobs = tuple((*job[:-1], tuple(kind for kind in job[-1] if kind != "no-capacity")) for job in ending.jobs)
    return replace(ending, jobs=jobs)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name.replace(" ", "-"))
def test_dying_at_any_step_changes_nothing_of_the_end(story: Story) -> None:
    undisturbed, steps = play(story, kill_at_step=0)
    assert undisturbed.violations == ()
    assert undisturbed.jobs
    assert len(steps) > 20

    differing = {}
    for number, step in enumerate(steps, start=1):
        ending, _ = play(story, kill_at_step=number)
        if but_for_the_market(ending) != but_for_the_market(undisturbed):
            differing[f"{number} {step}"] = ending
    assert differing == {}


def test_one_story_meets_an_offering_without_a_machine() -> None:
    story = next(each for each in STORIES if each.name == "the first offering has no machine")
    ending, _ = play(story, kill_at_step=0)
    assert "no-capacity" in ending.jobs[0][-1]


def test_the_stories_lead_through_every_function() -> None:
    visited: Counter[str] = Counter()
    for story in STORIES:
        _, steps = play(story, kill_at_step=0)
        visited.update(step.partition(":")[0] for step in steps)
    assert {name: visited[name] >= least for name, least in LEAST_STEPS.items()} == dict.fromkeys(LEAST_STEPS, True)
