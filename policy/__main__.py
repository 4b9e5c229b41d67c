"""`python -m policy thresholds|hazards`: make what the market policy rests on, from a folder of series."""

import argparse
import sys
from pathlib import Path

from policy.hazards import Hazards, count_hazards
from policy.series import SeriesError, at_gap, read_series
from policy.threshold_file import make_thresholds, write_thresholds
from relaunch.adapters.market_thresholds import FILE
from relaunch.core.market.hazards import OUTAGE_ENDS_PER_HOUR, SPELL_ENDS_PER_HOUR

_GAP_HOURS = 1 / 6


def main() -> int:
    """Run one of the programs; the exit code is 2 if the series cannot be used."""
    parser = argparse.ArgumentParser(prog="python -m policy", description=__doc__)
    parser.add_argument("program", choices=("hazards", "thresholds"))
    parser.add_argument("--traces", type=Path, help="folder of series; default: the published hazards")
    parser.add_argument("--to", type=Path, default=FILE, help="file of the thresholds; default: the application's")
    arguments = parser.parse_args()
    try:
        hazards, source = _hazards(arguments.traces)
    except SeriesError as error:
        print(f"policy: {error}", file=sys.stderr)
        return 2
    if arguments.program == "hazards":
        print("outages end per hour ", *(f"{each:.2f}" for each in hazards.outage))
        print("spells end per hour  ", *(f"{each:.2f}" for each in hazards.spell))
        return 0
    thresholds = make_thresholds(hazards, source, on_progress=_show)
    print(file=sys.stderr)
    write_thresholds(thresholds, arguments.to)
    print(f"{arguments.to}: {len(thresholds.codes):,} thresholds, from {source}")
    return 0


def _hazards(folder: Path | None) -> tuple[Hazards, str]:
    if folder is None:
        return Hazards(OUTAGE_ENDS_PER_HOUR, SPELL_ENDS_PER_HOUR), "the hazards of relaunch.core.market.hazards"
    series = at_gap(read_series(folder), _GAP_HOURS)
    return count_hazards(series), f"{len(series)} series: {', '.join(each.name for each in series)}"


def _show(done: int, of: int) -> None:
    print(f"\rsolving {done} of {of}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
