"""How often a training should save: what a save takes against what an interruption loses.

Source: J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", Future Generation
Computer Systems 22 (2006), which has J. W. Young, "A first order approximation to the optimum checkpoint interval",
Communications of the ACM 17 (1974), sqrt(2 δ M), as its first term. δ is the time of a save, M the mean time between
two interruptions of a Poisson process, τ the time of work between two saves.

A save on the warning is not counted on, as in core.selection.expected_cost: warnings are best effort. What a start
takes is lost however often a training saves, and is left out.
"""

import math
from datetime import timedelta

from relaunch.core.definitions.durations import write_minutes
from relaunch.core.records import dataclass

_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)
_MINUTE = timedelta(minutes=1)
# With more in one segment a training never finishes it; math.expm1 overflows above 709.
_MAX_EXPONENT = 50.0
# Less is not worth a change of a training.
_LEAST_GAIN = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class SaveTimes:
    """How long a save stopped a training, the usual time from one save to the next, and how often it is interrupted."""

    save: timedelta
    interval: timedelta
    interruptions_per_hour: float

    @property
    def between(self) -> timedelta:
        """Return the mean time between two interruptions."""
        return _HOUR / self.interruptions_per_hour


def best_work(save: timedelta, between: timedelta) -> timedelta:
    """Return the best time of work between two saves: τ of Daly's higher order model, M itself where δ is 2 M or more.

    With M = 24 h and δ = 5 min it is 117 min, with M = 15 min 9.1 min (figures 3 and 5 there).
    """
    if save >= 2 * between:
        return between
    ratio = save / (2 * between)
    young = math.sqrt(2 * (save / _HOUR) * (between / _HOUR)) * _HOUR
    return young * (1 + math.sqrt(ratio) / 3 + ratio / 9) - save


def lost_a_day(save: timedelta, work: timedelta, between: timedelta) -> timedelta:
    """Return the part of a day of running that saves take, and work that is done again.

    That is what Daly's complete cost function adds to the work: M (e^((τ + δ) / M) - 1) of time for each τ of it.
    """
    exponent = (work + save) / between
    if exponent > _MAX_EXPONENT or work <= timedelta(0):
        return _DAY
    return _DAY * (1 - (work / between) / math.expm1(exponent))


def advise(times: SaveTimes | None, usd_per_hour: float | None) -> str:
    """Return how often a training should save, and what its present interval costs; empty if that is not known.

    `usd_per_hour` is None if the price is not known. Where nothing interrupts it, there is nothing to say.
    """
    if times is None or times.interruptions_per_hour <= 0 or times.save <= timedelta(0):
        return ""
    work = times.interval - times.save
    if work <= timedelta(0):
        return ""
    best = best_work(times.save, times.between)
    now = lost_a_day(times.save, work, times.between)
    then = lost_a_day(times.save, best, times.between)
    saves = (
        f"it saves every {_rounded(times.interval)}, each save stops it for {times.save.total_seconds():.3g} s, and "
        f"{times.interruptions_per_hour:.2g} interruptions an hour are expected: that costs {_lost(now, usd_per_hour)}"
    )
    if now - then < _LEAST_GAIN:
        return f"{saves}; another interval would not save 10 minutes a day"
    return f"{saves}; every {_rounded(best + times.save)} would cost {_lost(then, usd_per_hour)} (Young, Daly)"


def _rounded(time: timedelta) -> str:
    return write_minutes(time) if time >= _MINUTE else f"{time.total_seconds():.0f} s"


def _lost(lost: timedelta, usd_per_hour: float | None) -> str:
    hours = lost / _HOUR
    usd = "" if usd_per_hour is None else f", ${hours * usd_per_hour:.2f},"
    return f"{hours:.1f} h{usd} of a day that it runs"
