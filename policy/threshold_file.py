"""The file of thresholds that the application reads: solved for a grid, coded, compressed."""

import base64
import json
import multiprocessing
import zlib
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path

from policy.dynamic_programme import TICK, solve
from policy.hazards import Hazards
from relaunch.core.market.thresholds import Ladder, Market, Thresholds, encode


@dataclass(frozen=True, slots=True)
class Grid:
    """What is solved for; `multiples` are those of outages' and of spells' ends."""

    overheads: Sequence[float] = (0.03, 0.1, 0.2, 0.5, 1.0, 2.0)
    price_ratios: Sequence[float] = (1.15, 1.4, 2.0, 3.145, 6.0)
    multiples: Sequence[float] = (0.25, 0.5, 1.0, 2.0, 4.0)
    work_left: Sequence[float] = (1.0, 3.0, 9.0, 24.0, 48.0)


WHOLE = Grid()
# A wait is worth no more than this share of the work, and so is the risk of another start.
_SLACK_HOURS = 30.0

Progress = Callable[[int, int], None]


def make_thresholds(
    hazards: Hazards,
    source: str,
    grid: Grid = WHOLE,
    on_progress: Progress = lambda _done, _of: None,
    processes: int | None = None,
) -> Thresholds:
    """Solve for every point of a grid, on all processors, or in some processes."""
    axes = (grid.overheads, grid.price_ratios, grid.multiples, grid.multiples)
    # The markets of one overhead and one price ratio are solved side by side.
    points = product(product(*axes[:2]), [list(product(*axes[2:]))])
    groups = [[Market(*first, *multiples) for multiples in all_multiples] for first, all_multiples in points]
    solved: list[list[bytes]] = []
    code = partial(code_markets, hazards, work_left=grid.work_left)
    with multiprocessing.get_context("spawn").Pool(processes) if processes != 1 else nullcontext() as pool:
        for done in pool.imap(code, groups) if pool else map(code, groups):
            solved.append(done)
            on_progress(len(solved), len(groups))
    codes = b"".join(by_ladder[ladder] for ladder in Ladder for by_ladder in solved)
    return Thresholds(*axes, grid.work_left, codes, source)


def code_markets(hazards: Hazards, markets: Sequence[Market], work_left: Sequence[float]) -> list[bytes]:
    """Return the codes of some points of a grid, all of one overhead, by ladder; see Thresholds for their order."""
    spare = solve(markets, hazards, max(work_left), _SLACK_HOURS)
    at_rows = spare[:, :, [round(hours / TICK) for hours in work_left]]
    return [bytes(encode(hours) for hours in at_rows[:, ladder].ravel().tolist()) for ladder in Ladder]


def write_thresholds(thresholds: Thresholds, file: Path) -> None:
    """Write thresholds to a file that relaunch.adapters.market_thresholds reads."""
    document = asdict(thresholds) | {"codes": base64.b64encode(zlib.compress(thresholds.codes, 9)).decode()}
    file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
