"""Reads recorded items and messages with the code on PYTHONPATH: `python tests/stored/read.py FILE`.

It uses what every release has: the stores, by their ports, and what parses messages.
"""

import gzip
import json
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from functools import cache
from pathlib import Path
from typing import Any

from relaunch.adapters.aws.dynamodb.snapshot_item import DynamoDbSnapshots
from relaunch.adapters.aws.dynamodb.stores import DynamoDbStores
from relaunch.adapters.aws.sqs.launch_queue import parse_launch_request
from relaunch.adapters.aws.sqs.machine_queue import parse_machine_request
from relaunch.adapters.messages.intake import parse_intake_message
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.definitions.definition import TriggerSource
from relaunch.core.offerings.offering import OfferingKey

sys.path.insert(0, str(Path(__file__).parent))

from served_table import ServedTable

Group = Mapping[str, Any]


def read_groups(file: Path) -> list[Group]:
    """Return the groups of a file."""
    return [json.loads(line) for line in gzip.decompress(file.read_bytes()).decode().splitlines()]


def stored(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return a recorded item as it was stored."""
    whole = {name: item[name] for name in item if name not in {"packed", "body", "summary", "owner"}}
    for name in item.keys() & {"body", "summary", "owner"}:
        packed = item[name].get("zlib")
        whole[name] = {"B": zlib.compress(_json(packed))} if packed else {"S": _json(item[name]).decode()}
    if "packed" in item:
        whole["packed"] = {"B": zlib.compress(_json(item["packed"]))}
    return whole


def _json(content: Any) -> bytes:
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()


def pk_of(group: Group) -> str:
    """Return what follows the kind in the partition key of a group."""
    return str(group["items"][0]["pk"]["S"]).partition("#")[2]


def sk_of(group: Group) -> str:
    """Return the sort key of a group."""
    return str(group["items"][0]["sk"]["S"])


def open_table(group: Group) -> tuple[ServedTable, DynamoDbStores]:
    """Return a table that has the items of a group, and its stores."""
    items = [stored(item) for item in group["items"]]
    if group["kind"] in {"TIMELINE", "SELECTION"}:
        items.append(_job_without_attempt(items[0]["pk"]["S"]))
    table = ServedTable(items)
    client: Any = table
    return table, DynamoDbStores(client, "jobs", lambda _seconds: None)


@cache
def _job_without_attempt(pk: str) -> dict[str, Any]:
    groups = read_groups(Path(__file__).parent / "3ffade99" / "items.json.gz")
    (job, *_) = (each["items"][0] for each in groups if each["kind"] == "JOB" and len(each["items"]) == 1)
    return stored(job) | {"pk": {"S": pk}}


def _history(group: Group, stores: Any) -> object:
    history = stores.jobs.load_history(pk_of(group))
    return history and (history.timeline or history.selections)


def _capacity(group: Group, stores: Any) -> object:
    memory, runs, pools = stores.capacity.load_capacity(datetime(2026, 1, 2, tzinfo=UTC))
    return sk_of(group).startswith("RUNS#") or sk_of(group).startswith("POOL#") or memory or runs or pools


def _rates(group: Group, stores: Any) -> object:
    # Releases that learn no rates never read one.
    return not hasattr(stores, "rates") or stores.rates.load_rate(pk_of(group), sk_of(group)).observed


def _costs(group: Group, stores: Any) -> object:
    first = date.fromisoformat(f"{pk_of(group)}-01")
    load = getattr(stores.jobs, "load_costs", None)
    # Releases that sum no costs never read them.
    return load is None or load(first, first.replace(day=28))


def _trigger(group: Group, stores: Any) -> object:
    source, _, name = pk_of(group).partition("#")
    return stores.definitions.find_definitions(TriggerSource(source), name)


def _starts(group: Group, stores: Any) -> object:
    instance_type, zone, purchase = sk_of(group).split("#")
    return OfferingKey(instance_type, None if zone == "*" else zone, PurchaseOption(purchase)) in (
        stores.machines.load_starts()
    )


def _events(group: Group, stores: Any) -> object:
    return stores.events.list_events(datetime.fromisoformat(pk_of(group)).replace(tzinfo=UTC, hour=23), 10)


def _link(group: Group, stores: Any) -> object:
    return stores.jobs.load_waiting_for_image(*pk_of(group).split("#"))


def _group(group: Group, stores: Any) -> object:
    load = getattr(stores.jobs, "load_group", None)
    # Releases that know no concurrency groups never read one.
    return load is None or load(sk_of(group)).newest


_READ: Mapping[str, Callable[[Group, Any], object]] = {
    "GROUP": _group,
    "JOB": lambda group, stores: stores.jobs.load_job(pk_of(group)),
    "TIMELINE": _history,
    "SELECTION": _history,
    "MACHINE": lambda group, stores: stores.machines.load_machine(pk_of(group)),
    "EC2": lambda group, stores: stores.machines.find_by_instance(pk_of(group)),
    "MACHINES": lambda group, stores: stores.machines.load_totals(),
    "STARTS": _starts,
    "CAPACITY": _capacity,
    "COSTS": _costs,
    "RATES": _rates,
    "DEFINITION": lambda group, stores: stores.definitions.load_registered(sk_of(group)),
    "TRIGGER": _trigger,
    "EVENTS": _events,
    "DISPATCH": lambda group, stores: stores.events.load_dispatch_starts(pk_of(group)).started_at,
    "MAINTENANCE": lambda group, stores: stores.maintenance.load_maintenance(),
    "DERIVED": lambda group, stores: stores.maintenance.load_revision(sk_of(group)),
    "IMAGE": _link,
    "INSTANCE": lambda group, stores: stores.jobs.load_on_instance(pk_of(group)),
    "WARNING": lambda group, stores: stores.jobs.load_warning(pk_of(group)),
}
# A message is one group.
_PARSE: Mapping[str, Callable[[str], object]] = {
    "message:AttemptsQueue": parse_launch_request,
    "message:MachinesQueue": parse_machine_request,
    "message:IntakeQueue": parse_intake_message,
}


def read(group: Group) -> object:
    """Return what the stores read of a group; nothing reads what is only counted with (slots).

    Raises:
        Exception: it cannot be read.
    """
    kind = group["kind"]
    if kind in _PARSE:
        return _PARSE[kind](json.dumps(group["items"][0]))
    table, stores = open_table(group)
    client: Any = table
    if kind == "OFFERINGS":
        return DynamoDbSnapshots(client, "jobs").load_snapshot()
    return kind == "SLOTS" or _READ[kind](group, stores)


def unreadable(groups: list[Group]) -> Iterator[str]:
    """Yield what cannot be read, and why."""
    for group in groups:
        try:
            found = read(group)
        except Exception as error:  # noqa: BLE001 - whatever the release makes of it
            yield f"{group['kind']}: {type(error).__name__}: {error}"
        else:
            if not found:
                yield f"{group['kind']} {group['items'][0]} is not found"


if __name__ == "__main__":
    errors = list(unreadable(read_groups(Path(sys.argv[1]))))
    sys.stdout.write("\n".join(errors))
    sys.exit(1 if errors else 0)
