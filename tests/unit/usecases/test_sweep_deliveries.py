from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta

import pytest

from fakes.builders import make_definition
from fakes.clock import FakeClock
from fakes.metrics import ListMetrics
from fakes.sources import ListLog
from relaunch.core.definitions.definition import GithubTrigger, S3Trigger
from relaunch.core.lifecycle.metrics import Metric
from relaunch.ports import NotGrantedError, PermanentError, TransientError
from relaunch.ports.deliveries import AttemptPage, DeliveryDependencies, SweepReport, TokenRefusedError
from relaunch.usecases.sweep_deliveries import sweep_deliveries
from relaunch_local.in_memory.definitions import InMemoryDefinitions
from relaunch_local.in_memory.deliveries import InMemoryDeliveries
from relaunch_local.simulation.github import GithubWebhooks

PASS = timedelta(minutes=30)
Fail = Callable[[str, str], None]


class FailingGithub(GithubWebhooks):
    """`fail` is called before each call, with its name and the webhook or owner; `after` once it took effect."""

    def __init__(self, world: "World") -> None:
        super().__init__(world.clock.now, world.redelivered, page=10)
        self.fail: Fail = lambda _call, _of: None
        self.after: Fail = lambda _call, _of: None
        self.listed: list[str] = []

    def find_webhooks(self, owner: str) -> Sequence[str]:
        self.fail("find", owner)
        return super().find_webhooks(owner)

    def list_attempts(self, webhook: str, cursor: str) -> AttemptPage:
        self.fail("list", webhook)
        self.listed.append(webhook)
        return super().list_attempts(webhook, cursor)

    def redeliver(self, webhook: str, attempt_id: int) -> None:
        self.fail("redeliver", webhook)
        super().redeliver(webhook, attempt_id)
        self.after("redeliver", webhook)


class World:
    """A stack whose webhook answers `answer`, GitHub, and the definitions of `repositories`."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.answer = 202
        self.asked: list[tuple[str, str]] = []
        self.github = FailingGithub(self)
        self.deliveries = InMemoryDeliveries()
        self.definitions = InMemoryDefinitions()
        self.log = ListLog()
        self.metrics = ListMetrics()

    def redelivered(self, webhook: str, guid: str) -> None:
        self.asked.append((webhook, guid))
        self.github.note_attempt(webhook, guid, self.answer)

    def watch(self, repository: str) -> None:
        triggers = (GithubTrigger(repository, "push"), S3Trigger("data", "", ""))
        name = repository.replace("/", "-")
        self.definitions.save_definition(make_definition(name=name, triggers=triggers))

    def sweep(self, has_time: Callable[[], bool] = lambda: True) -> SweepReport:
        deps = DeliveryDependencies(
            definitions=self.definitions,
            deliveries=self.deliveries,
            webhooks=self.github,
            clock=self.clock,
            log=self.log,
            metrics=self.metrics,
        )
        return sweep_deliveries(deps, has_time)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def webhook(world: World) -> str:
    """Return the webhook of the one repository that a definition watches."""
    world.watch("acme/vision")
    return world.github.add_webhook("repos/acme/vision", 42)


def raising(error: Exception, call: str, of: str = "") -> Fail:
    def fail(called: str, owner: str) -> None:
        if called == call and of in owner:
            raise error

    return fail


def test_what_the_webhook_could_not_answer_is_asked_for_and_comes_back(world: World, webhook: str) -> None:
    world.github.note_attempt(webhook, "a", 503)
    world.github.note_attempt(webhook, "b", 202)
    world.clock.advance(PASS)

    report = world.sweep()

    assert world.asked == [(webhook, "a")]
    assert report == world.deliveries.report == SweepReport(world.clock.now(), redelivered=1)
    assert world.sweep().redelivered == 0
    assert world.log.lines[0] == ("redelivered", {"webhook": webhook, "delivery": "a", "answered": 503})
    assert world.metrics.recorded == []


def test_only_what_is_newer_than_the_progress_is_listed(world: World, webhook: str) -> None:
    for number in range(35):
        world.github.note_attempt(webhook, f"old-{number}", 202)
    world.sweep()
    world.clock.advance(timedelta(hours=5))
    world.sweep()
    world.github.listed.clear()
    world.github.note_attempt(webhook, "new", 500)

    assert world.sweep().redelivered == 1
    assert world.github.listed == [webhook]


def test_every_page_is_listed_until_the_progress(world: World, webhook: str) -> None:
    guids = [f"guid-{number}" for number in range(35)]
    for guid in guids:
        world.github.note_attempt(webhook, guid, 503)
        world.clock.advance(1)

    world.sweep()

    assert world.asked == [(webhook, guid) for guid in guids]


def test_webhooks_of_an_organization_are_swept_for_repositories_without_one(world: World, webhook: str) -> None:
    world.watch("acme/audio")
    world.watch("other/text")
    world.watch("other/tables")
    of_organization = world.github.add_webhook("orgs/acme", 7)
    for each in (webhook, of_organization):
        world.github.note_attempt(each, f"of {each}", 503)
    world.github.fail = raising(NotGrantedError("no organization"), "find", "orgs/other")

    report = world.sweep()

    assert sorted(world.asked) == sorted((each, f"of {each}") for each in (webhook, of_organization))
    assert report.unswept == ("other/tables", "other/text")
    assert report.problems == ()


def test_a_webhook_of_the_organization_is_swept_although_the_token_does_not_reach_the_repository(
    world: World, webhook: str
) -> None:
    of_organization = world.github.add_webhook("orgs/acme", 7)
    world.github.note_attempt(of_organization, "a", 503)
    world.github.fail = raising(NotGrantedError("HTTP 404 no"), "find", "repos/")

    assert world.sweep() == SweepReport(world.clock.now(), redelivered=1)


@pytest.mark.parametrize("call", ["find", "list", "redeliver"])
def test_a_webhook_that_the_token_does_not_reach_is_told_and_the_others_are_swept(
    world: World, webhook: str, call: str
) -> None:
    world.watch("acme/audio")
    other = world.github.add_webhook("repos/acme/audio", 7)
    for each in (webhook, other):
        world.github.note_attempt(each, "a", 503)
    world.github.fail = raising(NotGrantedError("HTTP 403 no"), call, "vision")

    report = world.sweep()

    assert world.asked == [(other, "a")]
    assert (report.problems, report.interruption) == (("HTTP 403 no",), "")
    assert world.metrics.values(Metric.REFRESHES_FAILED) == [1]


@pytest.mark.parametrize("call", ["find", "list", "redeliver"])
def test_a_refused_token_ends_the_pass_and_is_reported_once(world: World, webhook: str, call: str) -> None:
    world.watch("acme/audio")
    world.github.note_attempt(webhook, "a", 503)
    world.github.fail = raising(TokenRefusedError("HTTP 401 no"), call)

    report = world.sweep()

    assert world.asked == []
    assert report.problems == ("HTTP 401 no",)
    world.github.fail = lambda _call, _of: None
    assert world.sweep().redelivered == 1


@pytest.mark.parametrize("call", ["find", "list", "redeliver"])
def test_when_github_does_not_answer_the_next_pass_goes_on(world: World, webhook: str, call: str) -> None:
    for guid in ("a", "b"):
        world.github.note_attempt(webhook, guid, 503)
    world.github.fail = raising(TransientError("HTTP 429 later"), call)

    report = world.sweep()

    assert (world.asked, report.interruption, report.problems) == ([], "HTTP 429 later", ())
    assert world.metrics.recorded == []
    world.github.fail = lambda _call, _of: None
    world.clock.advance(PASS)
    assert world.sweep() == SweepReport(world.clock.now(), redelivered=2)


def test_an_answer_that_was_lost_leads_to_no_second_request(world: World, webhook: str) -> None:
    for guid in ("a", "b"):
        world.github.note_attempt(webhook, guid, 503)
    world.github.after = raising(TransientError("no answer"), "redeliver")

    assert world.sweep().interruption == "no answer"

    world.github.after = lambda _call, _of: None
    world.clock.advance(PASS)
    assert world.sweep().redelivered == 1
    assert world.asked == [(webhook, "a"), (webhook, "b")]


def test_a_delivery_that_github_refuses_to_make_again_does_not_hold_up_the_others(world: World, webhook: str) -> None:
    for guid in ("a", "b"):
        world.github.note_attempt(webhook, guid, 503)
    refusals = iter([PermanentError("HTTP 422 too old")])

    def fail(call: str, _of: str) -> None:
        if call == "redeliver" and (refusal := next(refusals, None)):
            raise refusal

    world.github.fail = fail

    assert world.sweep().redelivered == 1
    assert world.asked == [(webhook, "b")]
    assert "not-redelivered" in world.log.decisions


def test_what_is_refused_again_and_again_is_told_as_lost_once(world: World, webhook: str) -> None:
    world.answer = 401
    world.github.note_attempt(webhook, "a", 401)

    for _ in range(20):
        world.clock.advance(PASS)
        world.sweep()

    assert len(world.asked) == 3
    assert world.log.decisions.count("delivery-lost") == 1
    assert world.metrics.values(Metric.REFRESHES_FAILED) == [1]


def test_the_cap_of_a_pass_is_told_and_the_rest_comes_with_the_next_one(world: World, webhook: str) -> None:
    for number in range(130):
        world.github.note_attempt(webhook, f"guid-{number}", 503)
        world.clock.advance(1)

    assert [world.sweep().redelivered for _ in range(3)] == [100, 30, 0]
    assert world.log.decisions.count("sweep-limited") == 1


def test_more_attempts_than_one_pass_lists_are_told_and_the_newest_are_looked_at(
    world: World, webhook: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("relaunch.usecases.sweep_deliveries._MAX_PAGES", 2)
    for number in range(25):
        world.github.note_attempt(webhook, f"guid-{number}", 503)
        world.clock.advance(1)

    assert world.sweep().redelivered == 20
    assert world.log.decisions.count("sweep-limited") == 1


def test_organizations_are_left_to_the_next_pass_when_no_time_is_left(world: World) -> None:
    world.watch("acme/vision")
    world.github.note_attempt(world.github.add_webhook("orgs/acme", 7), "a", 503)

    assert world.sweep(counting_down(1)).interruption == "no time was left for acme"
    assert world.sweep().redelivered == 1


def counting_down(number: int) -> Callable[[], bool]:
    left: Iterator[bool] = iter([True] * number)
    return lambda: next(left, False)


@pytest.mark.parametrize("calls", range(12))
def test_a_pass_without_time_left_ends_and_the_next_ones_do_the_rest(world: World, webhook: str, calls: int) -> None:
    for number in range(12):
        world.github.note_attempt(webhook, f"guid-{number}", 503)
        world.clock.advance(1)

    report = world.sweep(counting_down(calls))

    assert len(world.asked) == report.redelivered < 12
    assert "no time was left" in report.interruption
    world.clock.advance(PASS)
    world.sweep()
    assert sorted(guid for _, guid in world.asked) == sorted(f"guid-{number}" for number in range(12))


def test_each_pass_begins_with_another_webhook(world: World) -> None:
    webhooks = []
    for name in ("a", "b", "c"):
        world.watch(f"acme/{name}")
        webhooks.append(world.github.add_webhook(f"repos/acme/{name}", 1))
    first = []
    for _ in range(3):
        world.clock.advance(PASS)
        world.github.listed.clear()
        world.sweep()
        assert sorted(world.github.listed) == webhooks
        first.append(world.github.listed[0])

    assert sorted(first) == webhooks


def test_without_a_definition_that_watches_github_nothing_is_called(world: World) -> None:
    world.definitions.save_definition(make_definition(triggers=(S3Trigger("data", "", ""),)))
    world.github.fail = raising(AssertionError("called"), "find")

    assert world.sweep() == SweepReport(world.clock.now())


@pytest.mark.parametrize("call", ["list_definitions", "load_progress", "save_progress"])
def test_a_permission_that_is_missing_is_reported_and_fails_no_call(
    world: World, webhook: str, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    world.github.note_attempt(webhook, "a", 503)
    store = world.definitions if call == "list_definitions" else world.deliveries
    with monkeypatch.context() as seam:
        seam.setattr(store, call, lambda *_: (_ for _ in ()).throw(NotGrantedError("AccessDenied")))
        assert world.sweep().problems == ("AccessDenied",)

    assert world.sweep().redelivered == 1


@pytest.mark.parametrize("call", ["list_definitions", "load_progress", "save_progress"])
def test_a_table_that_does_not_answer_is_left_to_the_next_pass(
    world: World, webhook: str, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    world.github.note_attempt(webhook, "a", 503)
    store = world.definitions if call == "list_definitions" else world.deliveries
    with monkeypatch.context() as seam:
        seam.setattr(store, call, lambda *_: (_ for _ in ()).throw(TransientError("throttled")))
        assert world.sweep().interruption == "throttled"

    assert world.sweep().redelivered == 1


@pytest.mark.parametrize("error", [TransientError("throttled"), NotGrantedError("AccessDenied")])
def test_a_report_that_cannot_be_saved_fails_nothing(
    world: World, webhook: str, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    world.github.note_attempt(webhook, "a", 503)
    monkeypatch.setattr(world.deliveries, "save_report", lambda _: (_ for _ in ()).throw(error))

    assert world.sweep().redelivered == 1
    assert world.log.decisions[-1] == "postponed"
