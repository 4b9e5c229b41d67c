"""A function that dies between any two of its steps changes nothing of how a story ends."""

from collections import Counter

import pytest

from fakes.simulation_stories import STORIES, Story, play

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


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name.replace(" ", "-"))
def test_dying_at_any_step_changes_nothing_of_the_end(story: Story) -> None:
    undisturbed, steps = play(story, kill_at_step=0)
    assert undisturbed.violations == ()
    assert undisturbed.jobs
    assert len(steps) > 20

    differing = {}
    for number, step in enumerate(steps, start=1):
        ending, _ = play(story, kill_at_step=number)
        if ending != undisturbed:
            differing[f"{number} {step}"] = ending
    assert differing == {}


def test_the_stories_lead_through_every_function() -> None:
    visited: Counter[str] = Counter()
    for story in STORIES:
        _, steps = play(story, kill_at_step=0)
        visited.update(step.partition(":")[0] for step in steps)
    assert {name: visited[name] >= least for name, least in LEAST_STEPS.items()} == dict.fromkeys(LEAST_STEPS, True)
