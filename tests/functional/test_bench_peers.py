"""The table that a peer is asked about is the one that selection chooses from."""

import csv
import sys
from pathlib import Path

import pytest

from benchmarks import peers
from benchmarks.__main__ import main
from benchmarks.offering_tables import all_offerings
from relaunch.core.definitions.accelerator import PurchaseOption


def test_the_peer_gets_every_offering_with_its_price(tmp_path: Path) -> None:
    path = tmp_path / "catalogs" / "aws" / "vms.csv"
    offered = all_offerings()

    peers.write_catalogue(path, offered)

    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) * 2 == len(offered)
    for column, purchase in (("SpotPrice", PurchaseOption.SPOT), ("Price", PurchaseOption.ON_DEMAND)):
        told = {(row["InstanceType"], row["AvailabilityZone"]): row[column] for row in rows}
        prices = {
            (each.instance_type.name, each.zone): each.price_usd_per_hour
            for each in offered
            if each.purchase is purchase
        }
        assert told == {place: "" if price is None else str(price) for place, price in prices.items()}
    assert all(row["AvailabilityZone"].startswith(row["Region"]) for row in rows)


def test_without_the_peer_the_benchmark_says_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "INTERPRETER", tmp_path / "python")
    monkeypatch.setattr(sys, "argv", ["benchmarks", "peers"])

    with pytest.raises(SystemExit, match="SkyPilot is not installed: make bench-peers"):
        main()
