from collections.abc import Iterator, Mapping
from datetime import timedelta
from types import SimpleNamespace

import pytest

from fakes.aws import aws_in_process, create_jobs_table, make_client
from fakes.builders import NOW
from relaunch.adapters.aws.dynamodb.commit_statuses import DynamoDbCommitStatuses
from relaunch.adapters.aws.dynamodb.notices import DynamoDbNotices
from relaunch.adapters.aws.dynamodb.table import JobsTable
from relaunch.core.checks import Check, Verdict
from relaunch.core.notices.commit_status import RECEIVER
from relaunch.core.notices.status_report import StatusReport
from relaunch.ports.notices import ReceiverPause
from relaunch_cli.account_readers.calls import AccountCalls
from relaunch_cli.account_readers.commit_statuses import check_commit_statuses

OUTPUTS = {"TableName": "jobs", "GithubStatusTokenSecretArn": "arn:aws:secretsmanager:us-east-1:111122223333:secret:a"}


@pytest.fixture
def calls() -> Iterator[AccountCalls]:
    with aws_in_process():
        create_jobs_table(make_client("dynamodb"), "jobs")
        yield AccountCalls(SimpleNamespace(client=make_client))


def found(calls: AccountCalls, outputs: Mapping[str, str]) -> list[Check]:
    return list(check_commit_statuses(outputs, NOW, calls))


def test_a_stack_without_a_token_is_not_checked(calls: AccountCalls) -> None:
    assert found(calls, {"TableName": "jobs"}) == []


def test_what_became_of_the_last_statuses_is_read(calls: AccountCalls) -> None:
    table = JobsTable(make_client("dynamodb"), "jobs")
    before = found(calls, OUTPUTS)
    DynamoDbCommitStatuses(table).save_report(StatusReport(NOW, "acme/vision"))
    taken = found(calls, OUTPUTS)
    DynamoDbNotices(table).save_pause(RECEIVER, ReceiverPause(NOW, NOW + timedelta(minutes=1), "HTTP 401"), None)
    paused = found(calls, OUTPUTS)

    assert [each[0].verdict for each in (before, taken, paused)] == [Verdict.UNKNOWN, Verdict.OK, Verdict.PROBLEM]
