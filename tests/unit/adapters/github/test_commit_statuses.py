from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from fakes.commit_changes import SHA, make_change, with_commit
from fakes.github_api import TOKEN, Answer, InProcessApi, serve_github
from fakes.status_world import World
from relaunch.adapters.github.commit_statuses import PARAMETER, GithubCommitStatuses, WithCommitStatuses
from relaunch.adapters.github.rest_api import GithubRestApi
from relaunch.core.jobs.state import JobState
from relaunch.core.lifecycle.change_events import JobStateChange
from relaunch.core.notices.commit_status import UNDER_WAY, CommitStatus
from relaunch.core.notices.notice import Notice
from relaunch.core.notices.status_budget import PER_MINUTE
from relaunch.core.notices.status_report import StatusReport
from relaunch.ports import PortError, StaleWriteError, TransientError
from relaunch.ports.commit_statuses import StoredBudget, StoredShown
from relaunch.ports.deliveries import TokenRefusedError
from relaunch.ports.notices import Delivered, Held, NoticeReceiver, Outcome, Postponed, Refused
from relaunch_local.in_memory.commit_statuses import InMemoryCommitStatuses
from relaunch_local.internet.github_refusals import REFUSALS
from relaunch_local.internet.github_statuses import MOST_STATUSES

CONTEXT = "relaunch/resnet"
MENDABLE = [name for name, each in REFUSALS.items() if each.is_mendable]
PASSING = [name for name, each in REFUSALS.items() if each.may_pass or name == "a-bad-token"]
PAGE = "https://jobs.example.com/{job_id}"


@pytest.fixture
def world() -> World:
    return World()


def test_a_change_of_a_job_is_a_status_of_its_commit(world: World) -> None:
    assert isinstance(world.deliver(), Delivered)

    ((method, path, headers),) = world.api.requests
    assert (method, path) == ("POST", f"/repos/acme/vision/statuses/{SHA}")
    assert headers["Authorization"] == f"Bearer {TOKEN}"
    shown = world.github.latest(SHA, CONTEXT)
    assert shown is not None
    assert (shown.state, shown.description, shown.target_url) == ("pending", "queued · resnet-1f2e3d4c", None)


def test_it_leads_to_the_page_of_the_job_if_there_is_one() -> None:
    world = World(page_url=PAGE)
    world.deliver()

    shown = world.github.latest(SHA, CONTEXT)
    assert shown is not None
    assert shown.target_url == "https://jobs.example.com/resnet-1f2e3d4c"


def test_a_github_enterprise_server_is_asked_over_http() -> None:
    world = World()
    with serve_github(world.api) as api:
        client = GithubRestApi(api.url, lambda: TOKEN, PARAMETER)
        receiver = GithubCommitStatuses(client, world.store, world.clock)

        assert isinstance(world.deliver(receiver, state=JobState.SUCCEEDED), Delivered)

    assert world.api.requests[0][1] == f"/api/v3/repos/acme/vision/statuses/{SHA}"
    shown = world.github.latest(SHA, CONTEXT)
    assert shown is not None
    assert (shown.state, shown.description) == ("success", "succeeded, 0.65 USD · resnet-1f2e3d4c")


def test_without_a_commit_nothing_is_asked_for(world: World) -> None:
    change = with_commit(make_change(), RELAUNCH_IMAGE_REPOSITORY="acme/vision", RELAUNCH_GIT_SHA=SHA)

    assert world.receiver.deliver(Notice(kind=None, event=change), "") == Delivered()
    assert not world.api.requests


def test_it_wants_each_change_of_every_definition(world: World) -> None:
    assert world.receiver.subscription.wants_states
    assert world.receiver.subscription.is_for_all


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_is_postponed_if_it_may_pass_held_if_somebody_can_mend_it_and_given_up_otherwise(
    world: World, name: str
) -> None:
    world.answer(REFUSALS[name].answer)

    outcome = world.deliver()

    assert isinstance(outcome, Postponed | Held | Refused)
    assert isinstance(outcome, Postponed) == (name in PASSING)
    assert isinstance(outcome, Held) == (name in MENDABLE)
    assert outcome.reason.startswith(f"setting the status of a commit of acme/vision: HTTP {REFUSALS[name].status}")
    assert TOKEN not in outcome.reason
    assert not world.github.statuses


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("a-missing-scope", 'give the token "Commit statuses: read and write"'),
        ("private-or-gone", "if there still is one of this name"),
        ("renamed", "name that in the triggers"),
        ("too-many-statuses", "maximum number of statuses.: the commit is gone, or has as many statuses as it may"),
        ("no-such-commit", "No commit found"),
        ("a-bad-token", f"store another one as the secret of {PARAMETER}"),
    ],
)
def test_what_somebody_can_do_is_said(world: World, name: str, remedy: str) -> None:
    world.answer(REFUSALS[name].answer)

    outcome = world.deliver()

    assert isinstance(outcome, Refused | Held | Postponed)
    assert remedy in outcome.reason


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "30"}, 30),
        ({"Retry-After": " 7 "}, 7),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "RESET"}, 600),
        ({"X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "RESET"}, 60),
        ({"Retry-After": "soon"}, 60),
        ({"Retry-After": "99999999999"}, 60),
        ({"X-RateLimit-Remaining": "0"}, 60),
        ({}, 60),
    ],
)
def test_a_limit_is_kept_to_by_every_function_for_as_long_as_github_asks(
    world: World, headers: dict[str, str], seconds: int
) -> None:
    reset = str(int(world.clock.now().timestamp()) + 600)
    until = world.clock.now() + timedelta(seconds=seconds)
    world.answer((429, {name: value.replace("RESET", reset) for name, value in headers.items()}, ""))
    other = GithubCommitStatuses(InProcessApi(world.api), world.store, world.clock)

    outcome = world.deliver()
    held = world.deliver(other, state=JobState.SUCCEEDED)

    assert isinstance(outcome, Postponed)
    assert outcome.retry_at is not None
    assert abs(outcome.retry_at - until) < timedelta(seconds=1)
    assert isinstance(held, Held)
    assert held.until >= outcome.retry_at
    assert len(world.api.requests) == 1


def test_limits_without_a_time_are_waited_for_longer_each_time_until_a_status_is_taken(world: World) -> None:
    pauses = []
    for _ in range(3):
        world.answer(REFUSALS["a-limit-that-says-nothing"].answer)
        outcome = world.deliver()
        assert isinstance(outcome, Postponed)
        assert outcome.retry_at is not None
        pauses.append((outcome.retry_at - world.clock.now()).total_seconds())
        world.clock.set(outcome.retry_at)
    world.github.refuse = lambda: None
    world.deliver()

    assert pauses == [60, 120, 240]
    assert world.store.load_budget().budget.limited == 0


def test_a_status_whose_answer_was_lost_is_set_again_and_counted_twice(world: World) -> None:
    world.github.lose = lambda: (0, {}, "")
    lost = world.deliver()
    world.github.lose = lambda: None
    again = world.deliver()

    assert isinstance(lost, Postponed)
    assert "no answer from api.github.com" in lost.reason
    assert isinstance(again, Delivered)
    assert [each.state for each in world.github.statuses["acme/vision", SHA, CONTEXT]] == ["pending", "pending"]
    assert sum(count for _, count in world.store.load_budget().budget.by_minute) == 2


def test_the_thousandth_status_of_a_commit_is_its_last_one(world: World) -> None:
    shown = world.github.statuses.setdefault(("acme/vision", SHA, CONTEXT), [])
    world.deliver()
    shown.extend(shown * (MOST_STATUSES - 1))

    assert isinstance(world.deliver(state=JobState.SUCCEEDED), Refused)


def test_what_a_token_may_and_until_when_is_reported(world: World) -> None:
    world.deliver()

    report = world.store.load_report()
    assert (report.taken_at, report.taken_by) == (world.clock.now(), "acme/vision")
    assert report.token_expires_at == datetime(2027, 1, 31, 9, 0, tzinfo=UTC)


def test_what_another_function_saved_of_another_repository_stays_in_the_report(world: World) -> None:
    world.deliver()  # the report is known from here on
    other = world.store.load_report().with_problem("acme/speech", "no right", world.clock.now(), is_barred=True)
    world.store.save_report(other)
    world.answer(REFUSALS["a-missing-scope"].answer)

    world.deliver(sequence=2)

    assert world.store.load_report().problems.keys() == {"acme/speech", "acme/vision"}


@pytest.mark.parametrize(("times", "is_kept"), [(1, True), (99, False)])
def test_what_another_function_saves_at_the_same_moment_stays_in_the_report(
    world: World, monkeypatch: pytest.MonkeyPatch, *, times: int, is_kept: bool
) -> None:
    save = world.store.save_report
    others = iter(range(times))

    def save_after_another(report: StatusReport) -> None:
        if (number := next(others, None)) is not None:
            other = world.store.load_report()
            save(other.with_problem(f"acme/speech-{number}", "no right", world.clock.now()))
        save(report)

    monkeypatch.setattr(world.store, "save_report", save_after_another)
    world.answer(REFUSALS["a-missing-scope"].answer)

    assert isinstance(world.deliver(), Held if is_kept else Postponed)
    assert ({"acme/speech-0", "acme/vision"} <= world.store.load_report().problems.keys()) is is_kept


@pytest.mark.parametrize(
    ("header", "expires_at"),
    [
        ("2027-01-31 14:00:00 +0500", datetime(2027, 1, 31, 9, 0, tzinfo=UTC)),
        ("2027-01-31 09:00:00 UTC", datetime(2027, 1, 31, 9, 0, tzinfo=UTC)),
        ("", None),
        ("never", None),
    ],
)
def test_when_a_token_expires_is_read_with_or_without_an_offset(
    world: World, header: str, expires_at: datetime | None
) -> None:
    world.answer((201, {"GitHub-Authentication-Token-Expiration": header}, "{}"))
    world.deliver()

    assert world.store.load_report().token_expires_at == expires_at


def test_without_room_a_state_is_held_and_an_end_as_well_once_that_is_used_too(world: World) -> None:
    outcomes = [world.deliver(sequence=number) for number in range(1, 40)]
    ends = [world.deliver(definition=f"bert-{number}", state=JobState.FAILED) for number in range(40)]

    assert {type(each) for each in outcomes} == {Delivered, Held}
    assert isinstance(ends[0], Delivered)
    assert isinstance(ends[-1], Held)
    assert len(world.api.requests) == PER_MINUTE


def test_the_end_of_a_job_that_was_retried_is_not_shown_after_that_of_its_retry(world: World) -> None:
    failed_at = world.clock.now()
    world.clock.advance(timedelta(hours=1))
    world.deliver(job_id="resnet-retry", state=JobState.SUCCEEDED)
    world.clock.advance(UNDER_WAY)

    late = world.deliver(state=JobState.FAILED, time=failed_at)
    other = world.deliver(state=JobState.FAILED, time=failed_at, definition="bert")

    assert isinstance(late, Delivered)
    assert "shows a later job" in late.answer
    assert isinstance(other, Delivered)
    assert [each.state for each in world.github.statuses["acme/vision", SHA, CONTEXT]] == ["success"]
    assert len(world.api.requests) == 2


@pytest.mark.parametrize(("times", "outcome"), [(3, Delivered), (99, Postponed)])
def test_what_is_shown_is_noted_before_it_is_sent_also_where_others_note_something(
    world: World, times: int, outcome: type[Outcome]
) -> None:
    class Contested(InMemoryCommitStatuses):
        left = times

        def save_shown(self, status: CommitStatus, stored: StoredShown) -> None:
            self.left -= 1
            if self.left >= 0:
                raise StaleWriteError("changed")
            super().save_shown(status, stored)

    receiver = GithubCommitStatuses(InProcessApi(world.api), Contested(), world.clock)

    assert isinstance(world.deliver(receiver), outcome)
    assert len(world.api.requests) == (outcome is Delivered)


def test_only_jobs_with_a_commit_have_the_receiver(world: World) -> None:
    class Others:
        def receivers_for(self, event: JobStateChange) -> list[NoticeReceiver]:
            del event
            return []

    source = WithCommitStatuses(Others(), world.receiver)

    assert source.receivers_for(make_change()) == [world.receiver]
    assert source.receivers_for(with_commit(make_change())) == []


class ContestedStore(InMemoryCommitStatuses):
    """A store of which another function changes the budget so often between load and save."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def save_budget(self, stored: StoredBudget) -> None:
        if self.times:
            self.times -= 1
            raise StaleWriteError("changed")
        super().save_budget(stored)


def test_functions_that_count_at_once_lose_no_request(world: World) -> None:
    store = ContestedStore(3)
    receiver = GithubCommitStatuses(InProcessApi(world.api), store, world.clock)

    assert isinstance(world.deliver(receiver), Delivered)
    assert sum(count for _, count in store.load_budget().budget.by_minute) == 1


def test_where_others_always_come_first_the_status_is_held_and_not_sent(world: World) -> None:
    receiver = GithubCommitStatuses(InProcessApi(world.api), ContestedStore(99), world.clock)

    outcome = world.deliver(receiver)

    assert isinstance(outcome, Held)
    assert not world.api.requests


def test_a_limit_that_others_keep_from_being_noted_is_kept_to_by_the_engine(world: World) -> None:
    store = ContestedStore(0)
    receiver = GithubCommitStatuses(InProcessApi(world.api), store, world.clock)

    def refuse() -> Answer:
        store.times = 99
        return REFUSALS["a-secondary-limit"].answer

    world.github.refuse = refuse
    outcome = world.deliver(receiver)

    assert outcome == Postponed(getattr(outcome, "reason", ""), world.clock.now() + timedelta(seconds=60))


class FailingStore(InMemoryCommitStatuses):
    """A store whose table is not reachable, from the report on or altogether."""

    def __init__(self, *, is_down: bool) -> None:
        super().__init__()
        self._is_down = is_down

    def load_budget(self) -> StoredBudget:
        if self._is_down:
            raise TransientError("DynamoDB does not answer")
        return super().load_budget()

    def load_report(self) -> Any:
        raise TransientError("DynamoDB does not answer")


def test_without_the_budget_nothing_is_sent(world: World) -> None:
    receiver = GithubCommitStatuses(InProcessApi(world.api), FailingStore(is_down=True), world.clock)

    assert world.deliver(receiver) == Postponed("DynamoDB does not answer")
    assert not world.api.requests


def test_a_status_that_was_taken_is_taken_where_that_cannot_be_noted(world: World) -> None:
    receiver = GithubCommitStatuses(InProcessApi(world.api), FailingStore(is_down=False), world.clock)

    assert isinstance(world.deliver(receiver), Delivered)


@pytest.mark.parametrize("error", [TokenRefusedError("no such secret"), TransientError("throttled")])
def test_without_a_token_statuses_wait_for_one(world: World, error: PortError) -> None:
    tokens: list[str | PortError] = [error, TOKEN]

    def read() -> str:
        found = tokens.pop(0)
        if isinstance(found, PortError):
            raise found
        return found

    with serve_github(world.api) as api:
        receiver = GithubCommitStatuses(GithubRestApi(api.url, read, PARAMETER), world.store, world.clock)

        assert world.deliver(receiver) == Postponed(str(error))
        assert isinstance(world.deliver(receiver), Delivered)


def test_a_token_that_was_replaced_is_read_after_the_former_one_was_refused(world: World) -> None:
    tokens = iter(["github_pat_old", TOKEN])
    with serve_github(world.api) as api:
        client = GithubRestApi(api.url, lambda: next(tokens), PARAMETER)
        receiver = GithubCommitStatuses(client, world.store, world.clock)

        assert isinstance(world.deliver(receiver), Postponed)
        assert isinstance(world.deliver(receiver), Delivered)
