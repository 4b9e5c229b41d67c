"""`python -m policy thresholds|hazards|replay|returns`: make what the market policy rests on, and measure it on series.

`replay` runs jobs over a folder of series, or over drawn ones, and prints what each policy costs over the optimum;
`returns` runs jobs without a limit on their time, and prints what is saved of on-demand.
"""

import argparse
import json
import math
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from itertools import product
from multiprocessing import get_context
from pathlib import Path

from policy.comparison import compare
from policy.figures import Cell, Sample, difference, figures
from policy.gangs import draw_gangs
from policy.generator import draw_series, draw_zones
from policy.hazards import Hazards, count_hazards
from policy.replay import Job, Knowledge, start_ticks
from policy.series import Series, SeriesError, at_gap, read_series, side_by_side
from policy.threshold_file import make_thresholds, write_thresholds
from policy.without_limit import POLICIES, saved
from relaunch.adapters.market_thresholds import FILE
from relaunch.core.market.thresholds import OUTAGE_ENDS_PER_HOUR, SPELL_ENDS_PER_HOUR

_GAP_HOURS = 1 / 6
_SHARES = (0.6, 0.7, 0.8, 0.9)
_USUAL = (0.2, 3.145)
_OTHERS = ((0.05, 3.145), (0.5, 3.145), (0.2, 1.4))
# A machine boots and registers in about as long as the rest of a start takes: the image, the checkpoint, the program.
_OVERLAP = 0.5
_ALL = tuple((overhead, ratio) for overhead in (0.05, 0.2, 0.5) for ratio in (3.145, 1.4))
_DRAWN = {
    "2022-10": lambda: draw_series(Hazards(OUTAGE_ENDS_PER_HOUR, SPELL_ENDS_PER_HOUR)),
    "2023-02": draw_zones,
}


def main() -> int:
    """Run one of the programs; the exit code is 2 if the series cannot be used."""
    arguments = _parse()
    try:
        programs = {"hazards": _print_hazards, "thresholds": _make, "replay": _replay, "returns": _print_returns}
        return programs[arguments.program](arguments)
    except SeriesError as error:
        print(f"policy: {error}", file=sys.stderr)
        return 2


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m policy", description=__doc__)
    parser.add_argument("program", choices=("hazards", "thresholds", "replay", "returns"))
    parser.add_argument("--traces", type=Path, help="folder of series; default: published hazards, or drawn series")
    parser.add_argument("--drawn", choices=_DRAWN, default="2022-10", help="replay: which series are drawn")
    parser.add_argument("--to", type=Path, default=FILE, help="thresholds: file to write; default: the application's")
    parser.add_argument("--thresholds", type=Path, default=FILE, help="replay: those of cheapest")
    parser.add_argument(
        "--nodes",
        type=_count,
        default=1,
        metavar="N",
        help="as many machines at once, all or none: series are counts; without --traces replay draws some of 2023",
    )
    parser.add_argument("--json", action="store_true", dest="as_json", help="replay: print one document")
    parser.add_argument("--decisions", action="store_true", help="replay: with every decision and its tick, as JSON")
    parser.add_argument(
        "--pools", choices=("apart", "together"), default="apart", help="replay: one job, several pools"
    )
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="replay: draw two plots instead of tables")
    parser.add_argument("--starts", type=_count, default=40, metavar="N", help="replay: runs per series (40)")
    parser.add_argument("--all-cells", action="store_true", help="replay: every overhead with every price ratio")
    parser.add_argument(
        "--overlap",
        type=_share,
        metavar="SHARE",
        help="replay: for which share of its start a job that leaves on-demand works on there, in every table; "
        f"default: 0, as published, and four tables more with {_OVERLAP:g}",
    )
    parser.add_argument("--estimate", type=_positive, default=1.0, help="replay: the estimate, as a share of the work")
    parser.add_argument("--padding", type=_at_least_zero, default=0.0, help="replay: the padding of the estimate")
    parser.add_argument("--failing", type=_share, default=0.0, help="replay: share of on-demand starts that fail")
    parser.add_argument("--reserve", type=_at_least_zero, default=0.0, help="replay: hours kept for those that fail")
    return parser.parse_args()


def _number(expected: str, is_valid: Callable[[float], bool]) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not is_valid(number):
            raise argparse.ArgumentTypeError(f"{text!r} is not {expected}")
        return number

    return read


_share = _number("a share from 0 to 1", lambda number: 0 <= number <= 1)
_positive = _number("a number above 0", lambda number: 0 < number < math.inf)
_at_least_zero = _number("0 or more", lambda number: 0 <= number < math.inf)
_whole = _number("a whole number, 1 or more", lambda number: number >= 1 and number.is_integer())


def _count(text: str) -> int:
    return int(_whole(text))


def _print_hazards(arguments: argparse.Namespace) -> int:
    hazards, _ = _hazards(arguments.traces, arguments.nodes)
    print("outages end per hour ", *(f"{each:.2f}" for each in hazards.outage))
    print("spells end per hour  ", *(f"{each:.2f}" for each in hazards.spell))
    return 0


def _make(arguments: argparse.Namespace) -> int:
    thresholds = make_thresholds(*_hazards(arguments.traces, arguments.nodes), on_progress=partial(_show, "solving"))
    write_thresholds(thresholds, arguments.to)
    print(f"{arguments.to}: {len(thresholds.codes):,} thresholds, from {thresholds.source}")
    return 0


def _print_returns(arguments: argparse.Namespace) -> int:
    series = _series(arguments)
    print(f"{'':32}", *(f"{name:>22}" for name in POLICIES))
    for (overhead, ratio), work in product(_ALL, (12.0, 48.0)):
        job = Job(work, 2 * work, overhead, ratio, overhead * _OVERLAP)
        if not any(start_ticks(each, job, 1) for each in series):
            raise SeriesError(f"no series is as long as the {job.time:.1f} h that a job has")
        found = [saved(series, job, make, arguments.starts) for make in POLICIES.values()]
        shown = (f"{share:14.1%} in {starts:4.1f}" for share, starts in found)
        print(
            f"overhead {overhead:4.2f}, {ratio:5.3f}, work {work:4.0f}", *(f"{each:>22}" for each in shown), flush=True
        )
    return 0


def _replay(arguments: argparse.Namespace) -> int:
    series = _series(arguments)
    groups = [side_by_side(series)] if arguments.pools == "together" else [[each] for each in series]
    if arguments.plots:
        return _draw(arguments, groups)
    is_document = arguments.as_json or arguments.decisions
    cells = _cells(arguments)
    run = partial(compare, groups, arguments.thresholds, arguments.starts, has_decisions=arguments.decisions)
    with get_context("spawn").Pool() as pool:
        for number, (cell, samples) in enumerate(zip(cells, pool.imap(run, cells), strict=True)):
            if not samples:
                raise SeriesError(f"no series is as long as the {cell.job.time:.1f} h that a job has")
            if not is_document:
                _print_cell(cell, samples)
                continue
            # Cell by cell: with all decisions one cell is tens of megabytes.
            opening = ", " if number else f'{{"series": {json.dumps([each.name for each in series])}, "cells": ['
            print(opening, json.dumps(_document(cell, samples, has_decisions=arguments.decisions)), sep="", end="")
            if sys.stderr.isatty():
                _show("replaying", number + 1, len(cells))
    if is_document:
        print("]}")
    return 0


def _series(arguments: argparse.Namespace) -> list[Series]:
    if arguments.traces:
        return read_series(arguments.traces, arguments.nodes)
    return draw_gangs(arguments.nodes) if arguments.nodes > 1 else _DRAWN[arguments.drawn]()


def _draw(arguments: argparse.Namespace, groups: list[list[Series]]) -> int:
    from policy import plots  # matplotlib takes a second to import, and no other program needs it

    arguments.plots.mkdir(parents=True, exist_ok=True)
    cells = [Cell(_job(arguments, share, *_USUAL), Knowledge.TRIES) for share in plots.SHARES]
    run = partial(compare, groups, arguments.thresholds, arguments.starts)
    with get_context("spawn").Pool() as pool:
        samples = pool.map(run, cells, chunksize=1)
    if not all(samples):
        raise SeriesError(f"no series is as long as the {max(cell.job.time for cell in cells):.1f} h that a job has")
    costs = arguments.plots / "market-cost.svg"
    course = arguments.plots / "market-job.svg"
    plots.draw_costs(list(zip(cells, samples, strict=True)), costs)
    shown = plots.SHARES.index(plots.SHOWN_SHARE)
    plots.draw_course(groups, cells[shown], samples[shown], arguments.thresholds, course)
    print(f"{costs}\n{course}")
    return 0


def _cells(arguments: argparse.Namespace) -> list[Cell]:
    usual = [(share, *setting) for setting in (_ALL if arguments.all_cells else (_USUAL,)) for share in _SHARES]
    others = [] if arguments.all_cells else [(0.8, *setting) for setting in _OTHERS]
    jobs = [_job(arguments, *cell) for cell in (*usual, *others)]
    if arguments.overlap is None and not arguments.all_cells:
        jobs += [_job(arguments, share, *_USUAL, overlap=_OVERLAP) for share in _SHARES]
    return [Cell(job, knowledge) for knowledge in Knowledge for job in jobs]


def _job(arguments: argparse.Namespace, share: float, overhead: float, price_ratio: float, overlap: float = 0.0) -> Job:
    return Job(
        time=48.0 / share,
        overhead=overhead,
        price_ratio=price_ratio,
        overlap=overhead * (overlap if arguments.overlap is None else arguments.overlap),
        estimate=arguments.estimate,
        padding=arguments.padding,
        reserve=arguments.reserve,
        failing=arguments.failing,
        nodes=arguments.nodes,
    )


def _print_cell(cell: Cell, samples: list[Sample]) -> None:
    job = cell.job
    share = f"C/R {job.work / job.time:.1f}, overhead {job.overhead:g} h, price ratio {job.price_ratio:g}"
    overlap = f", overlap {job.overlap:g} h" if job.overlap else ""
    at_once = f", {job.nodes} at once" if job.nodes > 1 else ""
    print(f"\n{share}{overlap}{at_once}, {cell.knowledge}, {len(samples)} runs")
    print(f"{'policy':18}{'% over':>8}{'90 % interval':>16}{'median':>8}{'in time':>9}{'starts':>8}{'cost':>8}")
    for each in figures(samples):
        low, high = each.interval
        spread = f"{low:.1f} to {high:.1f}"
        figure = f"{each.policy:18}{each.over:8.1f}{spread:>16}{each.median:8.1f}"
        print(f"{figure}{each.met:9.1%}{each.starts:8.1f}{each.cost:8.2f}")
    points, (low, high) = difference(samples, "cheapest", "uniform-progress")
    print(f"cheapest less uniform-progress: {points:+.1f} points ({low:+.1f} to {high:+.1f})", flush=True)


def _document(cell: Cell, samples: list[Sample], *, has_decisions: bool) -> dict[str, object]:
    points, spread = difference(samples, "cheapest", "uniform-progress")
    document: dict[str, object] = {
        "job": asdict(cell.job),
        "knowledge": cell.knowledge.value,
        "runs": len(samples),
        "policies": [asdict(each) for each in figures(samples)],
        "cheapest_less_uniform_progress": {"points": points, "interval": spread},
    }
    if has_decisions:
        document["samples"] = [_sample_document(sample) for sample in samples]
    return document


def _sample_document(sample: Sample) -> dict[str, object]:
    return {
        "series": sample.block[0],
        "start": sample.start,
        "optimum": sample.optimum,
        "decisions": {
            title: [{"tick": each.tick, **asdict(each.choice)} for each in outcome.decided]
            for title, outcome in sample.outcomes.items()
        },
    }


def _hazards(folder: Path | None, nodes: int) -> tuple[Hazards, str]:
    if folder is None:
        return Hazards(OUTAGE_ENDS_PER_HOUR, SPELL_ENDS_PER_HOUR), "the hazards of relaunch.core.market.thresholds"
    series = at_gap(read_series(folder, nodes), _GAP_HOURS)
    return count_hazards(series), f"{len(series)} series: {', '.join(each.name for each in series)}"


def _show(what: str, done: int, of: int) -> None:
    print(f"\r{what} {done} of {of}", end="" if done < of else "\n", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
