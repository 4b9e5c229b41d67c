"""Reads what the last sweep of failed deliveries reported."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from relaunch.adapters.aws.dynamodb.deliveries import DynamoDbDeliveries
from relaunch.core.checks import Check
from relaunch.core.definitions.definition import JobDefinition
from relaunch_cli.account_checks.deliveries import check_deliveries, watches_github, without_token
from relaunch_cli.account_readers.calls import AccountCalls


def check_failed_deliveries(
    named: Sequence[JobDefinition], outputs: Mapping[str, str], now: datetime, calls: AccountCalls
) -> Iterator[Check]:
    """Check whether deliveries that failed are asked for again, where a trigger waits for GitHub.

    Raises:
        PortError: the report cannot be read.
    """
    if not outputs.get("WebhookUrl") or not watches_github(named):
        return
    if not outputs.get("GithubTokenSecretArn"):
        yield without_token()
        return
    report = DynamoDbDeliveries(calls.client("dynamodb"), outputs["TableName"]).load_report()
    yield from check_deliveries(report, now)
