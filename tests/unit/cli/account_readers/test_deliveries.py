from collections.abc import Iterator, Mapping
from types import SimpleNamespace

import pytest

from fakes.aws import aws_in_process, create_jobs_table, make_client
from fakes.builders import NOW, make_definition
from relaunch.adapters.aws.dynamodb.deliveries import DynamoDbDeliveries
from relaunch.core.checks import Check, Verdict
from relaunch.core.definitions.definition import GithubTrigger, S3Trigger, Trigger
from relaunch.ports.deliveries import SweepReport
from relaunch_cli.account_readers.calls import AccountCalls
from relaunch_cli.account_readers.deliveries import check_failed_deliveries

PUSH = GithubTrigger("acme/vision", "push")
WITHOUT_TOKEN = {"TableName": "jobs", "WebhookUrl": "https://hook"}
WITH_TOKEN = {**WITHOUT_TOKEN, "GithubTokenSecretArn": "arn:aws:secretsmanager:us-east-1:111122223333:secret:github-a"}


@pytest.fixture
def calls() -> Iterator[AccountCalls]:
    with aws_in_process():
        create_jobs_table(make_client("dynamodb"), "jobs")
        yield AccountCalls(SimpleNamespace(client=make_client))


def found(calls: AccountCalls, outputs: Mapping[str, str], trigger: Trigger = PUSH) -> list[Check]:
    return list(check_failed_deliveries([make_definition(triggers=(trigger,))], outputs, NOW, calls))


@pytest.mark.parametrize(
    ("outputs", "trigger"), [({**WITH_TOKEN, "WebhookUrl": ""}, PUSH), (WITH_TOKEN, S3Trigger("data", "", ""))]
)
def test_what_never_comes_from_github_is_not_checked(
    calls: AccountCalls, outputs: Mapping[str, str], trigger: Trigger
) -> None:
    assert found(calls, outputs, trigger) == []


def test_a_stack_without_a_token_has_no_problem(calls: AccountCalls) -> None:
    (check,) = found(calls, WITHOUT_TOKEN)

    assert check.verdict is Verdict.OK
    assert "no token is stored" in check.text


def test_the_report_of_the_last_pass_is_read(calls: AccountCalls) -> None:
    (before,) = found(calls, WITH_TOKEN)
    DynamoDbDeliveries(make_client("dynamodb"), "jobs").save_report(SweepReport(NOW, 0, ("HTTP 401 Bad credentials",)))

    (after,) = found(calls, WITH_TOKEN)

    assert (before.verdict, after.verdict) == (Verdict.UNKNOWN, Verdict.PROBLEM)
    assert after.text == "HTTP 401 Bad credentials"
