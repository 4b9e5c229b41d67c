"""Reads what became of the statuses of commits."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from relaunch.adapters.aws.dynamodb.commit_statuses import DynamoDbCommitStatuses
from relaunch.adapters.aws.dynamodb.notices import DynamoDbNotices
from relaunch.adapters.aws.dynamodb.table import JobsTable
from relaunch.core.checks import Check
from relaunch.core.notices.commit_status import RECEIVER
from relaunch_cli.account_checks.commit_statuses import check_statuses
from relaunch_cli.account_readers.calls import AccountCalls


def check_commit_statuses(outputs: Mapping[str, str], now: datetime, calls: AccountCalls) -> Iterator[Check]:
    """Check the statuses of commits of a stack that sets them.

    Raises:
        PortError: what became of them cannot be read.
    """
    if not outputs.get("GithubStatusTokenSecretArn"):
        return
    table = JobsTable(calls.client("dynamodb"), outputs["TableName"])
    yield from check_statuses(
        DynamoDbCommitStatuses(table).load_report(), DynamoDbNotices(table).load_pause(RECEIVER), now
    )
