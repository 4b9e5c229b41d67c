"""Compares selection with SkyPilot's catalogue (Apache-2.0) on the same table: `make bench-peers`.

SkyPilot is installed in a separate environment. It gets the table as the CSV file that it reads, in a separate home
folder, and answers the queries of its planner: the types with the accelerator, by price, then the zones of the
cheapest. Here the same question is one selection: it applies every filter to every offering and orders the rest. Both
run in fresh processes, alternately, and each process repeats its queries until it is warm.
"""

import csv
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.errors import NotMeasurableError
from benchmarks.fresh_process import own_environment
from benchmarks.offering_tables import all_offerings
from benchmarks.session import Session, rotated
from benchmarks.tables import Table, median
from relaunch.core.definitions.accelerator import PurchaseOption
from relaunch.core.offerings.offering import Offering
from relaunch_local.repository import REPOSITORY

INTERPRETER = REPOSITORY / ".venv-peers" / "bin" / "python"
# SkyPilot takes more than two seconds to start.
MAX_ROUNDS = 7
MODEL = "A10G"
WHERE = "from sky.catalog import common\nprint(common.get_catalog_path('aws/vms.csv'))"
TIMER = """
import json, statistics, time

def warm(ask, count=200):
    ask()
    times = []
    for _ in range(count):
        began = time.perf_counter()
        ask()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)

began = time.perf_counter()
"""
SKYPILOT = f"""{TIMER}
from sky.catalog import aws_catalog

def types():
    return aws_catalog.get_instance_type_for_accelerator({MODEL!r}, 1, use_spot=True)[0]

def zones():
    return aws_catalog.get_region_zones_for_instance_type(cheapest, use_spot=True)

cheapest = types()[0]
zones()
first = (time.perf_counter() - began) * 1000
print(json.dumps(dict(answer=cheapest, first=first, types=warm(types), zones=warm(zones))))
"""
OURS = f"""{TIMER}
from datetime import UTC, datetime
from benchmarks.offering_tables import all_offerings
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, PurchasePolicy
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.selection.selection import select
from relaunch.core.selection.offering_filters import SelectionLimits

job = JobDefinition("bench", "trainer", AcceleratorRequirement(gpu=GpuRequirement(models=({MODEL!r},))),
                    purchase=PurchasePolicy.SPOT)
now, limits = datetime.now(UTC), SelectionLimits()

def choose():
    return select(job, None, offerings, {{}}, now, limits).chosen

def tabulate():
    return len(select(job, None, offerings, {{}}, now, limits).rejected)

offerings = all_offerings()
answer = choose().instance_type.name
first = (time.perf_counter() - began) * 1000
print(json.dumps(dict(answer=answer, first=first, choose=warm(choose), tabulate=warm(tabulate, 20))))
"""


class Peer(NamedTuple):
    """A peer: its code, interpreter and environment."""

    name: str
    interpreter: str
    code: str
    environment: dict[str, str]


def measure(session: Session) -> list[Table]:
    """Measure both.

    Raises:
        NotMeasurableError: the peers' environment is missing.
    """
    if not INTERPRETER.exists():
        raise NotMeasurableError("SkyPilot is not installed: make bench-peers")
    offerings = all_offerings()
    with tempfile.TemporaryDirectory() as home:
        environment = peer_environment(home)
        path = Path(run(Peer("SkyPilot", str(INTERPRETER), WHERE, environment)).strip())
        write_catalogue(path, offerings)
        peers = (
            Peer("SkyPilot", str(INTERPRETER), SKYPILOT, environment),
            Peer("Relaunch", sys.executable, OURS, own_environment()),
        )
        answers = ask_in_turn(peers, min(session.rounds, MAX_ROUNDS))
    return [_table(offerings, answers)]


def ask_in_turn(peers: tuple[Peer, ...], rounds: int) -> dict[str, list[dict[str, Any]]]:
    """Return the results by peer; the order changes in each round."""
    answers: dict[str, list[dict[str, Any]]] = {peer.name: [] for peer in peers}
    for number in range(rounds):
        for peer in rotated(peers, number):
            answers[peer.name].append(json.loads(run(peer).splitlines()[-1]))
    return answers


def run(peer: Peer, asked: str = "") -> str:
    """Run a peer's code in a fresh process that reads `asked`; return its output.

    Raises:
        NotMeasurableError: it failed; the message contains its output.
    """
    finished = subprocess.run(
        [peer.interpreter, "-c", peer.code],
        env=peer.environment,
        input=asked,
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode:
        raise NotMeasurableError(f"{peer.name} failed: {finished.stderr[-500:]}")
    return finished.stdout


def peer_environment(home: str) -> dict[str, str]:
    """Return an environment in which SkyPilot finds the table, but no credentials and no network."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": home,
        "SKYPILOT_DISABLE_USAGE_COLLECTION": "1",
        "AWS_EC2_METADATA_DISABLED": "true",
        # Requests to the network fail at once.
        "HTTP_PROXY": "http://127.0.0.1:9",
        "HTTPS_PROXY": "http://127.0.0.1:9",
    }


def write_catalogue(path: Path, offerings: tuple[Offering, ...]) -> None:
    """Write the offerings as SkyPilot's AWS catalogue: a row for each type and zone, with both prices."""
    prices: dict[tuple[str, str], dict[PurchaseOption, Offering]] = {}
    for offering in offerings:
        prices.setdefault((offering.instance_type.name, offering.zone or ""), {})[offering.purchase] = offering
    rows = [_row(zone, both) for (_, zone), both in prices.items()]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def _row(zone: str, both: dict[PurchaseOption, Offering]) -> dict[str, object]:
    machine = both[PurchaseOption.SPOT].instance_type
    count = machine.accelerator_count * (machine.gpu_partition_size if machine.is_fractional else 1)
    return {
        "InstanceType": machine.name,
        "AcceleratorName": machine.accelerator_model,
        "AcceleratorCount": float(count),
        "vCPUs": float(machine.vcpus),
        "MemoryGiB": machine.memory_mib / 1024,
        "GpuInfo": "",
        "Price": both[PurchaseOption.ON_DEMAND].price_usd_per_hour,
        "SpotPrice": both[PurchaseOption.SPOT].price_usd_per_hour,
        "Region": zone[:-1],
        "AvailabilityZone": zone,
    }


def _table(offerings: tuple[Offering, ...], answers: dict[str, list[dict[str, Any]]]) -> Table:
    theirs = answers["SkyPilot"]
    ours = answers["Relaunch"]
    first = median(each["first"] for each in theirs), median(each["first"] for each in ours)
    query = median(each["types"] + each["zones"] for each in theirs)
    choose, tabulate = (median(each[name] for each in ours) for name in ("choose", "tabulate"))
    rows = [
        ("fresh process, from import to the first answer", first[0], first[1], first[0] / first[1]),
        ("warm: the types with the accelerator, and the cheapest one's zones", query, None, None),
        ("warm: the best of all offerings", query, choose, query / choose),
        ("warm: the same, with every offering kept or rejected with its reason", query, tabulate, query / tabulate),
    ]
    same = theirs[0]["answer"] == ours[0]["answer"]
    return Table(
        f"One {MODEL} on spot among {len(offerings)} offerings of {len(offerings) // 2} rows; "
        f"{len(theirs)} processes each",
        ("question", "SkyPilot ms", "Relaunch ms", "x faster"),
        rows,
        (
            f"Both answer {ours[0]['answer']}."
            if same
            else f"SkyPilot says {theirs[0]['answer']}, Relaunch {ours[0]['answer']}.",
        ),
    )
