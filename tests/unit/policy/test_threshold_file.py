from itertools import pairwise
from pathlib import Path

import numpy as np

from policy.dynamic_programme import TICK, solve
from policy.hazards import Hazards
from policy.threshold_file import WHOLE, Grid, code_markets, make_thresholds, write_thresholds
from relaunch.adapters.market_thresholds import load_thresholds, read_thresholds
from relaunch.core.market.thresholds import (
    AGE_EDGES,
    OUTAGE_ENDS_PER_HOUR,
    SPELL_ENDS_PER_HOUR,
    Ladder,
    Market,
    Thresholds,
)

HAZARDS = Hazards(OUTAGE_ENDS_PER_HOUR, SPELL_ENDS_PER_HOUR)
MARKET = Market(0.2, 3.145)


def test_the_bundled_thresholds_are_those_of_the_programme():
    bundled, short = load_thresholds(), WHOLE.work_left[:2]

    remade = code_markets(HAZARDS, [MARKET], short)

    axes = (WHOLE.overheads, WHOLE.price_ratios, WHOLE.multiples, WHOLE.multiples)
    assert (bundled.overheads, bundled.work_left) == (list(WHOLE.overheads), list(WHOLE.work_left))
    place = 0
    for axis, value in zip(axes, (0.2, 3.145, 1.0, 1.0), strict=True):
        place = place * len(axis) + axis.index(value)
    size, points = len(WHOLE.work_left) * len(AGE_EDGES), len(bundled.codes) // len(Ladder)
    for ladder in Ladder:
        start = ladder * points + place * size
        # A rounding of the last digit may move a threshold by a tick of slack, which is a few codes.
        found = np.frombuffer(bundled.codes[start : start + len(short) * len(AGE_EDGES)], np.uint8).astype(int)
        assert np.abs(found - np.frombuffer(remade[ladder], np.uint8)).max() <= 12


def test_ladders_descend_with_the_age_of_a_spell_and_of_a_refusal():
    spare = solve([MARKET], HAZARDS, 24.0, 12.0)[0, :, round(24.0 / TICK)]

    for ladder in (Ladder.BACK, Ladder.TRY):
        assert all(earlier >= later for earlier, later in pairwise(spare[ladder]))
    assert spare[Ladder.WAIT, 0] < spare[Ladder.WAIT, 4]
    # What has just refused is not tried.
    assert np.isinf(spare[Ladder.TRY, 0])


def test_a_file_is_read_as_it_was_written(tmp_path: Path):
    grid = Grid(overheads=(0.2,), price_ratios=(3.0,), multiples=(1.0,), work_left=(1.0,))
    made = make_thresholds(HAZARDS, "a test", grid, processes=1)
    file = tmp_path / "thresholds.json"

    write_thresholds(made, file)
    read = read_thresholds(file)

    assert isinstance(read, Thresholds)
    assert (read.codes, read.source, read.work_left) == (made.codes, "a test", [1.0])
    assert len(made.codes) == len(Ladder) * len(AGE_EDGES)
