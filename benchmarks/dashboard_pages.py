"""The pages of `relaunch dashboard`: how long and how large they are, and what an open one reads and costs.

Jobs are in a table that moto emulates in this process, whose own time is in the floor too: the bare query for the same
page of the list. Reads are counted where they leave for AWS: calls of DynamoDB by botocore, those of S3 and CloudWatch
Logs by the ports. First paint is measured in a browser (tests/browser/test_dashboard_pictures.py).
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from benchmarks.session import Session, rotated
from benchmarks.tables import Cell, Table, median
from fakes.aws import aws_in_process, create_jobs_table, make_client
from fakes.builders import make_job
from fakes.dashboard_world import DashboardWorld, own
from relaunch.adapters.aws.dynamodb.stores import DynamoDbStores
from relaunch.core.jobs.state import JobState
from relaunch_cli.dashboard.application import POLL_SECONDS, Dashboard
from relaunch_cli.dashboard.guard import Guard
from relaunch_cli.dashboard.job_lists import PAGE

COUNTS = (10, 10_000)
# Writing ten thousand takes half a minute, which says nothing in one round.
_FEWER = 100
_LOOKS = 60 // POLL_SECONDS
_GUARD = Guard(8000)
# In us-east-1, in November 2026: "Amazon DynamoDB pricing", on-demand, a read request unit; "Amazon S3 pricing",
# S3 Standard, LIST and GET. A read unit is 4 KB read consistently, or 8 KB from an index ("Read and write operations",
# DynamoDB guide). "Amazon CloudWatch pricing" has no price for GetLogEvents.
_USD_PER_READ_UNIT = 0.125e-6
_USD_PER_LIST = 0.005e-3
_USD_PER_GET = 0.0004e-3
_UNIT_BYTES = 4_096


@dataclass
class _Emulated:
    """A table, and the calls of it: their number, and the read units by the bytes that they answered."""

    world: Any
    """A DashboardWorld, whose jobs are in the table."""
    client: Any
    calls: Counter[str]
    units: float = 0.0

    def note(self, parsed: Mapping[str, Any], model: Any, **_: object) -> None:
        """Note an answered call."""
        items = parsed.get("Items", [parsed.get("Item", {})])
        # What an index answers is read eventually consistently.
        share = 0.5 if any("listing" in each for each in items) or not items else 1.0
        self.calls[f"dynamodb:{model.name}"] += 1
        self.units += share * max(math.ceil(_size(items) / _UNIT_BYTES), 1)

    def port(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a call of a port that is counted."""

        def counted(*arguments: Any, **words: Any) -> Any:
            self.calls[name] += 1
            return call(*arguments, **words)

        return counted


def measure(session: Session) -> list[Table]:
    """Measure the first pages, and count a minute of open ones."""
    rows: list[tuple[Cell, ...]] = []
    reads: list[tuple[Cell, ...]] = []
    for count in COUNTS if session.rounds > 1 else (COUNTS[0], _FEWER):
        with _emulated(count) as emulated:
            rows.append(_first_page(emulated, count, session))
            if count == COUNTS[0]:
                reads = [_minute(emulated, *each) for each in _open_pages(emulated.world)]
    return [
        Table("The first page of the list, its reads included", ("jobs", "bytes", "ms", "floor: bare query ms"), rows),
        Table(
            f"A minute of an open page, which looks every {POLL_SECONDS} s",
            ("page", "DynamoDB calls", "read units", "S3 calls", "Logs calls", "USD an hour"),
            reads,
            ("A page that nobody looks at (document.hidden) reads nothing; several tabs of one page read once.",),
        ),
    ]


@contextmanager
def _emulated(count: int) -> Iterator[_Emulated]:
    world: Any = DashboardWorld()
    world.forget_hostile()
    jobs = world.jobs
    with aws_in_process():
        client = make_client("dynamodb")
        create_jobs_table(client, "jobs")
        stores = DynamoDbStores(client, "jobs")
        known = [jobs.job(each) for each in jobs._records]  # noqa: SLF001 - no port lists jobs as they are
        for job in known:
            stores.jobs.create_job(replace(job, version=0), ())
        _fill(client, stores, count - len(known))
        world.jobs = stores.jobs
        world.deps = replace(world.deps, jobs=stores.jobs)
        emulated = _Emulated(world, client, Counter())
        checkpoints: Any = world.checkpoints
        logs: Any = world.logs
        checkpoints.newest_saved = emulated.port("s3", checkpoints.newest_saved)
        logs.read = emulated.port("logs", logs.read)
        logs.tail = emulated.port("logs", logs.tail)
        client.meta.events.register("after-call.dynamodb", emulated.note)
        yield emulated


def _fill(client: Any, stores: DynamoDbStores, count: int) -> None:
    """Write ended jobs: one, and copies of its item."""
    if count <= 0:
        return
    ended = make_job("ended-0", state=JobState.SUCCEEDED, waiting=None, wake_at=None, reason="it finished")
    stores.jobs.create_job(replace(ended, ended_at=ended.accepted_at), ())
    key = {"pk": {"S": "JOB#ended-0"}, "sk": {"S": "JOB"}}
    item = client.get_item(TableName="jobs", Key=key)["Item"]
    for number in range(1, count):
        at = (ended.accepted_at - timedelta(minutes=number)).isoformat()
        client.put_item(TableName="jobs", Item={**item, "pk": {"S": f"JOB#ended-{number}"}, "accepted_at": {"S": at}})


def _open_pages(world: Any) -> list[tuple[str, tuple[str, ...]]]:
    return [
        ("list", ("/",)),
        ("job that runs, with its log", (f"/jobs/{world.running}", f"/jobs/{world.running}/log")),
        ("job that has ended, with its log", (f"/jobs/{world.succeeded}", f"/jobs/{world.succeeded}/log")),
    ]


def _first_page(emulated: _Emulated, count: int, session: Session) -> tuple[Cell, ...]:
    sizes = []

    def measure_round(number: int) -> dict[str, float]:
        found = {}
        for name in rotated(("page", "floor"), number):
            dashboard = Dashboard(emulated.world, _GUARD, "relaunch")
            began = time.perf_counter()
            if name == "page":
                sizes.append(len(dashboard.answer(own(8000, _GUARD)).body))
            else:
                emulated.world.deps.jobs.list_jobs(PAGE)
            found[name] = time.perf_counter() - began
        return found

    samples = session.collect(measure_round)
    return (count, sizes[-1], 1_000 * median(samples["page"]), 1_000 * median(samples["floor"]))


def _minute(emulated: _Emulated, name: str, targets: tuple[str, ...]) -> tuple[Cell, ...]:
    dashboard = Dashboard(emulated.world, _GUARD, "relaunch")
    for look in range(_LOOKS + 1):
        for target in targets:
            dashboard.answer(own(8000, _GUARD, target=target))
        if look == 0:
            # What is read once, when the page is opened, is no part of a minute.
            emulated.calls.clear()
            emulated.units = 0.0
        emulated.world.clock.advance(POLL_SECONDS)
    database = sum(count for each, count in emulated.calls.items() if each.startswith("dynamodb"))
    listed = emulated.calls["s3"]
    usd = emulated.units * _USD_PER_READ_UNIT + listed * (_USD_PER_LIST + _USD_PER_GET)
    # A look for a checkpoint lists once, and gets the newest manifest.
    return name, database, emulated.units, 2 * listed, emulated.calls["logs"], f"{60 * usd:.5f}"


def _size(value: Any) -> int:
    """Return about how many bytes DynamoDB counts for items: the names and values of their attributes."""
    if isinstance(value, Mapping):
        return sum(len(name) + _size(each) for name, each in value.items())
    if isinstance(value, list):
        return sum(map(_size, value))
    return len(str(value))
