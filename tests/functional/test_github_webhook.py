"""github_webhook from the function URL's event to the message in the queue, over loopback."""

import base64
import hmac
import importlib
import json
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fakes.aws_endpoint import FakeAwsEndpoint, serve_aws
from fakes.json_values import JSON, TEXT, mutated
from fakes.repository import REPOSITORY
from fakes.webhook import SECRET, load_event, make_request, sign
from relaunch.adapters.messages.intake import parse_intake_message
from relaunch.core.triggers.events import GithubEvent

PUSH = json.dumps(load_event("github.push")).encode()
# The handler of one container answers all examples, as it would.
in_one_container = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


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
def handle(aws: FakeAwsEndpoint) -> Iterator[Callable[[Any], int]]:
    """The handler as a container that has just started has it."""
    handler: ModuleType = importlib.reload(importlib.import_module("github_webhook.handler"))

    def answer(event: Any) -> int:
        response = handler.handle(event, None)
        assert isinstance(json.loads(response["body"]), dict)
        status = response["statusCode"]
        assert isinstance(status, int)
        return status

    yield answer
    handler._aws.close()


Handle = Callable[[Any], int]


def test_a_signed_push_reaches_the_queue_as_an_event_that_can_start_a_job(handle: Handle, aws: FakeAwsEndpoint) -> None:
    assert handle(load_event("function-url.github-push")) == 202

    (message,) = aws.messages
    (event,) = parse_intake_message(message)
    assert isinstance(event, GithubEvent)
    assert (event.name, event.repository, event.ref) == ("push", "acme/vision", "refs/heads/main")
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


def test_behind_a_distribution_a_request_without_its_header_is_refused_before_all_else(
    aws: FakeAwsEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RELAUNCH_ORIGIN_SECRETS", f"{'n' * 32},{'o' * 32}")
    handler = importlib.reload(importlib.import_module("github_webhook.handler"))

    for headers in ({}, {"x-relaunch-origin": ""}, {"x-relaunch-origin": "n" * 31}):
        assert handler.handle(make_request(PUSH, headers), None)["statusCode"] == 403
    assert aws.requests == []
    for secret in ("n" * 32, "o" * 32):
        assert handler.handle(make_request(PUSH, {"X-Relaunch-Origin": secret}), None)["statusCode"] == 202
    assert handler.handle(make_request(PUSH, {"x-relaunch-origin": "n" * 32}, secret="no"), None)["statusCode"] == 401
    handler._aws.close()


def test_what_is_not_signed_costs_no_call(handle: Handle, aws: FakeAwsEndpoint) -> None:
    assert handle(make_request(PUSH, {"x-hub-signature-256": None})) == 401
    assert handle(make_request(PUSH, {"x-hub-signature-256": "sha256=zz"})) == 401
    assert handle({**make_request(PUSH), "body": "x" * 6_500_000}) == 413
    assert aws.requests == []


def test_a_forged_push_is_refused_and_queued_nowhere(handle: Handle, aws: FakeAwsEndpoint) -> None:
    assert handle(make_request(PUSH, secret="guessed")) == 401
    assert aws.messages == []


FORGERIES: dict[str, Callable[[bytes, bytes], str]] = {
    "of other bytes": lambda body, other: sign(body + other),
    "of the body and a newline": lambda body, _: sign(body + b"\n"),
    "of the body in base64": lambda body, _: sign(base64.b64encode(body)),
    "with another secret": lambda body, _: sign(body, SECRET + "s"),
    "with the secret's beginning": lambda body, _: sign(body, SECRET[:-1]),
    "with no secret": lambda body, _: sign(body, ""),
    "truncated": lambda body, _: sign(body)[:-1],
    "truncated to half": lambda body, _: sign(body)[:39],
    "lengthened": lambda body, _: sign(body) + "0",
    "in upper case": lambda body, _: "sha256=" + sign(body)[7:].upper(),
    "with its prefix in upper case": lambda body, _: "SHA256=" + sign(body)[7:],
    "without its prefix": lambda body, _: sign(body)[7:],
    "under another algorithm's name": lambda body, _: "sha1=" + sign(body)[7:],
    "after a space": lambda body, _: " " + sign(body),
    "before a space": lambda body, _: sign(body) + " ",
    "twice": lambda body, _: f"{sign(body)},{sign(body)}",
    "backwards": lambda body, _: "sha256=" + sign(body)[:6:-1],
    "of zeros": lambda _, __: "sha256=" + "0" * 64,
    "of the digest": lambda body, _: sign(sign(body)[7:].encode()),
}


@in_one_container
@given(
    st.sampled_from(sorted(FORGERIES)),
    st.binary(min_size=1, max_size=60) | st.just(PUSH),
    st.binary(min_size=1, max_size=9),
    st.booleans(),
)
def test_no_forgery_is_accepted_however_near(
    handle: Handle, aws: FakeAwsEndpoint, kind: str, body: bytes, other: bytes, has_valid_sha1: bool
) -> None:
    sha1 = f"sha1={hmac.digest(SECRET.encode(), body, 'sha1').hex()}" if has_valid_sha1 else None
    forged = {"x-hub-signature-256": FORGERIES[kind](body, other), "x-hub-signature": sha1}

    assert handle(make_request(body, forged, is_base64=True)) == 401
    assert aws.messages == []


@in_one_container
@given(st.binary(min_size=1, max_size=60), st.data())
def test_a_signature_that_was_overheard_opens_nothing_but_its_own_body(
    handle: Handle, aws: FakeAwsEndpoint, changed: bytes, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(PUSH)))
    body = PUSH[:at] + changed + PUSH[at + data.draw(st.sampled_from([0, len(changed)])) :]
    replayed = {"x-hub-signature-256": sign(PUSH)}

    assert handle(make_request(body, replayed, is_base64=True)) == (202 if body == PUSH else 401)
    assert all(message["payload"] == json.loads(PUSH) for message in aws.messages)


def is_signed(event: Any) -> bool:
    """Tell whether a header has the signature of the body as it is or as base64, checked as plainly as can be."""
    if not isinstance(event, dict) or not isinstance(event.get("headers"), dict):
        return False
    body = event.get("body")
    raw = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else b""
    try:
        decoded = base64.b64decode(raw, validate=True)
    except ValueError:
        decoded = raw
    return bool({sign(raw), sign(decoded)} & {str(value) for value in event["headers"].values()})


@in_one_container
@given(
    mutated([load_event("function-url.github-push"), make_request(PUSH, is_base64=True)])
    | st.builds(
        lambda headers, body, is_base64: {"headers": headers, "body": body, "isBase64Encoded": is_base64},
        st.dictionaries(st.sampled_from(["x-hub-signature-256", "X-GitHub-Event", "content-type"]) | TEXT, JSON | TEXT),
        JSON | TEXT,
        JSON,
    )
    | JSON
)
def test_any_event_is_answered_and_only_what_is_signed_is_queued(
    handle: Handle, aws: FakeAwsEndpoint, event: Any
) -> None:
    aws.messages.clear()

    status = handle(event)

    assert status in {200, 202, 401, 404, 413, 415}
    if not is_signed(event):
        assert (status in {401, 404, 413}, aws.messages) == (True, [])


@pytest.mark.parametrize("depth", [100, *range(960, 1000), 1_495, 1_496, 1_497, 9_996, 9_997, 9_998, 100_000])
def test_nesting_of_any_depth_is_queued_or_refused(handle: Handle, aws: FakeAwsEndpoint, depth: int) -> None:
    """json reads one level more than it writes, and how deep that is depends on the interpreter."""
    body = b'{"a":' + b"[" * depth + b"]" * depth + b"}"

    assert (handle(make_request(body)), len(aws.messages)) in {(202, 1), (415, 0)}


def test_both_secrets_open_the_door_during_a_rotation(handle: Handle, aws: FakeAwsEndpoint) -> None:
    assert handle(make_request(PUSH)) == 202

    aws.secrets = {"AWSCURRENT": "new", "AWSPREVIOUS": SECRET}
    aws.stored_at = importlib.import_module("github_webhook.handler")._secrets._now()

    assert handle(make_request(PUSH, secret="new")) == 202
    assert handle(make_request(PUSH)) == 202
    assert handle(make_request(PUSH, secret="neither")) == 401
    assert len(aws.messages) == 3


@pytest.mark.parametrize(("hours", "status"), [(None, 401), ("13", 202), ("0", 401)])
def test_the_previous_secret_ends_after_the_hours_of_the_stack(
    aws: FakeAwsEndpoint, monkeypatch: pytest.MonkeyPatch, hours: str | None, status: int
) -> None:
    if hours is not None:
        monkeypatch.setenv("RELAUNCH_WEBHOOK_PREVIOUS_SECRET_HOURS", hours)
    aws.secrets = {"AWSCURRENT": "new", "AWSPREVIOUS": SECRET}
    handler = importlib.reload(importlib.import_module("github_webhook.handler"))
    monkeypatch.setattr(handler._secrets, "_now", lambda: 12.5 * 3600)

    assert handler.handle(make_request(PUSH), None)["statusCode"] == status
    handler._aws.close()


def test_the_secret_of_a_repository_is_read_from_the_same_document(handle: Handle, aws: FakeAwsEndpoint) -> None:
    aws.secrets = {"AWSCURRENT": json.dumps({"scopes": {"/": {"secret": SECRET}, "acme/vision": {"secret": "own"}}})}

    assert handle({**make_request(PUSH, secret="own"), "rawPath": "/acme/vision"}) == 202
    assert handle(make_request(PUSH)) == 403
    assert aws.targets() == ["GetSecretValue", "SendMessage"]


def test_a_malformed_secret_is_an_error_in_the_log_without_the_secret(
    handle: Handle, aws: FakeAwsEndpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    aws.secrets = {"AWSCURRENT": json.dumps({"scopes": {"acme/vision": {"secret": SECRET, "previous": SECRET}}})}

    assert handle({**make_request(PUSH), "rawPath": "/acme/vision"}) == 503
    output = capsys.readouterr().out
    line = json.loads(output)
    assert (line["level"], line["scope"]) == ("ERROR", "acme/vision")
    assert line["reason"].startswith("scope acme/vision of the webhook's secrets must be an object with `secret`")
    assert SECRET not in output


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
    path = f"{REPOSITORY}/functions:{REPOSITORY}/layers/relaunch"

    output = subprocess.run(
        [sys.executable, "-S", "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True, check=True
    ).stdout

    assert output == "['__main__'] False False False\n"


def test_tls_is_verified_by_default() -> None:
    handler = importlib.import_module("github_webhook.handler")

    assert handler._aws._tls.verify_mode is ssl.CERT_REQUIRED
    assert handler._aws._tls.check_hostname
