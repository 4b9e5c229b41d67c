import json
import socket
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from fakes.clock import FakeClock
from fakes.github_api import TOKEN, Answer, GithubApi, serve_github
from relaunch.adapters.github.webhook_api import GithubWebhookApi
from relaunch.core.triggers.failed_deliveries import DeliveryAttempt
from relaunch.ports import NotGrantedError, PermanentError, PortError, TransientError
from relaunch.ports.deliveries import AttemptPage, TokenRefusedError
from relaunch_local.simulation.github import GithubWebhooks
from relaunch_local.simulation.notices.github_refusals import REFUSALS

OURS = "https://abc.lambda-url.us-east-1.on.aws/"
VISION = "repos/acme/vision"
HOOK = f"{VISION}/hooks/42"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def github(clock: FakeClock) -> Iterator[GithubApi]:
    def send(webhook: str, guid: str) -> None:
        webhooks.note_attempt(webhook, guid, 202)

    webhooks = GithubWebhooks(clock.now, send)
    webhooks.add_webhook(VISION, 42)
    with serve_github(GithubApi(webhooks, OURS)) as api:
        yield api


@pytest.fixture
def client(github: GithubApi) -> GithubWebhookApi:
    return GithubWebhookApi(github.url, [OURS, ""], lambda: f"{TOKEN}\n")


def answering(status: int, body: object = "", **headers: str) -> Callable[[str, str], Answer]:
    text = body if isinstance(body, str) else json.dumps(body)
    return lambda _method, _path: (status, {name.replace("_", "-"): value for name, value in headers.items()}, text)


def test_the_webhooks_that_deliver_to_the_stack_are_found(github: GithubApi, client: GithubWebhookApi) -> None:
    assert client.find_webhooks(VISION) == [HOOK]

    ((method, path, headers),) = github.requests
    assert (method, path) == ("GET", "/api/v3/repos/acme/vision/hooks?per_page=100")
    assert headers["Authorization"] == f"Bearer {TOKEN}"
    assert headers["Accept"] == "application/vnd.github+json"
    assert headers["User-Agent"] == "relaunch"


@pytest.mark.parametrize(
    ("hook", "is_ours"),
    [
        ({"config": {"url": OURS}}, True),
        ({"config": {"url": OURS.rstrip("/")}}, True),
        ({"config": {"url": f"{OURS}acme/vision"}, "active": True}, True),
        ({"config": {"url": "https://edge.example/hooks/acme"}}, True),
        ({"config": {"url": OURS}, "active": False}, False),
        ({"config": {"url": "https://edge.example/hooksmith"}}, False),
        ({"config": {"url": "https://abc.lambda-url.us-east-1.on.aws.example/"}}, False),
        ({"config": {}}, False),
        ({}, False),
    ],
)
def test_a_webhook_is_ours_by_its_url(github: GithubApi, hook: dict[str, object], is_ours: bool) -> None:
    github.refuse = answering(200, [{"id": 7, **hook}])
    client = GithubWebhookApi(github.url, [OURS, "https://edge.example/hooks"], lambda: TOKEN)

    assert client.find_webhooks("orgs/acme") == (["orgs/acme/hooks/7"] if is_ours else [])


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refusal_is_an_error_that_says_whether_it_may_pass(
    github: GithubApi, client: GithubWebhookApi, name: str
) -> None:
    github.refuse = lambda _method, _path: REFUSALS[name].answer

    with pytest.raises(PortError, match=f"HTTP {REFUSALS[name].status}") as raised:
        client.find_webhooks(VISION)
    assert isinstance(raised.value, TransientError) == REFUSALS[name].may_pass


def test_without_a_url_of_the_stack_no_webhook_is_ours(github: GithubApi) -> None:
    github.refuse = answering(200, [{"id": 7, "config": {"url": "/x"}}])

    assert GithubWebhookApi(github.url, ["", ""], lambda: TOKEN).find_webhooks(VISION) == []


def test_attempts_are_listed_page_by_page(github: GithubApi, client: GithubWebhookApi, clock: FakeClock) -> None:
    made = []
    for number in range(130):
        made.append(github.webhooks.note_attempt(HOOK, f"guid-{number}", number % 2 * 202))
        clock.advance(timedelta(seconds=1))

    first = client.list_attempts(HOOK, "")
    second = client.list_attempts(HOOK, first.older)

    assert [*first.attempts, *second.attempts] == made[::-1]
    assert (len(first.attempts), second.older) == (100, "")
    assert github.requests[1][1] == f"/api/v3/{HOOK}/deliveries?per_page=100&cursor={first.older}"


@pytest.mark.parametrize("fields", [{}, {"status_code": None}, {"status_code": 0}])
def test_an_attempt_without_an_answer_has_the_status_0(
    github: GithubApi, client: GithubWebhookApi, clock: FakeClock, fields: dict[str, object]
) -> None:
    listed = {"id": 1, "guid": "a", "delivered_at": clock.now().isoformat(), **fields}
    github.refuse = answering(200, [listed])

    assert client.list_attempts(HOOK, "") == AttemptPage([DeliveryAttempt(1, "a", clock.now(), 0)], "")


@pytest.mark.parametrize(
    ("link", "cursor"),
    [
        ('<https://api.github.com/x?cursor=v1_5&per_page=100>; rel="next"', "v1_5"),
        ('<https://api.github.com/x?cursor=a>; rel="prev", <https://api.github.com/x?cursor=b>; rel="next"', "b"),
        ("<https://api.github.com/x?cursor=c>; rel=next", "c"),
        ('<https://api.github.com/x?cursor=a>; rel="prev"', ""),
        ('<https://api.github.com/x?page=2>; rel="next"', ""),
        ("nonsense", ""),
    ],
)
def test_the_cursor_is_in_the_link_to_the_next_page(
    github: GithubApi, client: GithubWebhookApi, link: str, cursor: str
) -> None:
    github.refuse = answering(200, [], Link=link)

    assert client.list_attempts(HOOK, "").older == cursor


def test_a_redelivery_is_another_attempt_of_the_same_guid(github: GithubApi, client: GithubWebhookApi) -> None:
    failed = github.webhooks.note_attempt(HOOK, "a", 503)

    client.redeliver(HOOK, failed.attempt_id)

    assert [(each.guid, each.status_code) for each in github.webhooks.attempts[HOOK]] == [("a", 503), ("a", 202)]
    assert github.requests[0][:2] == ("POST", f"/api/v3/{HOOK}/deliveries/1/attempts")


LIMITED = {"message": "You have exceeded a secondary rate limit. Please wait"}


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (answering(401, {"message": "Bad credentials"}), TokenRefusedError),
        (answering(403, {"message": "Resource not accessible by personal access token"}), NotGrantedError),
        (answering(404, {"message": "Not Found"}), NotGrantedError),
        (answering(301, {"message": "Moved Permanently"}, Location="/api/v3/repositories/1"), NotGrantedError),
        (answering(307, "", Location="https://elsewhere.example/"), NotGrantedError),
        (answering(403, {"message": "no"}, Retry_After="60"), TransientError),
        (answering(403, {"message": "no"}, X_RateLimit_Remaining="0"), TransientError),
        (answering(403, LIMITED), TransientError),
        (answering(403, {"message": "no"}, X_RateLimit_Remaining="1"), NotGrantedError),
        (answering(429, "slower"), TransientError),
        (answering(408), TransientError),
        (answering(500, "<html>"), TransientError),
        (answering(502), TransientError),
        (answering(503, "[1]"), TransientError),
        (answering(0), TransientError),
        (answering(422, {"message": "too old"}), PermanentError),
        (answering(400, {"message": None}), PermanentError),
    ],
)
def test_refusals_are_errors_of_the_port(
    github: GithubApi, client: GithubWebhookApi, answer: Callable[[str, str], Answer], error: type[PortError]
) -> None:
    github.refuse = answer
    calls: tuple[Callable[[], object], ...] = (
        lambda: client.find_webhooks(VISION),
        lambda: client.list_attempts(HOOK, ""),
        lambda: client.redeliver(HOOK, 1),
    )

    for call in calls:
        with pytest.raises(error) as raised:
            call()
        assert type(raised.value) is error
        assert "acme/vision" in str(raised.value)
        assert TOKEN not in str(raised.value)
    assert len(github.requests) == len(calls)


@pytest.mark.parametrize("body", ["", "{}", "[1]", '[{"id": "x"}]', "<html>"])
def test_an_answer_that_is_none_of_github_is_transient(github: GithubApi, client: GithubWebhookApi, body: str) -> None:
    github.refuse = answering(200, body)

    for call in (lambda: client.find_webhooks(VISION), lambda: client.list_attempts(HOOK, "")):
        with pytest.raises(TransientError, match="malformed"):
            call()


def test_no_connection_is_transient() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        client = GithubWebhookApi(f"http://127.0.0.1:{unused.getsockname()[1]}", [OURS], lambda: TOKEN)

        with pytest.raises(TransientError, match="no answer from 127"):
            client.find_webhooks(VISION)


def test_an_answer_that_does_not_come_is_transient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relaunch.adapters.github.rest_api._TIMEOUT_SECONDS", 0.05)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        client = GithubWebhookApi(f"http://127.0.0.1:{silent.getsockname()[1]}", [OURS], lambda: TOKEN)

        with pytest.raises(TransientError, match="no answer from 127"):
            client.redeliver(HOOK, 1)


def test_the_token_is_read_once(github: GithubApi) -> None:
    tokens = iter([TOKEN])
    client = GithubWebhookApi(github.url, [OURS], lambda: next(tokens))

    client.find_webhooks(VISION)

    assert client.list_attempts(HOOK, "") == AttemptPage([], "")


@pytest.mark.parametrize("secret", ["", " \n", "two words", "caf\u00e9", "a\tb", "a\nb"])
def test_what_is_no_token_is_not_sent(github: GithubApi, secret: str) -> None:
    with pytest.raises(TokenRefusedError, match="GithubTokenSecretArn"):
        GithubWebhookApi(github.url, [OURS], lambda: secret).find_webhooks(VISION)

    assert github.requests == []


@pytest.mark.parametrize(
    ("error", "expected"),
    [(NotGrantedError("no such secret"), TokenRefusedError), (TransientError("throttled"), TransientError)],
)
def test_a_token_that_cannot_be_read(github: GithubApi, error: PortError, expected: type[PortError]) -> None:
    def read() -> str:
        raise error

    with pytest.raises(expected, match=str(error)):
        GithubWebhookApi(github.url, [OURS], read).find_webhooks(VISION)
