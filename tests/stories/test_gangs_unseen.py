"""Ranks of which ECS does not tell how they ended, beside others of which it does."""

from datetime import timedelta

import pytest

from fakes.story import MINUTE
from relaunch.core.jobs.attempt import StopKind
from relaunch.core.jobs.state import JobState
from relaunch.core.launches.launch import HostObservation
from stories.test_gangs import GangStory


@pytest.mark.parametrize("is_told", [True, False])
def test_the_rank_that_failed_decides_though_another_one_is_not_described_any_more(is_told):
    story = GangStory()
    job_id = story.train_all()
    first, second, third = story.ranks(job_id)
    story.end_rank(third, 7)
    assert story.job(job_id).state is JobState.STOPPING
    del story.tasks.tasks[first]
    ended = story.tasks.end(second, 1, stopped_at=story.now, execution_stopped_at=story.now)
    began = story.now
    while story.attempt(job_id).stop is None:
        if is_told:
            story.tell(ended)
        story.reconcile(after=MINUTE)
        assert story.now < began + timedelta(minutes=20)

    stop = story.attempt(job_id).stop
    assert stop is not None
    assert (stop.kind, stop.exit_code) == (StopKind.USER_ERROR, 7)
    assert story.job(job_id).totals.failures == 1


@pytest.mark.parametrize("has_event", [True, False])
def test_a_machine_that_was_lost_is_no_failure_of_its_peers_with_an_event_and_without(has_event):
    story = GangStory()
    job_id = story.train_all()
    first, second, third = story.ranks(job_id)
    lost = story.machines(job_id)[1].instance_id or ""
    story.end_rank(first, 1)
    story.clock.advance(MINUTE)
    if has_event:
        story.change_host(lost, "shutting-down")
    else:
        story.hosts.seen[lost] = HostObservation(has_ended=True, ended_at=story.now)
    story.end_rank(third, 1)
    stopped = {"stop_code": "UserInitiated", "stopped_reason": "Relaunch: rank 0 ended"}
    story.end_rank(second, None, execution_stopped_at=None, **stopped)
    began = story.now
    while story.attempt(job_id).stop is None:
        story.reconcile(after=MINUTE)
        assert story.now < began + timedelta(minutes=20)

    stop = story.attempt(job_id).stop
    assert stop is not None
    assert (stop.kind, story.job(job_id).totals.failures) == (StopKind.HOST_LOST, 0)
