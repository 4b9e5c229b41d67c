"""How long selection takes: all bundled types by two purchase options by N zones, and loading the catalogue cold.

The load is measured in fresh processes, beside one that imports the same standard library modules and nothing else.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial

from benchmarks.session import Session
from benchmarks.tables import Table, median
from relaunch.adapters.catalogue import load_catalogue, load_on_demand_prices
from relaunch.core.accelerator import AcceleratorRequirement, GpuRequirement, PurchaseOption
from relaunch.core.definition import JobDefinition
from relaunch.core.offering import Offering
from relaunch.core.selection import select
from relaunch.core.selection_rows import explain_rows
from relaunch.core.terms import SelectionLimits
from relaunch_local.build import REPOSITORY

ZONES = (1, 6)
BARE = "import json, dataclasses, pathlib, datetime, functools, types, collections.abc, enum"
LOAD = f"{BARE}\nfrom relaunch.adapters.catalogue import load_catalogue\nload_catalogue()"
TIMED_LOAD = (
    f"{BARE}, time\nfrom relaunch.adapters.catalogue import load_catalogue, load_on_demand_prices\n"
    "began = time.perf_counter()\nload_catalogue(); load_on_demand_prices()\n"
    "print((time.perf_counter() - began) * 1000)"
)


def measure(session: Session) -> list[Table]:
    """Measure selection in this process, and the load in fresh ones."""
    return [_measure_selection(session.rounds * 4), _measure_load(session.rounds)]


def _measure_selection(repeat: int) -> Table:
    definition = JobDefinition("bench", "trainer", AcceleratorRequirement(gpu=GpuRequirement(1, 16 * 1024)))
    now, limits = datetime.now(UTC), SelectionLimits()
    rows = []
    for zones in ZONES:
        offerings = all_offerings(zones)
        choose = partial(select, definition, None, offerings, {}, now, limits)
        selection = choose()
        explained = median_ms(partial(explain_rows, selection), repeat)
        rows.append((zones, len(offerings), len(selection.kept), median_ms(choose, repeat), explained))
    columns = ("zones", "offerings", "kept", "select ms", "explain_rows ms")
    return Table(f"Choosing among all bundled types, spot and on-demand; medians of {repeat}", columns, rows)


def _measure_load(repeat: int) -> Table:
    bare = median_ms(lambda: fresh_process(BARE), repeat)
    load = median_ms(lambda: fresh_process(LOAD), repeat)
    inside = median(float(fresh_process(TIMED_LOAD)) for _ in range(repeat))
    rows = [
        ("fresh process, the same standard library only", bare, 1.0),
        ("fresh process, catalogue imported and loaded", load, load / bare),
        ("of which reading types and prices", inside, None),
    ]
    return Table(f"Loading the catalogue; medians of {repeat}", ("case", "ms", "x bare"), rows)


def all_offerings(zones: int) -> list[Offering]:
    """Offer every type in every zone, on demand and as spot at two fifths of that."""
    prices = load_on_demand_prices().usd_per_hour
    return [
        Offering(
            instance_type=machine,
            purchase=purchase,
            zone=f"us-east-1{chr(ord('a') + zone)}",
            price_usd_per_hour=on_demand * (0.4 if purchase is PurchaseOption.SPOT else 1.0),
            on_demand_usd_per_hour=on_demand,
        )
        for machine in load_catalogue().values()
        if (on_demand := prices.get(machine.name)) is not None
        for purchase in PurchaseOption
        for zone in range(zones)
    ]


def median_ms(work: Callable[[], object], repeat: int) -> float:
    """Return the median time of `work` in milliseconds, after one call to warm up."""
    work()
    times = []
    for _ in range(repeat):
        began = time.perf_counter()
        work()
        times.append((time.perf_counter() - began) * 1000)
    return median(times)


def fresh_process(code: str) -> str:
    """Run code in a fresh interpreter that finds our package; return what it printed."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "layers" / "relaunch")}
    return subprocess.run(
        [sys.executable, "-S", "-c", code], env=environment, check=True, capture_output=True, text=True
    ).stdout
