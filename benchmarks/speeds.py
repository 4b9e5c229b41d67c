"""What a choice by unequal speeds costs over the best one, in a world whose speeds are known.

Each job spends shares of its time on tensor cores, on FP32 and on memory where it was measured. Elsewhere each share is
as much longer as the published peak is lower, times a factor of the job and the model that no peak explains. A model
without published peaks has drawn ones. The optimum is the cheapest by the true speeds, of what selection keeps.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

from benchmarks.learned_speeds import Learning
from benchmarks.offering_tables import all_offerings
from benchmarks.selection import in_region
from benchmarks.session import Session
from benchmarks.tables import Table, median
from relaunch.adapters.offerings.bundled import load_peaks
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, MeasuredOn
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.selection.expected_cost import cost_of
from relaunch.core.selection.offering_filters import SelectionLimits
from relaunch.core.selection.selection import select
from relaunch.core.selection.speeds import Speed, SpeedBasis

SEED = 20261128
DEFINITIONS = 200
_UNEXPLAINED = 0.15
"""The standard deviation of the logarithm of what no peak explains."""
_MEASUREMENT = 0.05
"""The same of a measured speed."""

Figures = tuple[float, float, float]


def measure(session: Session) -> list[Table]:
    """Draw definitions and compare choices with the best one."""
    definitions = min(DEFINITIONS, session.rounds * 20)
    dice = Random(SEED)  # noqa: S311 - the same definitions every time
    began = time.perf_counter()
    regrets: dict[str, list[float]] = {}
    learning = Learning()
    for number in range(definitions):
        for rule, regret in _one(dice, learning, SEED + number).items():
            regrets.setdefault(rule, []).append(regret)
    seconds = time.perf_counter() - began
    rows = [
        (rule, sum(each) / len(each), median(each), max(each), sum(one < 0.5 for one in each))
        for rule, each in regrets.items()
    ]
    notes = (
        f"{definitions} definitions of a GPU, seed {SEED}, us-east-1, {seconds:.0f} s. The last row is no part of the",
        "product: what would be chosen if every model had been measured once, each time wrong by some 5 %.",
    )
    columns = ("speeds", "mean %", "median %", "worst %", "best one chosen")
    return [Table("Cost to finish over that of the best choice", columns, rows, notes), *learning.tables()]


def _one(dice: Random, learning: Learning, seed: int) -> dict[str, float]:
    memory_gib = dice.choice((8, 16, 24, 40))
    gpu = GpuRequirement(1, memory_gib * 1024)
    bare = JobDefinition(
        "drawn",
        "trainer",
        AcceleratorRequirement(gpu=gpu),
        checkpoint_uri=dice.choice((None, "s3://a/b/")),
        estimated_duration=timedelta(hours=dice.choice((2, 6, 20, 40))),
    )
    limits = SelectionLimits(peaks=load_peaks())
    offerings = in_region(all_offerings(), "us-east-1")
    now = datetime.now(UTC)
    equal = select(bare, None, offerings, {}, now, limits)
    models = sorted({each.instance_type.accelerator_model for each in equal.kept} & limits.peaks.keys())
    on = dice.choice(models)
    measured = replace(bare, estimated_on=MeasuredOn(on))
    speeds = _true_speeds(dice, on, {each.instance_type.accelerator_model for each in equal.kept})
    assert equal.work is not None  # noqa: S101 - for the type checker: it has a duration
    truth = cost_of(replace(equal.work, speed_of=_points(speeds)))
    learned = cost_of(replace(equal.work, speed_of=_points(_with_errors(dice, speeds))))
    saving = cost_of(replace(equal.work, speed_of=_points(speeds), has_checkpoint=True))
    learning.run(measured, equal.kept, speeds, saving, seed)
    best = min(_usd(truth(each)) for each in equal.kept)
    chosen = {
        "all models equally fast": equal.chosen,
        "bounded by published peaks": select(measured, None, offerings, {}, now, limits).chosen,
        "every model measured (a bound)": min(equal.kept, key=lambda each: _usd(learned(each))),
    }
    return {rule: 100 * (_usd(truth(each)) / best - 1) for rule, each in chosen.items() if each is not None}


def _true_speeds(dice: Random, on: str, models: set[str]) -> Mapping[str, float]:
    """Return the true speed of a drawn job on each model, where `on` is 1."""
    shares = [dice.expovariate(1) for _ in range(3)]
    base = _figures(dice, on)
    speeds = {}
    for model in sorted(models):
        figures = _figures(dice, model)
        longer = sum(share * mine / theirs for share, mine, theirs in zip(shares, base, figures, strict=True))
        unexplained = 1.0 if model == on else math.exp(dice.gauss(0, _UNEXPLAINED))
        speeds[model] = sum(shares) / longer * unexplained
    return speeds


def _figures(dice: Random, model: str) -> Figures:
    peaks = load_peaks().get(model)
    if peaks is None:
        return (dice.uniform(65, 400), dice.uniform(8, 120), dice.uniform(300, 1600))
    tensor = peaks.tensor_tflops or peaks.fp32_tflops
    return sum(tensor) / 2, sum(peaks.fp32_tflops) / 2, sum(peaks.memory_gb_per_second) / 2


def _with_errors(dice: Random, speeds: Mapping[str, float]) -> Mapping[str, float]:
    return {model: speed * math.exp(dice.gauss(0, _MEASUREMENT)) for model, speed in speeds.items()}


def _points(speeds: Mapping[str, float]) -> Callable[[InstanceType], Speed]:
    def speed(machine: InstanceType) -> Speed:
        known = speeds[machine.accelerator_model]
        return Speed(known, known, SpeedBasis.MEASURED)

    return speed


def _usd(cost: float | None) -> float:
    return math.inf if cost is None else cost
