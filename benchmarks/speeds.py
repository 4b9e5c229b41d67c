"""What a choice by unequal speeds costs over the best one, in a world whose speeds are known.

Each job spends shares of its time on tensor cores, on FP32 and on memory where it was measured. Elsewhere each share is
as much longer as the published peak is lower, times a factor of the job and the model that no peak explains. A model
without published peaks has drawn ones. The optimum is the cheapest by the true speeds, of what selection keeps.

Tensor cores compute FP16 in that world. In another one half of the jobs compute BF16, which a T4 and a V100 have to do
on FP32.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

from benchmarks import measured_trainings
from benchmarks.learned_speeds import LEARNED, RULES, Learning
from benchmarks.offering_tables import all_offerings
from benchmarks.selection import in_region
from benchmarks.session import Session
from benchmarks.tables import Table, median
from relaunch.adapters.offerings.bundled import load_peaks
from relaunch.core.definitions.accelerator import AcceleratorRequirement, GpuRequirement, MeasuredOn, Precision
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.selection.expected_cost import cost_of
from relaunch.core.selection.offering_filters import SelectionLimits
from relaunch.core.selection.selection import select
from relaunch.core.selection.speeds import Speed, SpeedBasis

SEED = 20261128
_LEAST = 4
DEFINITIONS = 200
_UNBOUNDED = timedelta(days=365)
_UNEXPLAINED = 0.15
"""The standard deviation of the logarithm of what no peak explains."""
_MEASUREMENT = 0.05
"""The same of a measured speed."""

_SAID = ", with `precision`"

Figures = tuple[float, float, float]


def measure(session: Session, seed: int = SEED) -> list[Table]:
    """Draw definitions and compare choices with the best one."""
    # One round only shows that it runs.
    definitions = min(DEFINITIONS, session.rounds * 14) if session.rounds > 1 else _LEAST
    dice = Random(seed)  # noqa: S311 - the same definitions every time
    began = time.perf_counter()
    regrets: dict[str, list[float]] = {}
    learning = Learning()
    for number in range(definitions):
        for rule, regret in _one(dice, learning, seed + number).items():
            regrets.setdefault(rule, []).append(regret)
    seconds = time.perf_counter() - began
    rows = [
        (rule, sum(each) / len(each), median(each), max(each), sum(one < 0.5 for one in each))
        for rule, each in regrets.items()
    ]
    notes = (
        f"{definitions} definitions of a GPU, seed {seed}, us-east-1, {seconds:.0f} s. The last row is no part of the",
        "product: what would be chosen if every model had been measured once, each time wrong by some 5 %.",
    )
    columns = ("speeds", "mean %", "median %", "worst %", "best one chosen")
    cost = Table("Cost to finish over that of the best choice", columns, rows, notes)
    return [cost, *learning.tables(), measured_trainings.compare(all_offerings()[0].instance_type)]


def _one(dice: Random, learning: Learning, seed: int) -> dict[str, float]:
    memory_gib = dice.choice((8, 16, 24, 40))
    gpu = GpuRequirement(1, memory_gib * 1024)
    bare = JobDefinition(
        "drawn",
        "trainer",
        AcceleratorRequirement(gpu=gpu),
        checkpoint_uri=dice.choice((None, "s3://a/b/")),
        estimated_duration=timedelta(hours=dice.choice((2, 6, 20, 40))),
        max_runtime=_UNBOUNDED,
    )
    limits = SelectionLimits(peaks=load_peaks())
    offerings = in_region(all_offerings(), "us-east-1")
    now = datetime.now(UTC)
    equal = select(bare, None, offerings, {}, now, limits)
    models = sorted({each.instance_type.accelerator_model for each in equal.kept} & limits.peaks.keys())
    on = dice.choice(models)
    measured = replace(bare, estimated_on=MeasuredOn(on))
    drawn = _Drawn(dice, on, {each.instance_type.accelerator_model for each in equal.kept})
    speeds = drawn.speeds()
    assert equal.work is not None  # noqa: S101 - for the type checker: it has a duration
    truth = cost_of(replace(equal.work, speed_of=_points(speeds)))
    learned = cost_of(replace(equal.work, speed_of=_points(_with_errors(dice, speeds))))
    is_bf16 = seed % 2 == 0
    half = ", half of them in BF16"
    for name, said, true in (
        ("", None, speeds),
        (_SAID, Precision.FP16, speeds),
        (half, None, drawn.speeds(in_bf16=is_bf16)),
        (half + _SAID, Precision.BF16 if is_bf16 else Precision.FP16, drawn.speeds(in_bf16=is_bf16)),
    ):
        saving = cost_of(replace(equal.work, speed_of=_points(true), has_checkpoint=True))
        saying = replace(measured, precision=said)
        learning.run(saying, equal.kept, true, saving, seed, (LEARNED,) if name else RULES, name)
    best = min(_usd(truth(each)) for each in equal.kept)
    chosen = {
        "all models equally fast": equal.chosen,
        "bounded by published peaks": select(measured, None, offerings, {}, now, limits).chosen,
        "every model measured (a bound)": min(equal.kept, key=lambda each: _usd(learned(each))),
    }
    return {rule: 100 * (_usd(truth(each)) / best - 1) for rule, each in chosen.items() if each is not None}


class _Drawn:
    """A job whose shares are drawn, and what no peak explains; `on` is where its speed is 1."""

    def __init__(self, dice: Random, on: str, models: set[str]) -> None:
        self._on = on
        self._shares = [dice.expovariate(1) for _ in range(3)]
        self._base = _figures(dice, on)
        self._figures: dict[str, Figures] = {}
        self._unexplained: dict[str, float] = {}
        for model in sorted(models):
            self._figures[model] = _figures(dice, model)
            self._unexplained[model] = 1.0 if model == on else math.exp(dice.gauss(0, _UNEXPLAINED))

    def speeds(self, *, in_bf16: bool = False) -> Mapping[str, float]:
        """Return the true speed on each model."""
        base = _as_computed(self._on, self._base, in_bf16=in_bf16)
        speeds = {}
        for model, drawn in self._figures.items():
            figures = _as_computed(model, drawn, in_bf16=in_bf16)
            longer = sum(share * mine / theirs for share, mine, theirs in zip(self._shares, base, figures, strict=True))
            speeds[model] = sum(self._shares) / longer * self._unexplained[model]
        return speeds


def _as_computed(model: str, figures: Figures, *, in_bf16: bool) -> Figures:
    peaks = load_peaks().get(model)
    return (figures[1], *figures[1:]) if in_bf16 and peaks is not None and not peaks.has_bf16 else figures


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
