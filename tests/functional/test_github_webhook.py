"""github_webhook from the function URL's event to the message in the queue, over loopback."""

import importlib
import json
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlencode

import pytest

from fakes.aws_endpoint import FakeAwsEndpoint, serve_aws
from fakes.webhook import SECRET, load_event, make_request, sign
from relaunch.adapters.intake import parse_intake_message
from relaunch.core.trigger import GithubEvent

PUSH = json.dumps(load_event("github.push")).encode()
ROOT = Path(__file__).parents[2]


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeAwsEndpoint]:
    with serve_aws() as endpoint:
        endpoint.secrets = {"AWSCURRENT": SECRET}
        environment = {
            "AWS_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_ENDPOINT_URL": endpoint.url,
            "RELAUNCH_INTAKE_QUEUE_URL": f"{endpoint.url}/111122223333/intake",
            "RELAUNCH_WEBHOOK_SECRET_ARN": "arn:aws:secretsmanager:us-east-1:111122223333:secret:hook-AbCdEf",
        }
        for name in ("AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_SECRETS_MANAGER", "AWS_SESSION_TOKEN", "AWS_CA_BUNDLE"):
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield endpoint


@pytest.fixture
def handle(aws: FakeAwsEndpoint) -> Iterator[Callable[[dict[str, Any]], int]]:
    """The handler as a container that has just started has it."""
    handler: ModuleType = importlib.reload(importlib.import_module("github_webhook.handler"))

    def answer(event: dict[str, Any]) -> int:
        response = handler.handle(event, None)
        assert isinstance(json.loads(response["body"]), dict)
        status = response["statusCode"]
        assert isinstance(status, int)
        return status

    yield answer
    handler._aws.close()


Handle = Callable[[dict[str, Any]], int]


def test_a_signed_push_reaches_the_queue_as_an_event_that_can_start_a_job(handle: Handle, aws: FakeAwsEndpoint) -> None:
    assert handle(load_event("function-url.github-push")) == 202

    (message,) = aws.messages
    (event,) = parse_intake_message(message)
    assert isinstance(event, GithubEvent)
    assert (event.event, event.repository, event.ref) == ("push", "acme/vision", "refs/heads/main")
    assert aws.targets() == ["GetSecretValue", "SendMessage"]


@pytest.mark.parametrize(
    ("sample", "event"),
    [
        ("github.push", "push"),
        ("github.workflow_dispatch", "workflow_dispatch"),
        ("github.repository_dispatch", "repository_dispatch"),
        ("github.workflow_run.completed", "workflow_run"),
        ("github.release.published", "release"),
        ("github.package.published", "package"),
    ],
)
def test_every_wanted_event_reaches_the_queue_as_json_and_as_a_form(
    handle: Handle, aws: FakeAwsEndpoint, sample: str, event: str
) -> None:
    body = json.dumps(load_event(sample)).encode()
    form = urlencode({"payload": body.decode()}).encode()
    form_type = {"content-type": "application/x-www-form-urlencoded"}

    assert handle(make_request(body, event=event)) == 202
    assert handle(make_request(form, form_type, event=event, is_base64=True)) == 202

    as_json, as_form = (parse_intake_message(message) for message in aws.messages)
    assert as_json == as_form
    assert isinstance(as_json[0], GithubEvent)


def test_the_secret_is_read_once_per_container(handle: Handle, aws: FakeAwsEndpoint) -> None:
    for _ in range(3):
        assert handle(make_request(PUSH)) == 202

    assert aws.targets() == ["GetSecretValue"] + ["SendMessage"] * 3


def test_what_is_not_signed_costs_no_call(handle: Handle, aws: FakeAwsEndpoint) -> None:
    assert handle(make_request(PUSH, {"x-hub-signature-256": None})) == 401
    assert handle(make_request(PUSH, {"x-hub-signature-256": "sha256=zz"})) == 401
    assert handle({**make_request(PUSH), "body": "x" * 6_500_000}) == 413
    assert aws.requests == []


def test_a_forged_push_is_refused_and_queued_nowhere(handle: Handle, aws: FakeAwsEndpoint) -> None:
    assert handle(make_request(PUSH, secret="guessed")) == 401
    assert aws.messages == []


def test_both_secrets_open_the_door_during_a_rotation(handle: Handle, aws: FakeAwsEndpoint) -> None:
    assert handle(make_request(PUSH)) == 202

    aws.secrets = {"AWSCURRENT": "new", "AWSPREVIOUS": SECRET}

    assert handle(make_request(PUSH, secret="new")) == 202
    assert handle(make_request(PUSH)) == 202
    assert handle(make_request(PUSH, secret="neither")) == 401
    assert len(aws.messages) == 3


def test_a_ping_and_an_unwanted_event_are_answered_without_a_message(handle: Handle, aws: FakeAwsEndpoint) -> None:
    assert handle(make_request(b"{}", event="ping")) == 200
    assert handle(make_request(b"{}", event="star")) == 202
    assert handle(make_request(b"text", {"content-type": "text/plain"})) == 415
    assert aws.messages == []


@pytest.mark.parametrize(
    "failures",
    [
        pytest.param({"SendMessage": [(500, "InternalError")] * 2}, id="queue-fails"),
        pytest.param({"SendMessage": [(400, "QueueDoesNotExist")]}, id="queue-is-gone"),
        pytest.param({"SendMessage": [None, None]}, id="queue-does-not-answer"),
        pytest.param({"GetSecretValue": [(400, "AccessDeniedException")]}, id="secret-is-forbidden"),
        pytest.param({"GetSecretValue": [None]}, id="secrets-do-not-answer"),
    ],
)
def test_a_push_that_cannot_be_verified_or_queued_is_a_failed_delivery_and_its_redelivery_is_taken(
    handle: Handle,
    aws: FakeAwsEndpoint,
    failures: dict[str, list[tuple[int, str] | None]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    aws.failures = failures

    assert handle(make_request(PUSH)) == 503
    line = json.loads(capsys.readouterr().out)
    assert (line["level"], line["status"], line["delivery"]) == ("ERROR", 503, "guid-1")
    assert line["reason"]

    assert handle(make_request(PUSH)) == 202
    assert len(aws.messages) == 1


@pytest.mark.parametrize("secret", [None, "", "\n"])
def test_without_a_secret_everything_is_refused(handle: Handle, aws: FakeAwsEndpoint, secret: str | None) -> None:
    aws.secrets = {} if secret is None else {"AWSCURRENT": secret}

    for forged in ("", "\n", SECRET):
        assert handle(make_request(PUSH, secret=forged)) == 503
    assert handle(make_request(PUSH, {"x-hub-signature-256": None})) == 401
    assert aws.messages == []


@pytest.mark.parametrize("name", ["RELAUNCH_WEBHOOK_SECRET_ARN", "AWS_ACCESS_KEY_ID", "AWS_REGION"])
def test_a_function_that_is_not_set_up_refuses_everything(
    handle: Handle, aws: FakeAwsEndpoint, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.delenv(name)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)

    assert handle(make_request(PUSH)) == 503
    assert aws.messages == []


def test_nothing_secret_is_logged(handle: Handle, aws: FakeAwsEndpoint, capsys: pytest.CaptureFixture[str]) -> None:
    handle(make_request(PUSH))
    handle(make_request(PUSH, secret="guessed"))
    handle(make_request(b"{}", event="evil\n\x1b[31m"))

    accepted, refused, ignored = capsys.readouterr().out.splitlines()
    assert json.loads(accepted)["decision"] == "queued"
    assert json.loads(refused)["status"] == 401
    assert json.loads(ignored)["decision"] == "ignored"
    for line in (accepted, refused):
        assert SECRET not in line
        assert sign(PUSH).removeprefix("sha256=") not in line


def test_the_handler_needs_the_standard_library_alone() -> None:
    code = (
        "import sys, github_webhook.handler; "
        "roots = {name.partition('.')[0] for name in sys.modules}; "
        "foreign = roots - set(sys.stdlib_module_names) - {'github_webhook', 'relaunch'}; "
        "print(sorted(foreign), 'dataclasses' in roots, 'typing' in roots, 'logging' in roots)"
    )
    path = f"{ROOT}/functions:{ROOT}/layers/relaunch"

    output = subprocess.run(
        [sys.executable, "-S", "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True, check=True
    ).stdout

    assert output == "['__main__'] False False False\n"


def test_tls_is_verified_by_default() -> None:
    handler = importlib.import_module("github_webhook.handler")

    assert handler._aws._tls.verify_mode is ssl.CERT_REQUIRED
    assert handler._aws._tls.check_hostname
