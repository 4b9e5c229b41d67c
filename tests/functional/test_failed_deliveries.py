"""A push that github_webhook could not queue, by GitHub's record of it and the sweep to a message in the queue."""

import importlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import ModuleType

import boto3
import pytest

from fakes.aws import REGION, aws_in_process, create_jobs_table
from fakes.aws_endpoint import FakeAwsEndpoint, serve_aws
from fakes.builders import make_definition
from fakes.clock import FakeClock
from fakes.functions import FakeContext
from fakes.github_api import TOKEN, GithubApi, serve_github
from fakes.webhook import SECRET, load_event, make_request
from relaunch import delivery_bootstrap
from relaunch.adapters.aws.dynamodb.deliveries import DynamoDbDeliveries
from relaunch.adapters.aws.dynamodb.stores import DynamoDbStores
from relaunch.adapters.messages.intake import parse_intake_message
from relaunch.core.definitions.definition import GithubTrigger
from relaunch.entrypoints.refresh import SWEEP
from relaunch_local.simulation.github import GithubWebhooks

PUSH = json.dumps(load_event("github.push")).encode()
OURS = "https://abc.lambda-url.us-east-1.on.aws/"
OUTAGE = ((500, "InternalError"), (500, "InternalError"))  # the client calls twice


class Stack:
    """github_webhook and refresh_offerings as they are deployed, the table, the token's secret, and GitHub."""

    def __init__(self, aws: FakeAwsEndpoint, environment: pytest.MonkeyPatch) -> None:
        self.aws = aws
        self.clock = FakeClock()
        self._environment = environment
        with self._webhook_environment():
            self.webhook: ModuleType = importlib.reload(importlib.import_module("github_webhook.handler"))
        self.github = GithubApi(GithubWebhooks(self.clock.now, self.deliver), OURS)
        self.hook = self.github.webhooks.add_webhook("repos/acme/vision", 42)
        dynamodb = boto3.client("dynamodb", region_name=REGION)
        create_jobs_table(dynamodb, "jobs")
        definition = make_definition(triggers=(GithubTrigger("acme/vision", "push"),))
        DynamoDbStores(dynamodb, "jobs").definitions.save_definition(definition)
        self.deliveries = DynamoDbDeliveries(dynamodb, "jobs")
        self.secrets = boto3.client("secretsmanager", region_name=REGION)
        self.secret = self.secrets.create_secret(Name="github", SecretString=f"{TOKEN}\n")["ARN"]

    @contextmanager
    def _webhook_environment(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("AWS_REGION", REGION)
            environment.setenv("AWS_ENDPOINT_URL", self.aws.url)
            environment.setenv("RELAUNCH_INTAKE_QUEUE_URL", f"{self.aws.url}/111122223333/intake")
            environment.setenv("RELAUNCH_WEBHOOK_SECRET_ARN", "arn:aws:secretsmanager:us-east-1:1:secret:hook-AbCdEf")
            yield

    def deliver(self, webhook: str, guid: str) -> None:
        """Deliver a push as GitHub does, and note the answer."""
        with self._webhook_environment():
            answer = self.webhook.handle(make_request(PUSH, {"x-github-delivery": guid}), None)
        self.github.webhooks.note_attempt(webhook, guid, answer["statusCode"])

    def sweep(self, after: timedelta = timedelta(minutes=30)) -> dict[str, object]:
        """Let the schedule invoke refresh_offerings."""
        self.clock.advance(after)
        for name, value in {
            "RELAUNCH_TABLE": "jobs",
            "RELAUNCH_GITHUB_TOKEN_SECRET_ARN": self.secret,
            "RELAUNCH_GITHUB_API_URL": self.github.url,
            "RELAUNCH_WEBHOOK_URL": OURS,
            "RELAUNCH_GITHUB_WEBHOOK_URL": "",
        }.items():
            self._environment.setenv(name, value)
        handler = importlib.import_module("refresh_offerings.handler")
        answer: dict[str, object] = json.loads(json.dumps(handler.handle(SWEEP, FakeContext(milliseconds=300_000))))
        return answer

    @property
    def answers(self) -> list[int]:
        """Return how the webhook answered each attempt."""
        return [each.status_code for each in self.github.webhooks.attempts[self.hook]]


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    for name in ("AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_SECRETS_MANAGER", "AWS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    with serve_aws() as aws, aws_in_process():
        aws.secrets = {"AWSCURRENT": SECRET}
        made = Stack(aws, monkeypatch)
        monkeypatch.setattr(delivery_bootstrap, "SystemClock", lambda: made.clock)
        with serve_github(made.github):
            yield made
        made.webhook._aws.close()


def test_a_push_during_an_outage_of_sqs_reaches_the_queue_once_by_the_sweep(stack: Stack) -> None:
    stack.deliver(stack.hook, "guid-1")
    stack.aws.failures = {"SendMessage": [*OUTAGE, *OUTAGE]}
    stack.deliver(stack.hook, "guid-2")

    reports = [stack.sweep() for _ in range(4)]

    assert stack.answers == [202, 503, 503, 202]
    assert [each["redelivered"] for each in reports] == [1, 1, 0, 0]
    events = [event for message in stack.aws.messages for event in parse_intake_message(message)]
    # Both deliveries are of one push, which is one event.
    assert len(events) == 2
    assert len({event.identity for event in events}) == 1
    saved = stack.deliveries.load_report()
    assert saved is not None
    assert (saved.problems, saved.unswept, saved.interruption) == ((), (), "")


def test_a_token_that_github_refuses_fails_no_call_and_a_new_one_is_used_at_once(stack: Stack) -> None:
    stack.aws.failures = {"SendMessage": [*OUTAGE]}
    stack.deliver(stack.hook, "guid-1")
    stack.secrets.put_secret_value(SecretId=stack.secret, SecretString="github_pat_expired")

    refused = stack.sweep()

    assert refused["redelivered"] == 0
    assert "GitHub does not accept the token" in str(refused["problems"])
    stack.secrets.put_secret_value(SecretId=stack.secret, SecretString=TOKEN)
    assert stack.sweep()["redelivered"] == 1
    assert stack.answers == [503, 202]


def test_a_secret_that_is_gone_fails_no_call(stack: Stack) -> None:
    stack.secrets.delete_secret(SecretId=stack.secret, ForceDeleteWithoutRecovery=True)

    assert "reading the secret" in str(stack.sweep()["problems"])


def test_an_answer_of_github_that_is_lost_leads_to_no_second_message(stack: Stack) -> None:
    stack.aws.failures = {"SendMessage": [*OUTAGE]}
    stack.deliver(stack.hook, "guid-1")
    stack.github.lose = lambda method, _path: (502, {}, "") if method == "POST" else None

    interrupted = stack.sweep()

    assert "HTTP 502" in str(interrupted["interruption"])
    stack.github.lose = lambda _method, _path: None
    assert stack.sweep()["redelivered"] == 0
    assert len(stack.aws.messages) == 1


def test_while_github_limits_the_rate_nothing_is_lost(stack: Stack) -> None:
    stack.aws.failures = {"SendMessage": [*OUTAGE]}
    stack.deliver(stack.hook, "guid-1")
    stack.github.refuse = lambda _method, _path: (403, {"Retry-After": "60"}, "")

    assert "HTTP 403" in str(stack.sweep()["interruption"])

    stack.github.refuse = lambda _method, _path: None
    assert stack.sweep()["redelivered"] == 1
