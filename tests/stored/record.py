"""Records the items and messages that a release writes: `python tests/stored/record.py FILE`, or `make record-items`.

They come from the simulation over some seeds. Of all that look alike, one is kept: two look alike if the same fields
are there, with the same types, and the same words (states, kinds of effects, reasons). It runs with the code that is on
PYTHONPATH, so that it also records the releases of before.
"""

import argparse
import gzip
import json
import re
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from relaunch.adapters.aws.dynamodb.snapshot_item import DynamoDbSnapshots
from relaunch.adapters.aws.dynamodb.stores import DynamoDbStores
from relaunch.adapters.offerings.bundled import bundled_snapshot
from relaunch.core.jobs.effects import AbandonMachine
from relaunch.core.lifecycle.decision import Decision
from relaunch.core.selection.rates import ObservedRate, RateRecord
from relaunch.core.triggers.dispatch_rate import DispatchStarts
from relaunch.ports import FoundRevision, RevisionMaintenance
from relaunch_local.in_memory.jobs import InMemoryJobs
from relaunch_local.in_memory.machines import InMemoryMachines
from relaunch_local.simulation import Options, run_seed
from relaunch_local.simulation.aws.emulated_table import TABLE
from relaunch_local.simulation.aws.sqs_client import ModelSqs
from relaunch_local.simulation.retention import Retention

Item = Mapping[str, Any]
Group = Mapping[str, Any]

# A word has no digits, as an identifier has.
_WORD = re.compile("[A-Za-z]{2,}([-_][A-Za-z]+)*")
_NAME = re.compile("[a-z][a-z0-9_]*")
# A seed whose definitions have concurrency groups.
_WITH_GROUPS = 37
_OWN_QUEUES = ("IntakeQueue", "AttemptsQueue", "MachinesQueue")


def kind_of(item: Item) -> str:
    """Return the kind of an item (adapters.aws.dynamodb.formats; releases of before have no such module)."""
    kind = str(item["pk"]["S"]).partition("#")[0]
    return str(item["sk"]["S"]).partition("#")[0] if kind == "JOB" else kind


def plain(item: Item) -> dict[str, Any]:
    """Return an item without compression, as JSON."""
    rest = {name: value for name, value in item.items() if name != "packed"}
    if "packed" in item:
        rest["packed"] = json.loads(zlib.decompress(item["packed"]["B"]))
    for name in ("body", "summary", "owner"):
        if "S" in rest.get(name, {}):
            rest[name] = json.loads(rest[name]["S"])
        elif "B" in rest.get(name, {}):
            rest[name] = {"zlib": json.loads(zlib.decompress(rest[name]["B"]))}
    return rest


class Records:
    """The groups of items that are read together, one of each look."""

    def __init__(self) -> None:
        """Begin with none."""
        self._groups: list[tuple[Group, frozenset[str]]] = []
        self._seen: set[str] = set()

    def add(self, kind: str, content: Sequence[Any]) -> None:
        """Keep a group if something in it has not been seen."""
        looks = frozenset(_looks(kind, content))
        if not looks <= self._seen:
            self._seen |= looks
            self._groups.append(({"kind": kind, "items": content}, looks))

    def written(self, items: Sequence[Item]) -> None:
        """Keep what one write has put."""
        by_kind = [(kind_of(item), plain(item)) for item in items]
        attempts = [item for kind, item in by_kind if kind == "ATTEMPT"]
        for kind, item in by_kind:
            if kind != "ATTEMPT":
                self.add(kind, [item, *attempts] if kind == "JOB" else [item])

    def needed(self) -> list[Group]:
        """Return the groups without those in which the others have everything."""
        counts: dict[str, int] = {}
        for _, looks in self._groups:
            for look in looks:
                counts[look] = counts.get(look, 0) + 1
        kept: list[Group] = []
        for group, looks in self._groups:
            if all(counts[look] > 1 for look in looks):
                for look in looks:
                    counts[look] -= 1
            else:
                kept.append(group)
        return kept


def _looks(path: str, value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        kind = f"={value['kind']}" if isinstance(value.get("kind"), str) else ""
        for name, each in value.items():
            yield from _looks(f"{path}{kind}.{name if _NAME.fullmatch(name) else '*'}", each)
    elif isinstance(value, list | tuple):
        yield f"{path} {'several' if len(value) > 1 else len(value)}"
        for each in value:
            yield from _looks(path, each)
    elif isinstance(value, str) and _WORD.fullmatch(value) and not path.endswith("_id"):
        yield f"{path} {value}"
    else:
        yield f"{path} {type(value).__name__}"


class _Listener:
    """A DynamoDB that takes every write and has nothing."""

    def __init__(self, records: Records) -> None:
        self._records = records

    def transact_write_items(self, **parameters: Any) -> Any:
        self._records.written([each["Put"]["Item"] for each in parameters["TransactItems"] if "Put" in each])
        return {}

    def put_item(self, **parameters: Any) -> Any:
        self._records.written([parameters["Item"]])
        return {}

    def query(self, **_: Any) -> Any:
        return {"Items": []}

    def get_item(self, **_: Any) -> Any:
        return {}


class _Recorder:
    """Records what the simulation writes: in memory, repeated by the stores of DynamoDB, and over these themselves."""

    def __init__(self) -> None:
        self.records = Records()
        self._client: Any = _Listener(self.records)
        self._stores = DynamoDbStores(self._client, "jobs")
        self._decision: Decision | None = None

    def run(self, seeds: int, table_seeds: int) -> None:
        """Record these seeds, and what none of them writes."""
        with ExitStack() as patches:
            patches.enter_context(self._repeated(InMemoryJobs, "create_job", self._stores.jobs))
            patches.enter_context(self._repeated(InMemoryJobs, "save_job", self._stores.jobs))
            patches.enter_context(self._repeated(InMemoryMachines, "save_machine", self._stores.machines))
            patches.enter_context(self._noted_messages())
            patches.enter_context(self._scanned_tables())
            for seed in range(seeds):
                run_seed(seed)
                sys.stderr.write(".")
            for seed in (*range(table_seeds), _WITH_GROUPS):
                run_seed(seed, Options(dynamodb=True))
                sys.stderr.write(":")
        self._add_what_no_seed_writes()

    def _repeated(self, owner: type, name: str, store: Any) -> Any:
        method = getattr(owner, name)

        def call(own: Any, *arguments: Any) -> Any:
            answer = method(own, *arguments)
            getattr(store, name)(*arguments)
            if name == "save_job":
                self._decision = arguments[0]
            return answer

        return patch.object(owner, name, call)

    def _noted_messages(self) -> Any:
        send = ModelSqs.send_message

        def call(own: ModelSqs, **parameters: Any) -> Any:
            queue = str(parameters["QueueUrl"]).rpartition("/")[2]
            message = json.loads(parameters["MessageBody"]) if queue in _OWN_QUEUES else {}
            # Lambda writes what became of a call, not the release.
            if message and "requestPayload" not in message:
                self.records.add(f"message:{queue}", [message])
            return send(own, **parameters)

        return patch.object(ModelSqs, "send_message", call)

    def _scanned_tables(self) -> Any:
        """Scan each table before everything in it expires."""
        check_end = Retention.check_end

        def call(own: Retention) -> None:
            table = own._account.emulated
            if table is not None:
                for page in table.raw.jobs._table._client.get_paginator("scan").paginate(TableName=TABLE):
                    # A job was recorded with the attempt that was written with it.
                    self.records.written([item for item in page["Items"] if kind_of(item) not in {"JOB", "ATTEMPT"}])
            check_end(own)

        return patch.object(Retention, "check_end", call)

    def _add_what_no_seed_writes(self) -> None:
        stores = self._stores
        snapshot = bundled_snapshot("us-east-1")
        at = max(origin.at for origin in snapshot.origins.values())
        DynamoDbSnapshots(self._client, "jobs").save_snapshot(snapshot)
        stores.events.save_dispatch_starts(DispatchStarts("5e07", {"github:1": at}))
        rate = ObservedRate("resnet-1", 1, 600, at, 1.5, "5e07", 31.0)
        stores.rates.save_rate(RateRecord("resnet", "4x A10G", (rate, replace(rate, attempt=2, save_seconds=None))))
        stores.maintenance.save_maintenance(RevisionMaintenance(at, {"relaunch-trainer": at}))
        stores.maintenance.save_revision("5e07", FoundRevision("arn:aws:ecs:us-east-1:1:task-definition/trainer:7", at))
        if self._decision is not None:
            job = replace(self._decision.job, pending=(AbandonMachine("m-1", "its agent stays away"),))
            stores.jobs.save_job(replace(self._decision, job=job))


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seeds", type=int, default=60)
    parser.add_argument("--table-seeds", type=int, default=2)
    arguments = parser.parse_args()
    recorder = _Recorder()
    recorder.run(arguments.seeds, arguments.table_seeds)
    groups = recorder.records.needed()
    lines = "\n".join(json.dumps(group, separators=(",", ":"), sort_keys=True) for group in groups)
    arguments.file.parent.mkdir(parents=True, exist_ok=True)
    # Without the time, the same items are the same file.
    arguments.file.write_bytes(gzip.compress(lines.encode(), 9, mtime=0))
    sys.stderr.write(f"\n{len(groups)} groups, {arguments.file.stat().st_size} bytes\n")


if __name__ == "__main__":
    main()
