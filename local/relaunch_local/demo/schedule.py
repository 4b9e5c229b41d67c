"""The schedule of reconcile, whose minutes pass faster here: it looks at what no event tells.

Clusters send no events of their Jobs, and EC2 none that says why an instance has ended.
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from relaunch.adapters.aws.dynamodb.job_listing import OPEN, UNSENT
from relaunch.adapters.aws.dynamodb.machine_items import DUE, read_machine
from relaunch.adapters.aws.dynamodb.table import stamp
from relaunch_local.stack.local_world import LocalWorld

_SECONDS = 1.0


@contextmanager
def running_schedule(local: LocalWorld) -> Iterator[None]:
    """Call reconcile every second while something is open that is due by then.

    On a cluster of Alibaba Cloud that is every open job, on ECS every machine of whose end EC2 has told.
    """
    is_over = threading.Event()
    thread = threading.Thread(target=_run, args=(local, is_over), name="schedule", daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _run(local: LocalWorld, is_over: threading.Event) -> None:
    table = local.client("dynamodb")
    functions = local.client("lambda")
    name = local.deployment.outputs["TableName"]
    find = _open_jobs if local.alibaba else _ended_machines
    while not is_over.wait(_SECONDS):
        # Another function changes the item, or the emulator is busy: the next second comes.
        with suppress(ClientError, BotoCoreError):
            if _let_minute_pass(table, name, find(table, name)):
                functions.invoke(FunctionName=local.deployment.resources["ReconcileFunction"], Payload=b"{}")


def _open_jobs(table: Any, name: str) -> Iterator[dict[str, Any]]:
    yield from _due(table, name, OPEN)
    yield from _due(table, name, UNSENT)


def _ended_machines(table: Any, name: str) -> Iterator[dict[str, Any]]:
    for key in _due(table, name, DUE):
        item = table.get_item(TableName=name, Key=key)["Item"]
        if read_machine(item).ended_at is not None:
            yield key


def _due(table: Any, name: str, due: str) -> Iterator[dict[str, Any]]:
    """Yield the keys of what is due at any time."""
    found = table.query(
        TableName=name,
        IndexName="due",
        KeyConditionExpression="due = :due",
        ExpressionAttributeValues={":due": {"S": due}},
    )
    for item in found["Items"]:
        yield {key: item[key] for key in ("pk", "sk")}


def _let_minute_pass(table: Any, name: str, keys: Iterable[dict[str, Any]]) -> int:
    """Let these items be due now; return their number."""
    now = stamp(datetime.now(UTC))
    due = list(keys)
    for key in due:
        table.update_item(
            TableName=name,
            Key=key,
            UpdateExpression="SET wake_at = :now",
            ConditionExpression="attribute_exists(wake_at)",
            ExpressionAttributeValues={":now": {"S": now}},
        )
    return len(due)
