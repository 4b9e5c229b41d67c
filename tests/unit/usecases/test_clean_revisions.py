"""Derived revisions that nothing needs any more are deregistered, once an hour, after a day, and never in haste."""

from dataclasses import replace
from datetime import timedelta
from unittest.mock import DEFAULT, Mock

import pytest

from fakes.builders import make_revision
from fakes.story import Story, push
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.launches.derived_revision import DERIVED_FROM, TaskDefinition
from relaunch.core.revisions.revision import TaskDefinitionGrants
from relaunch.ports import TransientError
from relaunch.usecases.clean_revisions import clean_revisions

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
STALE = TaskDefinition("trainer--0123456789abcdef", {"containerDefinitions": []}, {DERIVED_FROM: make_revision().arn})


def clean(story: Story, after: timedelta = timedelta(0)) -> int:
    story.clock.advance(after)
    return clean_revisions(story.deps)


def with_stale(*families: str) -> Story:
    story = Story()
    for family in families or (STALE.family,):
        story.registry.register(TaskDefinition(family, STALE.content, STALE.tags))
    return story


def test_what_nothing_has_used_for_a_day_is_deregistered():
    story = with_stale()

    assert [clean(story, 6 * HOUR) for _ in range(5)] == [0, 0, 0, 0, 1]
    assert story.registry.list_families() == []


def test_what_is_used_meanwhile_has_another_day():
    story = with_stale()
    clean(story)
    job_id = story.launch()
    used = story.attempt(job_id).placement.revision_arn
    assert used is not None

    assert clean(story, DAY + HOUR) == 1
    assert story.registry.active == {used}
    story.end(job_id)
    assert clean(story, HOUR) == 0
    assert clean(story, 23 * HOUR) == 0
    assert clean(story, HOUR) == 1
    assert story.registry.active == set()


def test_what_a_waiting_job_ran_last_stays(story, running_id):
    story.lose_host(running_id)

    for _ in range(3):
        assert clean(story, DAY) == 0


def test_a_job_whose_revision_was_deregistered_registers_it_again(story):
    first = story.launch()
    story.end(first)
    for _ in range(3):
        clean(story, DAY)
    assert story.registry.active == set()

    story.submit_and_deliver(push(sha="77" * 20))

    first_run, second_run = (request.revision_arn for request in story.tasks.requests)
    assert first_run != second_run
    assert story.registry.registered[first_run] == story.registry.registered[second_run]


def test_it_is_looked_at_once_an_hour():
    story = with_stale()
    clean(story)
    looked = story.deps.maintenance.load_maintenance()

    clean(story, HOUR / 2)
    assert story.deps.maintenance.load_maintenance() == looked
    clean(story, HOUR / 2)
    assert story.deps.maintenance.load_maintenance() != looked


def test_of_two_calls_at_once_one_does_it(monkeypatch: pytest.MonkeyPatch):
    story = with_stale()
    first = story.deps.maintenance.load_maintenance
    clean(story)
    stale_read = first()
    story.clock.advance(DAY)
    clean(story)
    story.registry.register(TaskDefinition("trainer--fedcba9876543210", STALE.content, STALE.tags))
    monkeypatch.setattr(story.deps.maintenance, "load_maintenance", lambda: stale_read)

    assert clean(story, 2 * DAY) == 0
    assert story.registry.list_families() == ["trainer--fedcba9876543210"]


def test_a_throttled_cleaning_is_done_an_hour_later():
    story = with_stale()
    clean(story)
    answers = [TransientError("ThrottlingException"), DEFAULT]
    story.registry.deregister_family = Mock(wraps=story.registry.deregister_family, side_effect=answers)

    assert clean(story, DAY) == 0
    assert "postponed" in story.log.decisions
    assert clean(story, HOUR) == 1


def test_few_are_deregistered_at_once_so_that_registrations_have_room():
    story = with_stale(*(f"trainer--{number:016x}" for number in range(15)))
    clean(story)

    assert clean(story, DAY) == 10
    assert clean(story, HOUR) == 5


def test_with_more_open_jobs_than_can_be_looked_at_nothing_is_deregistered(monkeypatch: pytest.MonkeyPatch):
    story = with_stale()
    clean(story)
    monkeypatch.setattr(story.jobs, "load_due", lambda now, limit: [f"job-{number}" for number in range(limit)])

    assert clean(story, DAY) == 0
    assert story.registry.list_families() == [STALE.family]


def test_without_derived_revisions_no_job_is_read(story, monkeypatch: pytest.MonkeyPatch):
    story.run_images("busybox:1")
    story.launch()
    monkeypatch.delattr(type(story.jobs), "load_due")

    assert clean(story) == 0


def test_nothing_is_deregistered_where_there_is_no_time_to_look_at_every_job():
    story = with_stale()
    clean(story)
    for sha in ("1" * 40, "2" * 40):
        story.submit(push(sha))
    story.clock.advance(2 * DAY)
    answers = iter((True, False))

    assert clean_revisions(story.deps, lambda: next(answers)) == 0

    assert story.registry.list_families() == [STALE.family]
    assert clean(story, HOUR) == 1


def test_the_derived_revisions_of_another_stack_in_the_account_are_left_to_it():
    story = with_stale("vision-bert--0123456789abcdef", "speech-asr--0123456789abcdef", "vision--0123456789abcdef")
    own = replace(story.deps, limits=StackLimits(task_definitions=TaskDefinitionGrants(("vision-*",))))

    for _ in range(3):
        clean_revisions(own)
        story.clock.advance(DAY)

    assert story.registry.list_families() == ["speech-asr--0123456789abcdef", "vision--0123456789abcdef"]
