"""How long selection takes: all bundled types by two purchase options by N zones, and loading the catalogue cold.

    python benchmarks/selection.py [--zones N] [--repeat N]

The load is measured in fresh processes, beside one that imports the same standard library modules and nothing else.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "layers" / "relaunch"))

from relaunch.adapters.catalogue import load_catalogue, load_on_demand_prices
from relaunch.core.accelerator import AcceleratorRequirement, GpuRequirement, PurchaseOption
from relaunch.core.definition import JobDefinition
from relaunch.core.offering import Offering
from relaunch.core.selection import explain_rows, select
from relaunch.core.terms import SelectionLimits

BARE = "import json, dataclasses, pathlib, datetime, functools, types, collections.abc, enum"
LOAD = f"{BARE}\nfrom relaunch.adapters.catalogue import load_catalogue\nload_catalogue()"
TIMED_LOAD = (
    f"{BARE}, time\nfrom relaunch.adapters.catalogue import load_catalogue, load_on_demand_prices\n"
    "began = time.perf_counter()\nload_catalogue(); load_on_demand_prices()\n"
    "print((time.perf_counter() - began) * 1000)"
)


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
    return statistics.median(times)


def fresh_process(code: str) -> str:
    """Run code in a fresh interpreter that finds our package; return what it printed."""
    environment = {**os.environ, "PYTHONPATH": sys.path[0]}
    return subprocess.run(
        [sys.executable, "-S", "-c", code], env=environment, check=True, capture_output=True, text=True
    ).stdout


def timed(code: str) -> float:
    """Return how long a fresh process takes to run code, in milliseconds."""
    began = time.perf_counter()
    fresh_process(code)
    return (time.perf_counter() - began) * 1000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time selection and the loading of the catalogue.")
    parser.add_argument("--zones", type=int, default=6)
    parser.add_argument("--repeat", type=int, default=50)
    options = parser.parse_args()

    definition = JobDefinition("bench", "trainer", AcceleratorRequirement(gpu=GpuRequirement(1, 16 * 1024)))
    now = datetime.now(UTC)
    for zones in sorted({1, options.zones}):
        offerings = all_offerings(zones)
        selection = select(definition, None, offerings, {}, now, SelectionLimits())
        choose = median_ms(lambda: select(definition, None, offerings, {}, now, SelectionLimits()), options.repeat)  # noqa: B023 - called at once
        explain = median_ms(lambda: explain_rows(selection), options.repeat)  # noqa: B023 - called at once
        print(f"select, {len(offerings):5} offerings ({zones} zones), {len(selection.kept)} kept: {choose:7.3f} ms")
        print(f"explain_rows of the same:                        {explain:7.3f} ms")
    runs = [(timed(BARE), timed(LOAD), float(fresh_process(TIMED_LOAD))) for _ in range(21)]
    bare, load, inside = (statistics.median(column) for column in zip(*runs, strict=True))
    print(f"fresh process, bare interpreter:                 {bare:7.1f} ms")
    print(f"fresh process, catalogue imported and loaded:    {load:7.1f} ms")
    print(f"of which reading types and prices:               {inside:7.2f} ms")


if __name__ == "__main__":
    main()
