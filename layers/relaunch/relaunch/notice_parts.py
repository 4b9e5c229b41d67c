"""Creates what send_notices needs besides what every function has."""

from collections.abc import Callable, Mapping
from typing import Any

from relaunch.adapters.aws.dynamodb.commit_statuses import DynamoDbCommitStatuses
from relaunch.adapters.aws.dynamodb.table import JobsTable
from relaunch.adapters.aws.receiver_parameters import SsmReceivers
from relaunch.adapters.aws.secret_text import SecretText
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
    # Imported here because other functions do not need them.
    from relaunch.adapters.notices.receivers import ReceiverMaker, StoredReceivers  # noqa: PLC0415

    maker = ReceiverMaker(
        split(environment.get("RELAUNCH_NOTICE_HOSTS", "")),
        split(environment.get("RELAUNCH_NOTICE_TOPIC_ARNS", "")),
        client("sns"),
        clock,
        page_url=environment.get(_PAGE, ""),
    )
    stored = StoredReceivers(SsmReceivers(client("ssm"), path), maker, clock, log)
    return {"receivers": _with_commit_statuses(stored, environment, client, clock)}


def _with_commit_statuses(
    others: ReceiverSource, environment: Mapping[str, str], client: Callable[[str], Any], clock: Clock
) -> ReceiverSource:
    """Return the receivers and, of a stack with a token for them, the statuses of commits."""
    secret = environment.get("RELAUNCH_GITHUB_STATUS_TOKEN_SECRET_ARN", "")
    if not secret:
        return others
    from relaunch.adapters.github import commit_statuses, rest_api  # noqa: PLC0415 - as above

    token = SecretText(client("secretsmanager"), secret)
    api = rest_api.GithubRestApi(
        required(environment, "RELAUNCH_GITHUB_API_URL"), token.read, commit_statuses.PARAMETER
    )
    store = DynamoDbCommitStatuses(JobsTable(client("dynamodb"), required(environment, "RELAUNCH_TABLE")))
    statuses = commit_statuses.GithubCommitStatuses(api, store, clock, environment.get(_PAGE, ""))
    return commit_statuses.WithCommitStatuses(others, statuses)
