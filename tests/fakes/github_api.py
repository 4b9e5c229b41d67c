"""GitHub's REST API: webhooks, over simulated ones, and a repository; served on loopback, or called in process.

How it refuses is the table of github_refusals.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from urllib.parse import parse_qs, urlsplit
from urllib.request import Request

from fakes.github_repository import FakeRepository
from fakes.loopback import LoopbackHandler, serve_on_loopback
from relaunch.adapters.github.rest_api import GithubRestApi, RestAnswer
from relaunch.core.triggers.failed_deliveries import DeliveryAttempt
from relaunch.ports import PermanentError
from relaunch_local.simulation.github import GithubWebhooks
from relaunch_local.simulation.notices.github_statuses import FakeStatuses

TOKEN = "github_pat_11ABCDEFG"
_STATUS = {0: "timed out", 202: "OK"}

Answer = tuple[int, Mapping[str, str], str]


@dataclass
class GithubApi:
    """The API over `webhooks`, which deliver to `hook_url`, and over `repository` and `statuses`, if it has them.

    `refuse` gets the method and the path of a request before it takes effect, `lose` after; either may answer instead.
    """

    webhooks: GithubWebhooks
    hook_url: str = "https://hook.example/"
    refuse: Callable[[str, str], Answer | None] = lambda _method, _path: None
    lose: Callable[[str, str], Answer | None] = lambda _method, _path: None
    requests: list[tuple[str, str, Mapping[str, str]]] = field(default_factory=list)
    url: str = ""
    repository: FakeRepository | None = None
    statuses: FakeStatuses | None = None

    def answer(self, method: str, target: str, headers: Mapping[str, str], body: bytes = b"") -> Answer:
        """Answer a request: status, headers and body."""
        self.requests.append((method, target, headers))
        url = urlsplit(target)
        path = url.path.removeprefix("/api/v3").lstrip("/")
        if (refused := self.refuse(method, path)) is not None:
            return refused
        names = {name.lower(): value for name, value in headers.items()}
        if names.get("authorization") != f"Bearer {TOKEN}":
            return 401, {}, json.dumps({"message": "Bad credentials", "status": "401"})
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        answer = self._find(method, path, query, body) or self._take_effect(method, path, query)
        return self.lose(method, path) or answer

    def _find(self, method: str, path: str, query: Mapping[str, str], body: bytes) -> Answer | None:
        content = json.loads(body) if body else None
        found = self.repository.answer(method, path, query, content) if self.repository else None
        return found or (self.statuses.answer(method, path, content) if self.statuses else None)

    def _take_effect(self, method: str, path: str, query: Mapping[str, str]) -> Answer:
        owner, _, rest = path.partition("/hooks")
        if method == "GET" and not rest:
            return 200, {}, json.dumps([self._hook(each) for each in self.webhooks.find_webhooks(owner)])
        if method == "GET" and rest.endswith("/deliveries"):
            page = self.webhooks.list_attempts(path.removesuffix("/deliveries"), query.get("cursor", ""))
            more = f"{self.url}/elsewhere?per_page=100&cursor={page.older}"
            link = {"Link": f'<{self.url}/x?cursor=1>; rel="prev", <{more}>; rel="next"'} if page.older else {}
            return 200, link, json.dumps([_listed(each) for each in page.attempts])
        webhook, _, attempt = path.removesuffix("/attempts").partition("/deliveries/")
        try:
            self.webhooks.redeliver(webhook, int(attempt))
        except PermanentError:
            return 422, {}, json.dumps({"message": "Delivery is too old"})
        return 202, {}, ""

    def _hook(self, webhook: str) -> Mapping[str, object]:
        number = int(webhook.rpartition("/")[2])
        return {
            "type": "Repository",
            "id": number,
            "name": "web",
            "active": True,
            "events": ["push"],
            "config": {"content_type": "json", "insecure_ssl": "0", "url": f"{self.hook_url}acme/vision"},
        }


def _listed(attempt: DeliveryAttempt) -> Mapping[str, object]:
    return {
        "id": attempt.attempt_id,
        "guid": attempt.guid,
        "delivered_at": attempt.delivered_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "redelivery": False,
        "duration": 0.27,
        "status": _STATUS.get(attempt.status_code, f"Invalid HTTP Response: {attempt.status_code}"),
        "status_code": attempt.status_code,
        "event": "push",
        "action": None,
        "installation_id": None,
        "repository_id": 456,
        "throttled_at": None,
    }


class InProcessApi(GithubRestApi):
    """The client of the API, whose requests are answered in process."""

    def __init__(self, github: GithubApi) -> None:
        super().__init__("https://api.github.com", lambda: TOKEN, "GithubStatusTokenSecretArn")
        self._github = github

    def _exchange(self, request: Request) -> RestAnswer:
        headers = dict(request.header_items())
        body = request.data if isinstance(request.data, bytes) else b""
        status, answered, content = self._github.answer(request.get_method(), request.selector, headers, body)
        if status == 0:
            raise TimeoutError("timed out")
        message = Message()
        for name, value in answered.items():
            message[name] = value
        return RestAnswer(status, content.encode(), message)


@contextmanager
def serve_github(api: GithubApi) -> Iterator[GithubApi]:
    """Serve the API under /api/v3, as a GitHub Enterprise Server does; its URL is `api.url`."""

    class Handler(LoopbackHandler):
        def do_GET(self) -> None:  # noqa: N802 - the name that http.server calls
            status, headers, body = api.answer(self.command, self.path, dict(self.headers), self.read_body())
            if status == 0:  # no answer
                self.close_connection = True
                return
            self.respond(status, body.encode(), headers.items())

        do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815

    with serve_on_loopback(Handler) as url:
        api.url = f"{url}/api/v3"
        yield api
