"""Floods: how many jobs may wait, and what becomes of the events beyond."""

from dataclasses import replace
from unittest.mock import Mock

import pytest

from fakes.builders import make_definition
from fakes.metrics import ListMetrics
from fakes.story import WAITS_FOR_IMAGE, Story, push
from relaunch.core.definitions.definition import GithubTrigger
from relaunch.core.jobs.limits import StackLimits
from relaunch.core.jobs.state import WaitReason
from relaunch.core.lifecycle.metrics import Metric
from relaunch.core.triggers.events import DirectRequest
from relaunch.ports import TransientError
from relaunch.usecases.cancel_job import cancel_job
from relaunch.usecases.count_waiting_jobs import count_waiting_jobs
from relaunch.usecases.launch_attempt import launch_attempt
from relaunch.usecases.submit_job import WaitingLimitReachedError, submit_event, submit_request

BOTH = "too many jobs wait: 2 of resnet (max_waiting_jobs is 2), 2 in the stack (MaxWaitingJobs is 5000); no job was"


def request(key: str, definition: str = "resnet") -> DirectRequest:
    return DirectRequest(f"direct:{key}", definition)


def full_story(**fields) -> Story:
    """Return a story in which two jobs wait, as many as may."""
    story = Story(make_definition(max_waiting_jobs=2, **fields))
    story.deps = replace(story.deps, metrics=ListMetrics())
    for key in ("a", "b"):
        submit_request(request(key), story.deps)
    return story


def test_an_event_beyond_the_limit_starts_no_job_and_says_why():
    story = full_story()

    (submission,) = submit_event(push(), story.deps)

    assert submission.job is None
    assert submission.note.startswith(BOTH)
    (record,) = story.deps.events.list_events(story.now, 9)
    assert record.outcome == f"resnet: {submission.note}"
    assert record.job_ids == ()
    assert len(story.jobs.load_open(9)) == 2
    recorded = [datum.metric for datum in story.deps.metrics.recorded]
    assert recorded[-2:] == [Metric.JOBS_REJECTED, Metric.EVENTS_IGNORED]


def test_a_direct_request_beyond_the_limit_is_refused_and_nothing_is_stored():
    story = full_story()

    with pytest.raises(WaitingLimitReachedError, match="too many jobs wait: 2 of resnet"):
        submit_request(request("c"), story.deps)

    assert len(story.jobs.load_open(9)) == 2
    cancel_job(story.jobs.load_open(1)[0], "room", story.deps)
    assert submit_request(request("c"), story.deps).is_new


def test_a_request_and_an_event_that_come_again_find_their_job_whatever_waits():
    story = full_story()
    story.deps.definitions.save_definition(make_definition(max_waiting_jobs=3))
    (first,) = submit_event(push(), story.deps)
    story.deps.definitions.save_definition(make_definition(max_waiting_jobs=1))

    assert submit_event(push(), story.deps)[0].job.job_id == first.job.job_id
    assert not submit_request(request("a"), story.deps).is_new


def test_a_rejected_event_that_is_delivered_again_starts_its_job_once_there_is_room():
    story = full_story()
    submit_event(push(), story.deps)
    story.deps.definitions.save_definition(make_definition(max_waiting_jobs=3))

    (again,) = submit_event(push(), story.deps)

    assert again.is_new


def test_what_runs_does_not_wait():
    story = full_story()
    launch_attempt(story.jobs.load_open(1)[0], story.deps)

    assert submit_request(request("c"), story.deps).is_new


def test_the_limit_of_the_stack_counts_the_jobs_of_all_definitions():
    story = Story(make_definition(), make_definition(name="bert"), limits=StackLimits(max_waiting_jobs=2))
    submit_request(request("a", "bert"), story.deps)
    submit_request(request("a"), story.deps)

    with pytest.raises(WaitingLimitReachedError, match=r"1 of resnet .*, 2 in the stack \(MaxWaitingJobs is 2\)"):
        submit_request(request("b"), story.deps)


def test_jobs_that_wait_for_an_image_count_too():
    story = Story(replace(WAITS_FOR_IMAGE, max_waiting_jobs=1))
    (submission,) = submit_event(push(), story.deps)
    assert submission.job.waiting.reason is WaitReason.IMAGE

    with pytest.raises(WaitingLimitReachedError):
        submit_request(request("a"), story.deps)


def test_a_count_that_cannot_be_read_starts_nothing_and_is_tried_again():
    story = full_story()
    story.deps.definitions.save_definition(make_definition())
    load_open, story.jobs.load_open = story.jobs.load_open, Mock(side_effect=TransientError("throttled"))

    with pytest.raises(TransientError):
        submit_event(push(), story.deps)

    assert story.deps.events.list_events(story.now, 9) == []
    story.jobs.load_open = load_open
    assert submit_event(push(), story.deps)[0].is_new


def test_far_from_the_limits_one_read_is_enough_and_none_is_without_bound():
    story = Story(make_definition())
    story.jobs.load_open = Mock(wraps=story.jobs.load_open)
    story.jobs.load_slot_holders = Mock(wraps=story.jobs.load_slot_holders)

    submit_request(request("a"), story.deps)

    story.jobs.load_open.assert_called_once_with(5020)
    story.jobs.load_slot_holders.assert_not_called()
    assert count_waiting_jobs(make_definition(), story.deps).of_stack == 1
    story.jobs.load_slot_holders.assert_called_once_with(20)


def test_a_flood_of_requests_leaves_half_of_what_may_wait_to_events():
    story = Story(make_definition(max_waiting_jobs=4, triggers=(GithubTrigger("acme/vision", "push"),)))
    flood = [replace(request(key), through_api=True) for key in "abc"]

    assert all(submit_request(each, story.deps).is_new for each in flood[:2])
    with pytest.raises(WaitingLimitReachedError, match="may fill 2 of the first and 2500 of the second limit"):
        submit_request(flood[2], story.deps)

    assert submit_event(push(), story.deps)[0].is_new
    assert submit_request(replace(flood[2], through_api=False), story.deps).is_new
