"""Creates what send_notices needs besides what every function has."""

from collections.abc import Callable, Mapping
from typing import Any

from relaunch import late_parts as parts
from relaunch.ports import Clock, DecisionLog
from relaunch.ports.notices import ReceiverSource
from relaunch.setting_values import required, split

_PATH = "RELAUNCH_NOTICES_PATH"
_PAGE = "RELAUNCH_JOB_PAGE_URL"


def notice_parts(
    environment: Mapping[str, str], client: Callable[[str], Any], clock: Clock, log: DecisionLog
) -> dict[str, Any]:
    """Return the ports of sending notices, none in a function that sends none."""
    path = environment.get(_PATH, "")
    if not path:
        return {}
    maker = parts.ReceiverMaker(
        split(environment.get("RELAUNCH_NOTICE_HOSTS", "")),
        split(environment.get("RELAUNCH_NOTICE_TOPIC_ARNS", "")),
        client("sns"),
        clock,
        page_url=environment.get(_PAGE, ""),
    )
    stored = parts.StoredReceivers(parts.SsmReceivers(client("ssm"), path), maker, clock, log)
    return {"receivers": _with_commit_statuses(stored, environment, client, clock)}


def _with_commit_statuses(
    others: ReceiverSource, environment: Mapping[str, str], client: Callable[[str], Any], clock: Clock
) -> ReceiverSource:
    """Return the receivers and, of a stack with a token for them, the statuses of commits."""
    secret = environment.get("RELAUNCH_GITHUB_STATUS_TOKEN_SECRET_ARN", "")
    if not secret:
        return others
    token = parts.SecretText(client("secretsmanager"), secret)
    api = parts.GithubRestApi(required(environment, "RELAUNCH_GITHUB_API_URL"), token.read, parts.PARAMETER)
    store = parts.DynamoDbCommitStatuses(parts.JobsTable(client("dynamodb"), required(environment, "RELAUNCH_TABLE")))
    statuses = parts.GithubCommitStatuses(api, store, clock, environment.get(_PAGE, ""))
    return parts.WithCommitStatuses(others, statuses)
