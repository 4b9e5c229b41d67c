"""How often a dispatch with the same body starts jobs."""

from dataclasses import replace
from datetime import timedelta
from unittest.mock import Mock

import pytest

from fakes.builders import make_definition
from fakes.story import Story, push
from relaunch.core.definitions.definition import GithubTrigger
from relaunch.core.triggers.dispatch_rate import MAX_STARTS_PER_HOUR, PERIOD, admit_dispatch
from relaunch.core.triggers.events import GithubEvent, RepositoryDispatch, WorkflowDispatch
from relaunch.ports import TransientError
from relaunch.usecases.submit_job import submit_event

TRIGGERS = tuple(GithubTrigger("acme/vision", event) for event in ("workflow_dispatch", "repository_dispatch", "push"))


def dispatch(delivery: str, body: str = "ab") -> WorkflowDispatch:
    return WorkflowDispatch(
        identity=f"github:workflow_dispatch:acme/vision:{delivery}",
        repository="acme/vision",
        workflow="train.yml",
        body_sha256=body,
    )


def started(story: Story, *events: GithubEvent) -> int:
    return sum(each.is_new for event in events for each in submit_event(event, story.deps))


@pytest.fixture
def story() -> Story:
    return Story(make_definition(triggers=TRIGGERS), make_definition(name="bert", triggers=TRIGGERS))


def test_a_replay_under_invented_delivery_ids_starts_a_few_jobs_per_hour(story):
    replays = [dispatch(f"invented-{number}") for number in range(20)]

    # Each dispatch starts a job of both definitions.
    assert started(story, *replays) == 2 * MAX_STARTS_PER_HOUR
    story.clock.advance(PERIOD)
    assert started(story, *(dispatch(f"later-{number}") for number in range(20))) == 2 * MAX_STARTS_PER_HOUR


def test_what_is_refused_is_told_with_what_to_do(story):
    started(story, *(dispatch(f"guid-{number}") for number in range(MAX_STARTS_PER_HOUR + 1)))

    (refused,) = [each for each in story.deps.events.list_events(story.now, 9) if not each.job_ids]

    assert refused.outcome.count("4 dispatches with exactly this content started jobs in the last hour") == 2
    assert "docs/webhook-secrets.md" in refused.outcome


def test_dispatches_with_other_bodies_do_not_count(story):
    assert started(story, *(dispatch(f"guid-{number}", f"body-{number}") for number in range(9))) == 18


def test_a_redelivery_stays_the_same_event_even_when_no_more_may_start(story):
    first = dispatch("guid-0")
    started(story, first, *(dispatch(f"guid-{number}") for number in range(1, MAX_STARTS_PER_HOUR)))

    (submission, _) = submit_event(first, story.deps)

    assert submission.job is not None
    assert submission.note.endswith("is there already")


def test_a_refused_dispatch_that_is_redelivered_later_starts_its_job(story):
    started(story, *(dispatch(f"guid-{number}") for number in range(MAX_STARTS_PER_HOUR)))
    late = dispatch("late")
    assert started(story, late, late) == 0

    story.clock.advance(PERIOD)

    assert started(story, late, late) == 2


def test_a_dispatch_that_was_counted_and_then_interrupted_is_not_counted_again(story):
    create = story.jobs.create_job
    story.jobs.create_job = Mock(side_effect=TransientError("throttled"))
    for _ in range(MAX_STARTS_PER_HOUR + 1):
        with pytest.raises(TransientError):
            submit_event(dispatch("guid-1"), story.deps)

    story.jobs.create_job = create

    assert started(story, dispatch("guid-1")) == 2
    assert started(story, *(dispatch(f"guid-{number}") for number in range(2, 20))) == 2 * (MAX_STARTS_PER_HOUR - 1)


def test_concurrent_dispatches_do_not_start_too_many(story):
    """Others save between this one's read and its write, as often as the limit."""
    events = story.deps.events
    load, others = events.load_dispatch_starts, iter(range(MAX_STARTS_PER_HOUR))

    def load_and_be_overtaken(body: str) -> object:
        found = load(body)
        number = next(others, None)
        if number is not None:
            assert events.save_dispatch_starts(admit_dispatch(found, f"other-{number}", story.now))
        return found

    events.load_dispatch_starts = load_and_be_overtaken

    assert started(story, dispatch("guid-1")) == 0


def test_a_count_that_is_always_overtaken_is_tried_again_later(story):
    story.deps.events.save_dispatch_starts = Mock(return_value=False)

    with pytest.raises(TransientError, match="others counted the same body 5 times in between"):
        submit_event(dispatch("guid-1"), story.deps)
    assert story.deps.events.list_events(story.now, 9) == []


def test_a_count_that_was_saved_without_an_answer_is_found_again(story):
    events = story.deps.events
    save = events.save_dispatch_starts
    events.save_dispatch_starts = Mock(side_effect=lambda starts: save(starts) and False)

    assert started(story, dispatch("guid-1")) == 2
    assert list(events.load_dispatch_starts("ab").started_at) == [dispatch("guid-1").identity]


def test_only_dispatches_that_start_something_are_counted(story):
    story.deps.events.load_dispatch_starts = Mock(side_effect=AssertionError("a call too many"))

    assert started(story, push()) == 2
    assert started(story, replace(dispatch("guid-1"), repository="acme/other")) == 0
    with pytest.raises(AssertionError, match="a call too many"):
        submit_event(
            RepositoryDispatch(identity="r", repository="acme/vision", event_type="train", body_sha256="ab"), story.deps
        )


def test_the_limit_is_for_an_hour():
    assert timedelta(hours=1) == PERIOD
