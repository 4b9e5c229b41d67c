"""The table that a peer is asked about is the one that selection chooses from."""

import csv
import json
import subprocess
import sys
from pathlib import Path

from fakes.repository import REPOSITORY

WRITE = """
import json, sys
from pathlib import Path
from benchmarks.offering_tables import all_offerings
from benchmarks.peers import write_catalogue

offerings = all_offerings()
write_catalogue(Path(sys.argv[1]), offerings)
rows = [[each.instance_type.name, each.zone, each.purchase.value, each.price_usd_per_hour] for each in offerings]
print(json.dumps(rows))
"""
WITHOUT_PEER = """
import sys
from pathlib import Path
from benchmarks import __main__ as main, peers

peers.INTERPRETER = Path(sys.argv[1])
sys.argv = ["benchmarks", "peers"]
main.main()
"""


def run(code: str, argument: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", code, str(argument)]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)


def test_the_peer_gets_every_offering_with_its_price(tmp_path: Path) -> None:
    path = tmp_path / "catalogs" / "aws" / "vms.csv"

    written = run(WRITE, path)

    assert written.returncode == 0, written.stderr
    offered = json.loads(written.stdout)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) * 2 == len(offered)
    for column, purchase in (("SpotPrice", "spot"), ("Price", "on-demand")):
        told = {(row["InstanceType"], row["AvailabilityZone"]): row[column] for row in rows}
        expected = {
            (name, zone): "" if price is None else str(price)
            for name, zone, option, price in offered
            if option == purchase
        }
        assert told == expected
    assert all(row["AvailabilityZone"].startswith(row["Region"]) for row in rows)


def test_without_the_peer_the_benchmark_says_what_to_run(tmp_path: Path) -> None:
    finished = run(WITHOUT_PEER, tmp_path / "python")

    assert finished.returncode == 1
    assert "SkyPilot is not installed: make bench-peers" in finished.stderr
