"""The page of the use cases and effects that the simulation enters.

`make simulated-areas` runs the default seeds and writes it.
"""

from collections.abc import Iterable, Iterator

from relaunch_local.simulation.checks.areas import LEAST_DISTURBED, WHY_NOT_ENTERED, AreaCounts, effects, use_cases


def render_page(areas: AreaCounts, seeds: int) -> str:
    """Return the page for the counts of so many seeds."""
    return "\n".join(_lines(areas, seeds))


def _lines(areas: AreaCounts, seeds: int) -> Iterator[str]:
    yield "# What the simulation enters\n"
    yield "Written by `make simulated-areas`. [simulation.md](simulation.md) says what a seed is.\n"
    yield (
        f"Of {seeds:,} seeds: in how many each use case (a public function of `relaunch.usecases`) and each effect "
        "occurred, and in how many a fault of the same function came after it began and before it returned: a call "
        "that failed or was answered late, a stall, a time-out, the end of the process. `make simulate` fails if one "
        f"occurs in fewer than 1 % of the seeds, or with a fault in fewer than {LEAST_DISTURBED}. What makes no call "
        "has no steps for a fault to come between: `no call`.\n"
    )
    yield from _section("Use cases", "use case", (_row(name, areas, seeds) for name in use_cases()))
    yield from _section("Effects", "effect", (_row(name, areas, seeds) for name in effects()))


def _section(title: str, head: str, rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield f"## {title}\n"
    yield f"| {head} | seeds | share | with a fault between its steps |"
    yield "|---|---|---|---|"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def _row(name: str, areas: AreaCounts, seeds: int) -> tuple[str, ...]:
    if name in WHY_NOT_ENTERED:
        return f"`{name}`", "", "", WHY_NOT_ENTERED[name]
    entered = areas.entered[name]
    share = f"{100 * entered / seeds:.1f} %" if seeds else ""
    return f"`{name}`", f"{entered:,}", share, f"{areas.disturbed[name]:,}" if areas.stepped[name] else "no call"
