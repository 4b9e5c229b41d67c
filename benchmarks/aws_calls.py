"""The AWS calls of each function in each situation, recorded on the wire."""

from collections import Counter

from benchmarks.recording import Step
from benchmarks.session import Session
from benchmarks.tables import Table

READS = frozenset({"Query", "GetItem", "BatchGetItem", "TransactGetItems"})
WRITES = frozenset({"TransactWriteItems", "PutItem", "UpdateItem", "DeleteItem"})


def measure(session: Session) -> list[Table]:
    """Return the calls of all recorded steps."""
    return [
        Table(
            "AWS calls by function and situation (cold: a warm function leaves out what it has kept)",
            ("function", "situation", "reads", "writes", "items", "all", "calls in their order"),
            [_row(step) for step in session.recording.steps],
            (
                "reads, writes: calls to the jobs table; items: what those writes write; all: calls to all services.",
                "Goal of launch_attempt: RunTask, at most 4 reads and 4 writes, one of them after RunTask, without "
                "what is kept as long as the execution environment lives:",
                "spot prices, the snapshot of offerings (GetItem), the webhook's secret. "
                "DescribeTaskDefinition is submit_job's.",
                "Refused: by a condition on the item, or because the replacement for AWS does not have it.",
            ),
        )
    ]


def _row(step: Step) -> tuple[str | int, ...]:
    counts = Counter(
        exchange.operation if exchange.status < 400 else f"{exchange.operation} (refused)"
        for exchange in step.exchanges
    )
    table = [exchange for exchange in step.exchanges if exchange.service == "dynamodb"]
    return (
        step.function,
        step.situation,
        sum(exchange.operation in READS for exchange in table),
        sum(exchange.operation in WRITES for exchange in table),
        sum(exchange.items_written for exchange in table if exchange.status == 200),
        len(step.exchanges),
        ", ".join(f"{name} x{count}" if count > 1 else name for name, count in counts.items()),
    )
