"""A function that is killed at any of its steps does not change how a story ends.

What a killed function leaves behind is what it has written. So it is killed before it has done anything and after each
of its writes: at the steps between two of them, where it only reads, it would leave the same.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
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


# The actions that change nothing, by AWS's words and those of the stores.
READ = re.compile(r"(batch_get|describe|find|get|list|load)_")


def kills(steps: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the steps at which a function is killed, with their numbers."""
    begun = set()
    for number, step in enumerate(steps, start=1):
        invocation, _, doing = step.partition(": ")
        _, _, action = doing.partition(":")
        is_after_a_write = action.endswith(" took effect") and not READ.match(action)
        if invocation not in begun or is_after_a_write:
            yield number, step
        begun.add(invocation)


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
    for number, step in kills(steps):
        ending, _ = run_story(story, kill_at_step=number)
        if without_capacity_failures(ending) != without_capacity_failures(undisturbed):
            differing[f"{number} {step}"] = ending
    assert differing == {}


def test_a_function_is_killed_before_anything_and_after_each_write() -> None:
    steps = (
        "reconcile#1: dynamodb:load_due is sent",
        "submit_job#2: sqs:send_message is sent",
        "reconcile#1: dynamodb:load_due took effect",
        "submit_job#2: sqs:send_message took effect",
        "reconcile#1: ecs:stop_task is sent",
        "reconcile#1: ecs:stop_task took effect",
        "reconcile#3: ecs:list_tasks is sent",
    )
    assert [number for number, _ in kills(steps)] == [1, 2, 4, 6, 7]


def test_one_story_has_an_offering_without_capacity() -> None:
    story = next(each for each in STORIES if each.name == "the first offering has no instance")
    ending, _ = run_story(story, kill_at_step=0)
    assert "no-capacity" in ending.jobs[0][-1]


def test_the_stories_run_every_function() -> None:
    visited: Counter[str] = Counter()
    for story in STORIES:
        _, steps = run_story(story, kill_at_step=0)
        visited.update(step.partition("#")[0] for step in steps)
    assert {name: visited[name] >= least for name, least in LEAST_STEPS.items()} == dict.fromkeys(LEAST_STEPS, True)
