"""Series of the availability of spot pools, in the format of skypilot-org/spot-traces: counts of instances by tick."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path


class SeriesError(Exception):
    """A file is no series; the message says what is wrong and what is expected."""


@dataclass(frozen=True, slots=True)
class Series:
    """The availability of one pool, one value in `gap_hours`: whether enough instances could be launched at that tick.

    One is enough for a job, or as many as it has nodes.
    """

    name: str
    gap_hours: float
    available: tuple[bool, ...]


def read_series(folder: Path, nodes: int = 1) -> list[Series]:
    """Return the series of a folder for so many instances at once, one for each `*.json`, by name.

    Raises:
        SeriesError: there are none, one of them is none, or none of them ever has so many.
    """
    files = sorted(folder.glob("*.json")) if folder.is_dir() else []
    if not files:
        raise SeriesError(f'{folder} has no series: files like {{"metadata": {{"gap_seconds": 600}}, "data": [0, 1]}}')
    series = [_read(file, nodes) for file in files]
    if nodes > 1 and not any(any(each.available) for each in series):
        raise SeriesError(f"{folder}: no series ever has {nodes} instances at once: their `data` are to be counts")
    return series


def _read(file: Path, nodes: int) -> Series:
    try:
        content = json.loads(file.read_bytes())
        gap_seconds = content["metadata"]["gap_seconds"]
        data = content["data"]
    except (ValueError, KeyError, TypeError) as error:
        raise SeriesError(f"{file}: no series: it has no `metadata.gap_seconds` and `data` ({error!r})") from error
    if not isinstance(gap_seconds, int | float) or not gap_seconds > 0:
        raise SeriesError(f"{file}: `gap_seconds` must be a number above 0, not {gap_seconds!r}")
    if not isinstance(data, list) or len(data) < 2 or not all(_is_count(value) for value in data):
        raise SeriesError(f"{file}: `data` must list two counts of instances or more: 0 (none available), 1, 2…")
    return Series(file.stem, gap_seconds / 3600, tuple(value >= nodes if value else False for value in data))


def _is_count(value: object) -> bool:
    return isinstance(value, int | float) and value >= 0


def side_by_side(series: Sequence[Series]) -> list[Series]:
    """Return series of the pools of one job, for as long as all of them last.

    Raises:
        SeriesError: their gaps differ.
    """
    gaps = sorted({round(each.gap_hours * 3600, 3) for each in series})
    if len(gaps) > 1:
        raise SeriesError(f"pools together need series of one gap, not of {', '.join(f'{gap:g} s' for gap in gaps)}")
    shortest = min(len(each.available) for each in series)
    return [replace(each, available=each.available[:shortest]) for each in series]


def at_gap(series: Sequence[Series], gap_hours: float) -> list[Series]:
    """Return series at a longer gap, a multiple of their own: the pool is seen at every tick that is left."""
    return [
        Series(each.name, gap_hours, each.available[:: max(round(gap_hours / each.gap_hours), 1)]) for each in series
    ]
