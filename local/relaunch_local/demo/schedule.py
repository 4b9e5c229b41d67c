"""The schedule of reconcile, whose minutes pass faster here: it looks at the Jobs of clusters, which send no events."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from relaunch.adapters.aws.dynamodb.table import stamp
from relaunch_local.stack.local_world import LocalWorld

_SECONDS = 1.0


@contextmanager
def running_schedule(local: LocalWorld) -> Iterator[None]:
    """Call reconcile every second, for which every open job is due by then."""
    is_over = threading.Event()
    thread = threading.Thread(target=_run, args=(local, is_over), name="schedule", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _run(local: LocalWorld, is_over: threading.Event) -> None:
    table, functions = local.client("dynamodb"), local.client("lambda")
    while not is_over.wait(_SECONDS):
        # Another function changes the job, or the emulator is busy: the next second comes.
        with suppress(ClientError, BotoCoreError):
            _let_minute_pass(table, local.deployment.outputs["TableName"])
            functions.invoke(FunctionName=local.deployment.resources["ReconcileFunction"], Payload=b"{}")


def _let_minute_pass(table: Any, name: str) -> None:
    """Let every job be due that would be within a minute."""
    now = stamp(datetime.now(UTC))
    open_jobs = table.query(
        TableName=name,
        IndexName="due",
        KeyConditionExpression="due = :open",
        ExpressionAttributeValues={":open": {"S": "OPEN"}},
    )["Items"]
    for item in open_jobs:
        table.update_item(
            TableName=name,
            Key={key: item[key] for key in ("pk", "sk")},
            UpdateExpression="SET wake_at = :now",
            ConditionExpression="attribute_exists(wake_at)",
            ExpressionAttributeValues={":now": {"S": now}},
        )
