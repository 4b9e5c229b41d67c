"""A function that is killed at any of its steps does not change how a story ends.

What a killed function leaves behind is what it has written. So it is killed before it has done anything and after each
of its writes: at the steps between two of them, where it only reads, it would leave the same. Stories have much in
common: `make test` kills each function once after the same writes while the jobs are as far with the same effects
pending, `make test-planted-bugs` each time.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache

import pytest

from fakes.simulation_stories import STORIES, Ending, Step, Story, run_story

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


@dataclass(frozen=True)
class Kill:
    """What makes a kill another one: the function, what it does and has written, and what it finds of the jobs."""

    function: str
    doing: str
    written: tuple[str, ...]
    jobs: tuple[tuple[str, bool, bool, bool], ...]
    pending: tuple[str, ...]


def kills(steps: Iterable[Step]) -> dict[int, Kill]:
    """Return the numbers of the steps at which a function is killed."""
    found = {}
    written: dict[str, tuple[str, ...]] = {}
    for number, step in enumerate(steps, start=1):
        _, _, action = step.doing.partition(":")
        is_after_a_write = action.endswith(" took effect") and not READ.match(action)
        is_first = step.invocation not in written
        before = written.setdefault(step.invocation, ())
        if is_first or is_after_a_write:
            function, _, _ = step.invocation.partition("#")
            found[number] = Kill(function, step.doing, before, step.jobs, step.pending)
        if is_after_a_write:
            written[step.invocation] = (*before, step.doing)
    return found


@cache
def all_kills() -> dict[str, dict[int, Kill]]:
    """Return the kills of each story."""
    return {story.name: kills(run_story(story)[1]) for story in STORIES}


def first_kills() -> dict[str, dict[int, Kill]]:
    """Return the kills of each story that are none of one before it, nor of its own before."""
    known: set[Kill] = set()
    first: dict[str, dict[int, Kill]] = {}
    for name, of_story in all_kills().items():
        first[name] = {}
        for number, kill in of_story.items():
            if kill not in known:
                known.add(kill)
                first[name][number] = kill
    return first


def without_capacity_failures(ending: Ending) -> Ending:
    """Omit capacity failures: a delivery minutes later may find another offering the cheapest."""
    jobs = tuple((*job[:-1], tuple(kind for kind in job[-1] if kind != "no-capacity")) for job in ending.jobs)
    return replace(ending, jobs=jobs)


WHICH = [
    pytest.param(first_kills, id="each-once"),
    pytest.param(all_kills, marks=pytest.mark.planted, id="each-time"),
]


@pytest.mark.parametrize("kills_of", WHICH)
@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name.replace(" ", "-"))
def test_a_kill_does_not_change_the_ending(story: Story, kills_of: Callable[[], dict[str, dict[int, Kill]]]) -> None:
    undisturbed, steps = run_story(story)
    assert undisturbed.violations == ()
    assert undisturbed.jobs
    assert len(steps) > 20

    differing = {}
    for number, kill in kills_of()[story.name].items():
        ending, _ = run_story(story, kill_at_step=number)
        if without_capacity_failures(ending) != without_capacity_failures(undisturbed):
            differing[f"{number} {kill}"] = ending
    assert differing == {}


def test_no_kill_is_left_out() -> None:
    first = [kill for of_story in first_kills().values() for kill in of_story.values()]
    assert len(first) == len(set(first)) > 200
    assert set(first) == {kill for of_story in all_kills().values() for kill in of_story.values()}


def test_a_function_is_killed_before_anything_and_after_each_write() -> None:
    running = (("RUNNING", True, False, False),)
    stopping = (("STOPPING", True, False, False),)
    steps = (
        Step("reconcile#1", "dynamodb:load_due is sent", running, ()),
        Step("submit_job#2", "sqs:send_message is sent", running, ()),
        Step("reconcile#1", "dynamodb:load_due took effect", running, ()),
        Step("submit_job#2", "sqs:send_message took effect", running, ()),
        Step("reconcile#1", "ecs:stop_task is sent", stopping, ("StopTask",)),
        Step("reconcile#1", "ecs:stop_task took effect", stopping, ("StopTask",)),
        Step("reconcile#1", "sqs:send_message took effect", stopping, ()),
        Step("reconcile#3", "ecs:list_tasks is sent", stopping, ()),
    )
    found = kills(steps)
    assert list(found) == [1, 2, 4, 6, 7, 8]
    assert found[7] == Kill("reconcile", "sqs:send_message took effect", ("ecs:stop_task took effect",), stopping, ())


def test_one_story_has_an_offering_without_capacity() -> None:
    story = next(each for each in STORIES if each.name == "the first offering has no instance")
    ending, _ = run_story(story)
    assert "no-capacity" in ending.jobs[0][-1]


def test_the_stories_run_every_function() -> None:
    visited: Counter[str] = Counter()
    for story in STORIES:
        _, steps = run_story(story)
        visited.update(step.invocation.partition("#")[0] for step in steps)
    assert {name: visited[name] >= least for name, least in LEAST_STEPS.items()} == dict.fromkeys(LEAST_STEPS, True)
