"""What the GitHub Action calls: GitHub's OIDC provider, STS, its REST API, and the functions by their URLs.

The real functions answer.
"""

import base64
import json
import re
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qs

from fakes.busy_stack import BusyStack
from fakes.github_api import TOKEN as GITHUB_TOKEN
from fakes.github_api import GithubApi
from fakes.github_repository import FakeRepository
from fakes.webhook import load_event
from relaunch_action.http_requests import NoResponseError, Request, Response
from relaunch_action.inputs import VARIABLE
from relaunch_action.retries import Cancellation, Patience
from relaunch_local.simulation.github import GithubWebhooks

JOB_API_URL = "https://bcdefghijklmnopqrstuvwxyz0123456.lambda-url.us-east-1.on.aws/"
PLAN_API_URL = "https://cdefghijklmnopqrstuvwxyz01234567.lambda-url.us-east-1.on.aws/"
GITHUB_API_URL = "https://api.github.com"
TOKEN_URL = "https://token.actions.example/token?api-version=2.0"
ROLE = "arn:aws:iam::111122223333:role/ci-vision"
SUBJECT = "repo:acme@1234/vision@5678:ref:refs/heads/main"
_STS = """<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <AssumeRoleWithWebIdentityResult>
    <SubjectFromWebIdentityToken>{subject}</SubjectFromWebIdentityToken>
    <AssumedRoleUser><Arn>arn:aws:sts::111122223333:assumed-role/ci-vision/{session}</Arn></AssumedRoleUser>
    <Credentials>
      <SessionToken>session-token-{number}</SessionToken>
      <SecretAccessKey>secret-key-{number}</SecretAccessKey>
      <Expiration>2026-11-03T13:45:00Z</Expiration>
      <AccessKeyId>ASIA{number}</AccessKeyId>
    </Credentials>
  </AssumeRoleWithWebIdentityResult>
</AssumeRoleWithWebIdentityResponse>"""


def make_token(subject: str = SUBJECT) -> str:
    """Return a token whose signature nobody here checks."""
    payload = json.dumps({"sub": subject, "aud": "sts.amazonaws.com"}).encode()
    return f"header.{base64.urlsafe_b64encode(payload).decode().rstrip('=')}.signature"


def runner_environment(**changes: str) -> dict[str, str]:
    """Return the variables of a runner whose job may ask for a token."""
    return {
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_REPOSITORY": "acme/vision",
        "GITHUB_RUN_ID": "1658821493",
        "GITHUB_RUN_ATTEMPT": "1",
        "GITHUB_JOB": "train",
        "ACTIONS_ID_TOKEN_REQUEST_URL": TOKEN_URL,
        "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "runner-token",
        **changes,
    }


def action_inputs(**given: Any) -> dict[str, str]:
    """Return the variable as the runner fills it: every input is a text, with action.yml's defaults."""
    defaults = {
        "url": JOB_API_URL,
        "definition": "resnet",
        "inputs": "{}",
        "role-to-assume": "",
        "aws-region": "",
        "idempotency-key": "",
        "wait": "false",
        "wait-timeout-minutes": "330",
        "dry-run": "false",
        "cancel-with-workflow": "false",
        "mode": "submit",
        "definition-file": "relaunch.yaml",
        "comment": "true",
        "github-token": GITHUB_TOKEN,
    }
    return {VARIABLE: json.dumps(defaults | {name.replace("_", "-"): value for name, value in given.items()})}


class FakeServices:
    """Answers the action's requests; `answers` come first, one for each request to a function, then the function's.

    An answer is a Response, or an exception; `late_answers` take the place of the function's, which has done its work.
    """

    def __init__(self, stack: BusyStack | None = None) -> None:
        self.stack = stack or BusyStack()
        self.asked: list[dict[str, Any]] = []
        self.assumed: list[dict[str, str]] = []
        self.answers: list[Response | Exception] = []
        self.late_answers: list[Response | Exception] = []
        self.token_answers: list[Response | Exception] = []
        self.sts_answers: list[Response | Exception] = []
        self.on_ask: Callable[[dict[str, Any]], None] = lambda _: None
        self.repository = FakeRepository()
        self.github = GithubApi(GithubWebhooks(self.stack.functions.deps.clock.now, lambda *_: None))
        self.github.repository = self.repository

    def send(self, request: Request) -> Response:
        """Answer a request."""
        if request.url.startswith(TOKEN_URL):
            assert request.headers["authorization"] == "bearer runner-token"
            assert request.url.endswith("&audience=sts.amazonaws.com")
            return _next(self.token_answers) or Response(200, json.dumps({"value": make_token()}).encode())
        if re.match(r"https://sts\.[a-z0-9-]+\.amazonaws\.com/$", request.url):
            return self._assume(request)
        if request.url.startswith(f"{GITHUB_API_URL}/"):
            return self._call_github(request)
        assert request.url in {JOB_API_URL, PLAN_API_URL}
        return self._call_function("plan_api" if request.url == PLAN_API_URL else "job_api", request)

    def _call_github(self, request: Request) -> Response:
        target = request.url.removeprefix(GITHUB_API_URL)
        status, headers, body = self.github.answer(request.method, target, request.headers, request.body or b"")
        if status == 0:
            raise NoResponseError("timed out")
        return Response(status, body.encode(), {name.lower(): value for name, value in headers.items()})

    def _assume(self, request: Request) -> Response:
        form = {name: values[0] for name, values in parse_qs((request.body or b"").decode()).items()}
        assert "authorization" not in request.headers
        if answer := _next(self.sts_answers):
            return answer
        self.assumed.append(form)
        text = _STS.format(subject=SUBJECT, session=form["RoleSessionName"], number=len(self.assumed))
        return Response(200, text.encode())

    def _call_function(self, name: str, request: Request) -> Response:
        assert request.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=")
        asked = json.loads(request.body or b"")
        self.asked.append(asked)
        self.on_ask(asked)
        if answer := _next(self.answers):
            return answer
        event = load_event("function-url.job-api") | {"body": (request.body or b"").decode()}
        answered = self.stack.functions.invoke(name, event)
        return _next(self.late_answers) or Response(answered["statusCode"], answered["body"].encode())


def _next(answers: list[Response | Exception]) -> Response | None:
    answer = answers.pop(0) if answers else None
    if isinstance(answer, Exception):
        raise answer
    return answer


class FakeTime:
    """A clock that sleeping moves; `then` is called after each sleep with the seconds since the beginning."""

    def __init__(self, then: Callable[[float], None] = lambda _: None) -> None:
        self.seconds = 0.0
        self.then = then

    def clock(self) -> float:
        """Return the time."""
        return self.seconds

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.seconds += seconds
        self.then(self.seconds)

    def patience(self, cancellation: Cancellation | None = None) -> Patience:
        """Return a Patience in this time, without chance."""
        return Patience(cancellation or Cancellation(), self.clock, self.sleep, lambda: 1.0)


def lost(count: int) -> Iterable[NoResponseError]:
    """Return as many responses that never come."""
    return [NoResponseError("timed out") for _ in range(count)]
