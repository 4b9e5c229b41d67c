"""Events that a pattern selects: each starts a job once, and jobs that start one another end."""

from dataclasses import replace

import pytest

from fakes.builders import make_definition
from fakes.story import Story
from relaunch.core.definitions.definition import EventBridgeTrigger, JobDefinition
from relaunch.core.definitions.event_pattern import pattern_key
from relaunch.core.triggers.events import BusEvent
from relaunch.usecases.submit_job import submit_event

PATTERN = '{"detail-type":["Job State Change"],"source":["relaunch.relaunch"]}'
NARROW = '{"detail":{"state":["SUCCEEDED"]},"source":["relaunch.relaunch"]}'


def watching(name: str, *patterns: str) -> JobDefinition:
    return make_definition(name=name, triggers=tuple(map(EventBridgeTrigger, patterns)))


def ended(job_id: str, number: int = 1, pattern: str = PATTERN) -> BusEvent:
    content = {"detail": {"job_id": job_id, "state": "SUCCEEDED"}}
    identity = f"eventbridge:relaunch.relaunch:{number}"
    return BusEvent(
        identity, pattern_key(pattern), str(number), "relaunch.relaunch", "Job State Change", content, job_id
    )


def test_an_event_that_comes_twice_or_by_two_rules_is_one_job_of_each_definition() -> None:
    story = Story(watching("eval", PATTERN, NARROW), watching("export", NARROW))

    events = [ended("resnet-1"), ended("resnet-1"), ended("resnet-1", pattern=NARROW)]
    started = [each.job.job_id for event in events for each in submit_event(event, story.deps) if each.is_new]

    assert [job_id.rpartition("-")[0] for job_id in started] == ["eval", "export"]


def test_an_event_of_a_pattern_that_no_definition_has_any_more_starts_nothing() -> None:
    story = Story(watching("eval", NARROW))

    assert submit_event(ended("resnet-1"), story.deps) == ()

    (record,) = story.deps.events.list_events(story.now, 9)
    assert record.outcome == f"no job definition watches eventbridge {pattern_key(PATTERN)}"


@pytest.mark.parametrize("names", [("loop",), ("ping", "pong")])
def test_jobs_that_start_one_another_end(names: tuple[str, ...]) -> None:
    story = Story(*(watching(name, PATTERN) for name in names))

    rounds: list[int] = []
    last = "resnet-of-a-push"
    for number in range(20):
        submissions = submit_event(ended(last, number), story.deps)
        started = [each.job for each in submissions if each.job is not None]
        rounds.append(len(started))
        if not started:
            break
        last = started[-1].job_id

    assert rounds == [*[len(names)] * 5, 0]
    assert submissions[0].note.startswith(f"job {last} is the last of 6 that events about the one before started")


def test_of_a_job_of_another_stack_the_event_says_how_many_came_before() -> None:
    story = Story(watching("eval", PATTERN))
    variables = {"RELAUNCH_CHAIN_DEPTH": "5"}
    content = {"detail": {"job_id": "theirs-1", "trigger": {"variables": variables}}}

    (last,) = submit_event(replace(ended("theirs-1"), content=content), story.deps)
    variables["RELAUNCH_CHAIN_DEPTH"] = "4"
    (other,) = submit_event(replace(ended("theirs-1"), content=content), story.deps)

    assert (last.job, other.is_new) == (None, True)


def test_each_job_says_how_many_came_before_it() -> None:
    story = Story(watching("eval", PATTERN))
    (first,) = submit_event(ended("resnet-1"), story.deps)
    assert first.job is not None

    (second,) = submit_event(ended(first.job.job_id, 2), story.deps)

    assert second.job is not None
    depths = [each.job.trigger.environment["RELAUNCH_CHAIN_DEPTH"] for each in (first, second) if each.job]
    assert depths == ["1", "2"]
