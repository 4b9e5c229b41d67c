"""What a training says about itself in the manifest of a checkpoint: checked, bounded, and not needed.

A value that is not what it should be is left out, and nothing else with it.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any, TypeVar

from relaunch.core.records import dataclass

MAX_METRICS = 50
"""How many metrics of a manifest are kept, by name; `loss` is none of them."""
MAX_POINTS = 1_000
"""How many points a series has at most; one that is full is thinned evenly."""
MOST_STEPS = 10**18
_LONGEST_SAVE = timedelta(days=1)
_Point = TypeVar("_Point")
_METRIC_NAME = r"[A-Za-z_][A-Za-z0-9_./-]{0,79}"
# 2000-01-01 and 2200-01-01: a clock that is further off says nothing.
_TIMES = (946_684_800, 7_258_118_400)


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """A step of a training, the second since 1970 in which it was done, and its loss if it has one."""

    step: int
    at: float
    loss: float | None = None


@dataclass(frozen=True, slots=True)
class Reported:
    """What a manifest says beside its objects; None and empty where it says nothing that can be used."""

    loss: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict, hash=False)
    total_steps: int | None = None
    save_seconds: float | None = None
    """How long the save stopped the training."""
    written_at: datetime | None = None
    """When, by the clock of the training's machine."""
    series: tuple[SeriesPoint, ...] = ()
    """Steps of the training until the checkpoint, those of earlier attempts that it goes on from included."""


def read_reported(manifest: Mapping[str, Any]) -> Reported:
    """Return what a manifest says beside its objects, whatever it is: no error is raised."""
    seconds = _number(manifest.get("save_seconds"))
    return Reported(
        loss=_number(manifest.get("loss")),
        metrics=_metrics(manifest.get("metrics")),
        total_steps=_steps(manifest.get("total_steps"), least=1),
        save_seconds=seconds if seconds is not None and 0 <= seconds <= _LONGEST_SAVE.total_seconds() else None,
        written_at=_time(manifest.get("saved_at")),
        series=thin(_points(manifest.get("series"))),
    )


def thin(points: Sequence[_Point], most: int = MAX_POINTS) -> tuple[_Point, ...]:
    """Return at most so many of the points, evenly spread, the first and the newest among them."""
    if len(points) <= most:
        return tuple(points)
    last = len(points) - 1
    return tuple(points[round(index * last / (most - 1))] for index in range(most))


def _metrics(given: Any) -> dict[str, float]:
    if not isinstance(given, dict):
        return {}
    # Not sorted before they are cut: a training puts first what it is about.
    numbers = ((name, _number(value)) for name, value in given.items() if re.fullmatch(_METRIC_NAME, name))
    known = [(name, number) for name, number in numbers if number is not None]
    return dict(known[:MAX_METRICS])


def _points(given: Any) -> list[SeriesPoint]:
    """Return the points that follow one another in step and time; one that does not is left out."""
    found: list[SeriesPoint] = []
    for each in given if isinstance(given, list) else ():
        point = _point(each)
        if point is not None and (not found or (point.step > found[-1].step and point.at >= found[-1].at)):
            found.append(point)
    return found


def _point(given: Any) -> SeriesPoint | None:
    if not isinstance(given, list) or len(given) != 3:
        return None
    step = _steps(given[0], least=0)
    at = _number(given[1])
    if step is None or at is None or not _TIMES[0] <= at <= _TIMES[1]:
        return None
    return SeriesPoint(step, at, _number(given[2]))


def _number(given: Any) -> float | None:
    """Return a finite number; None for anything else."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        return None
    try:
        number = float(given)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _steps(given: Any, *, least: int) -> int | None:
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= MOST_STEPS:
        return None
    return given


def _time(given: Any) -> datetime | None:
    """Return a time with its offset, None for anything else."""
    try:
        at = datetime.fromisoformat(given) if isinstance(given, str) else None
        is_near = at is not None and at.utcoffset() is not None and _TIMES[0] <= at.timestamp() <= _TIMES[1]
    except (ValueError, OverflowError):
        return None
    return at if is_near else None
