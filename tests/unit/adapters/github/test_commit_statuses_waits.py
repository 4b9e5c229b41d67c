"""What GitHub refuses until somebody sets it right, and what waits for others, before it is set."""

from datetime import timedelta

import pytest

from fakes.commit_changes import SHA, make_change, with_commit
from fakes.github_api import InProcessApi
from fakes.status_world import World
from relaunch.adapters.github.commit_statuses import GithubCommitStatuses
from relaunch.core.jobs.state import JobState
from relaunch.core.notices.commit_status import UNDER_WAY
from relaunch.core.notices.notice import Notice
from relaunch.core.notices.status_budget import PER_HOUR, StatusBudget
from relaunch.ports.commit_statuses import StoredBudget
from relaunch.ports.notices import Delivered, Held, Refused
from relaunch_local.internet.github_refusals import REFUSALS

CONTEXT = "relaunch/resnet"


@pytest.fixture
def world() -> World:
    return World()


@pytest.mark.parametrize("name", ["a-missing-scope", "private-or-gone"])
def test_a_repository_that_the_token_does_not_reach_is_said_once_a_day_and_no_other_one_is_held_up(
    world: World, name: str
) -> None:
    world.answer(REFUSALS[name].answer)
    refused = [world.deliver(sequence=number) for number in (1, 2)]
    other = GithubCommitStatuses(InProcessApi(world.api), world.store, world.clock)
    refused.append(world.deliver(other, sequence=3))
    asked = len(world.api.requests)
    world.clock.advance(timedelta(hours=25))
    refused.append(world.deliver(sequence=4))

    assert [each.is_alert for each in refused if isinstance(each, Held)] == [True, False, False, True]
    assert (asked, len(world.api.requests)) == (1, 2)
    assert set(world.store.load_report().problems) == {"acme/vision"}
    world.github.refuse = lambda: None
    world.github.names |= {"acme/speech"}
    commit = {"RELAUNCH_GIT_REPOSITORY": "acme/speech", "RELAUNCH_GIT_SHA": SHA}
    elsewhere = with_commit(make_change(time=world.clock.now()), **commit)
    assert isinstance(world.receiver.deliver(Notice(kind=None, event=elsewhere), ""), Delivered)


def test_what_was_refused_for_a_missing_right_is_set_once_the_right_is_granted(world: World) -> None:
    world.answer(REFUSALS["a-missing-scope"].answer)
    ended_at = world.clock.now()
    refused = world.deliver(state=JobState.SUCCEEDED, time=ended_at)
    world.github.refuse = lambda: None
    assert isinstance(refused, Held)
    early = world.deliver(state=JobState.SUCCEEDED, time=ended_at)
    world.clock.advance(refused.until - world.clock.now())

    assert isinstance(early, Held)
    assert isinstance(world.deliver(state=JobState.SUCCEEDED, time=ended_at), Delivered)
    assert [each.state for each in world.github.statuses["acme/vision", SHA, CONTEXT]] == ["success"]
    assert not world.store.load_report().problems


def test_what_is_refused_for_a_day_is_given_up(world: World) -> None:
    world.answer(REFUSALS["a-missing-scope"].answer)
    ended_at = world.clock.now()
    world.deliver(state=JobState.FAILED, time=ended_at)
    world.clock.advance(timedelta(hours=23))

    given_up = world.deliver(state=JobState.FAILED, time=ended_at)

    assert isinstance(given_up, Refused)
    assert not given_up.is_known


def test_nothing_is_sent_while_a_request_of_another_job_may_be_on_its_way(world: World) -> None:
    world.deliver(job_id="resnet-first", state=JobState.RUNNING)
    own = world.deliver(job_id="resnet-first", state=JobState.FAILED)
    later = world.deliver(job_id="resnet-retry", state=JobState.WAITING)

    assert isinstance(own, Delivered)
    assert later == Held(world.clock.now() + UNDER_WAY)
    world.clock.advance(UNDER_WAY)
    assert isinstance(world.deliver(job_id="resnet-retry", state=JobState.WAITING), Delivered)


def test_ends_that_come_more_than_an_hour_late_are_said_once_a_day(world: World) -> None:
    ended_at = world.clock.now()
    world.clock.advance(timedelta(hours=2))
    budget = StatusBudget(((int(world.clock.now().timestamp()) // 60, PER_HOUR),))
    world.store.save_budget(StoredBudget(budget))

    held = [world.deliver(state=JobState.FAILED, time=ended_at) for _ in range(2)]
    held.append(world.deliver(state=JobState.FAILED))

    assert [isinstance(each, Held) and each.is_alert for each in held] == [True, False, False]
