"""How far what is expected of a model is off what real trainings have shown on it, once others have been measured.

Throughputs of seven PyTorch trainings on one GPU, in FP16 and in FP32 (which Ampere and newer compute in TF32), as
Lambda measured and published them: github.com/lambdal/deeplearning-benchmark, pytorch/csv_v1_v2, commit aa5addb6. Peaks
are those of the makers' data sheets, dense. None of these figures has been used to choose what the product does.
"""

import csv
import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from benchmarks.tables import Cell, Table
from relaunch.core.definitions.accelerator import AcceleratorRequirement, Accelerators, GpuRequirement
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.peaks import Peaks
from relaunch.core.selection.requirements import derive_requirements
from relaunch.core.selection.speeds import Speed, SpeedBasis, speed_of

_FILE = Path(__file__).with_suffix(".csv")
_WIDTH = 0.1
"""How much slower and faster than its median a learned speed may be, of one or two jobs (core.selection.rates)."""


def _peaks(tensor: float, fp32: float, memory: float, *, has_bf16: bool = True) -> Peaks:
    return Peaks((tensor, tensor), (fp32, fp32), (memory, memory), has_bf16)


PEAKS: Mapping[str, Peaks] = {
    "Quadro RTX 8000": _peaks(130.5, 16.3, 672, has_bf16=False),
    "V100": _peaks(125, 15.7, 900, has_bf16=False),
    "A10": _peaks(125, 31.2, 600),
    "A100 40GB": _peaks(312, 19.5, 1555),
    "A100 80GB": _peaks(312, 19.5, 2039),
    "RTX A6000": _peaks(154.8, 38.7, 768),
    "RTX 6000 Ada": _peaks(364, 91.1, 960),
    "H100 PCIe": _peaks(756, 51.2, 2039),
    "H100": _peaks(989.4, 67, 3352),
    "B200": _peaks(2250, 75, 8000),
}


def compare(machine: InstanceType) -> Table:
    """Return how far the expected speed and the middle of its bounds are off, by how many models are known.

    The models are put into this machine, one by one.
    """
    rows: list[tuple[Cell, ...]] = []
    for count in (1, 2, 3):
        found = list(_errors(machine, count))
        expected = sum(abs(each) for each, _, _ in found) / len(found)
        bias = sum(each for each, _, _ in found) / len(found)
        middle = sum(abs(each) for _, each, _ in found) / len(found)
        inside = 100 * sum(each for _, _, each in found) / len(found)
        rows.append((count, len(found), *(_percent(each) for each in (expected, middle, bias)), inside))
    notes = ("Lambda's PyTorch trainings, seven in FP16 and in FP32, on ten models of GPU.",)
    columns = (
        "models known",
        "predictions",
        "expected, off by %",
        "middle of the bounds, off by %",
        "expected, on average % too fast",
        "within the bounds %",
    )
    return Table("Speeds of real trainings on models that they did not run on", columns, rows, notes)


def _percent(error: float) -> float:
    return 100 * (math.exp(error) - 1)


def _errors(machine: InstanceType, count: int) -> Iterator[tuple[float, float, bool]]:
    """Yield the logarithmic errors of what is expected and of the middle, and whether bounds hold the true speed."""
    gpu = AcceleratorRequirement(gpu=GpuRequirement(1))
    required = derive_requirements(JobDefinition("measured", "trainer", gpu), None)
    for row in _trainings():
        for known in itertools.combinations(PEAKS, count):
            unit = row[known[0]]
            learned = {Accelerators(each): _learned(row[each] / unit) for each in known}
            speed = speed_of(None, required, PEAKS, learned)
            for model in PEAKS.keys() - known:
                found = speed(replace(machine, accelerator_model=model))
                assert found is not None  # noqa: S101 - for the type checker: all have peaks
                true = row[model] / unit
                middle = math.sqrt(found.slow * found.fast)
                yield math.log(found.middle / true), math.log(middle / true), found.slow <= true <= found.fast


def _learned(speed: float) -> Speed:
    return Speed(speed * (1 - _WIDTH), speed * (1 + _WIDTH), SpeedBasis.LEARNED, 1, speed)


def _trainings() -> Iterator[Mapping[str, float]]:
    with _FILE.open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            yield {model: float(row[model]) for model in PEAKS}
