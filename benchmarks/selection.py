"""The time of a selection from all bundled offerings, the time to load the catalogue, and its memory.

Loading is measured in fresh processes and compared with one that imports only the same standard library modules.
"""

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial

from benchmarks.fresh_process import own_environment
from benchmarks.offering_tables import all_offerings
from benchmarks.session import Session
from benchmarks.tables import Table, median
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.selection.offering_filters import SelectionLimits
from relaunch.core.selection.offering_table import OfferingTable
from relaunch.core.selection.selection import Selection, explain_rows, select

BARE = "import json, dataclasses, pathlib, datetime, functools, types, collections.abc, enum"
LOAD = f"{BARE}\nfrom relaunch.adapters.offerings.bundled import load_catalogue\nload_catalogue()"
TIMED_LOAD = (
    f"{BARE}, time\nfrom relaunch.adapters.offerings.bundled import load_catalogue, load_on_demand_prices\n"
    "began = time.perf_counter()\nload_catalogue(); load_on_demand_prices()\n"
    "print((time.perf_counter() - began) * 1000)"
)
_HOLD = "import tracemalloc\ntracemalloc.start()\n{work}\nprint(tracemalloc.get_traced_memory()[0] / 1024)"
HELD = {
    "the catalogue: 97 types and their on-demand prices": f"{BARE}\nfrom relaunch.adapters.offerings import bundled\n"
    + _HOLD.format(work="bundled.load_catalogue(); bundled.load_on_demand_prices()"),
    "all offerings of all regions, read for selection": f"{BARE}\nfrom benchmarks.offering_tables import *\n"
    + _HOLD.format(work="offerings = all_offerings(); offerings.groups; offerings.machines"),
}


def measure(session: Session) -> list[Table]:
    """Measure selection in this process, and loading in fresh ones."""
    return [*_measure_selection(session.rounds * 20), *_measure_load(session.rounds)]


def _measure_selection(repeat: int) -> list[Table]:
    rows = [
        (label, len(offerings), *_time_selection(offerings, repeat, None))
        for label, offerings in (
            ("us-east-1", in_region(all_offerings(), "us-east-1")),
            ("all regions", all_offerings()),
        )
    ]
    own = machines_of_our_own(in_region(all_offerings(), "us-east-1"))
    rows.append(("machines of our own", len(own), *_time_selection(own, repeat, None)))
    a_day = timedelta(hours=24)
    rows.append(("the same, by cost", len(all_offerings()), *_time_selection(all_offerings(), repeat, a_day)))
    columns = ("offerings of", "offerings", "kept", "select ms", "all reasons ms", "rows ms", "read ms")
    notes = (
        "select: the best one. all reasons: every offering kept or rejected with its reason, in order. rows: the table",
        "that is stored and printed, made of that. read: once for offerings that do not change.",
    )
    return [Table(f"Choosing one GPU of 16 GiB, spot or on-demand; medians of {repeat}", columns, rows, notes)]


def _time_selection(
    offerings: OfferingTable, repeat: int, duration: timedelta | None
) -> tuple[int, float, float, float, float]:
    requirement = AcceleratorRequirement(gpu=GpuRequirement(1, 16 * 1024))
    definition = JobDefinition("bench", "trainer", requirement, estimated_duration=duration)
    now = datetime.now(UTC)
    limits = SelectionLimits()

    def choose() -> Selection:
        return select(definition, None, offerings, {}, now, limits)

    selection = choose()
    few = max(repeat // 10, 3)
    return (
        len(selection.kept),
        median_ms(lambda: choose().chosen, repeat),
        median_ms(lambda: choose().rejected, few),
        median_ms(partial(explain_rows, selection), few),
        median_ms(lambda: OfferingTable(offerings).groups, few),
    )


def in_region(offerings: OfferingTable, region: str) -> OfferingTable:
    """Return the offerings of one region."""
    return OfferingTable(offering for offering in offerings if (offering.zone or "").startswith(region))


def machines_of_our_own(offerings: OfferingTable) -> OfferingTable:
    """Return offerings of a region as machines that the stack starts by EC2 Fleet."""
    return OfferingTable(replace(offering, is_own_machine=True, disk_gib=100) for offering in offerings)


def _measure_load(repeat: int) -> list[Table]:
    bare = median_ms(lambda: fresh_process(BARE), repeat)
    load = median_ms(lambda: fresh_process(LOAD), repeat)
    inside = median(float(fresh_process(TIMED_LOAD)) for _ in range(repeat))
    rows = [
        ("fresh process, the same standard library only", bare, 1.0),
        ("fresh process, catalogue imported and loaded", load, load / bare),
        ("of which reading types and prices", inside, None),
    ]
    memory = [(what, float(fresh_process(code))) for what, code in HELD.items()]
    return [
        Table(f"Loading the catalogue; medians of {repeat}", ("case", "ms", "x bare"), rows),
        Table("What is held in memory (tracemalloc)", ("what", "KiB"), memory),
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
    """Run code in a fresh interpreter with our packages on its path; return its output."""
    command = [sys.executable, "-S", "-c", code]
    return subprocess.run(command, env=own_environment(), check=True, capture_output=True, text=True).stdout
