"""A function that is killed at any of its steps does not change how a story ends."""

from collections import Counter
from dataclasses import replace

import pytest

from fakes.simulation_stories import STORIES, Ending, Story, run_story

# The least number of steps that every function of the stack takes in all stories.
LEAST_STEPS = {
    "github_webhook": 2,
    "submit_job": 10,
    "job_api": 8,
    "launch_attempt": 12,
    "observe_task": 20,
    "observe_capacity": 8,
    "reconcile": 8,
}


def without_capacity_failures(ending: Ending) -> Ending:
    """Omit capacity failures: a delivery minutes later may find another offering the cheapest."""
    jobs = tuple((*job[:-1], tuple(kind for kind in job[-1] if kind != "no-capacity")) for job in ending.jobs)
    return replace(ending, jobs=jobs)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name.replace(" ", "-"))
def test_a_kill_at_any_step_does_not_change_the_ending(story: Story) -> None:
    undisturbed, steps = run_story(story, kill_at_step=0)
    assert undisturbed.violations == ()
    assert undisturbed.jobs
    assert len(steps) > 20

    differing = {}
    for number, step in enumerate(steps, start=1):
        ending, _ = run_story(story, kill_at_step=number)
        if without_capacity_failures(ending) != without_capacity_failures(undisturbed):
            differing[f"{number} {step}"] = ending
    assert differing == {}


def test_one_story_has_an_offering_without_capacity() -> None:
    story = next(each for each in STORIES if each.name == "the first offering has no instance")
    ending, _ = run_story(story, kill_at_step=0)
    assert "no-capacity" in ending.jobs[0][-1]


def test_the_stories_run_every_function() -> None:
    visited: Counter[str] = Counter()
    for story in STORIES:
        _, steps = run_story(story, kill_at_step=0)
        visited.update(step.partition(":")[0] for step in steps)
    assert {name: visited[name] >= least for name, least in LEAST_STEPS.items()} == dict.fromkeys(LEAST_STEPS, True)
