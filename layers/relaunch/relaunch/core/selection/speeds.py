"""How fast a job is on accelerators: as its own jobs have shown, or compared with others on which it is known.

By the roofline model (Williams, Waterman and Patterson, "Roofline: An Insightful Visual Performance Model for Multicore
Architectures", 2009) a program is limited by the throughput of arithmetic or by the bandwidth of the memory. A job that
is limited by one of them on both models is faster by the ratio of that one, and a mixture by something between: the
least and the largest of the ratios are the ends of the interval. It is a bound on what peaks explain, and no proof:

- Peaks are not reached, and by some models, libraries and kernels less than by others: BF16 on what has no tensor cores
  for it may be slower than FP32.
- Loading data, the CPU, the network between GPUs and the memory that a batch fits into are not in them.
- Several accelerators are taken to be between no gain and as many times faster as they are more.

What checkpoints of jobs have shown (core.selection.rates) goes before all of that, and others are compared with it.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from types import MappingProxyType

from relaunch.core.definitions.accelerator import Accelerators, MeasuredOn
from relaunch.core.definitions.definition import JobDefinition
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.peaks import Peaks
from relaunch.core.records import dataclass
from relaunch.core.revisions.revision import Revision
from relaunch.core.selection.neuron_devices import claims_all_devices, required_devices, requires_neuron
from relaunch.core.selection.requirements import Requirements, derive_requirements


class SpeedBasis(StrEnum):
    """What a speed rests on."""

    ASSUMED = "assumed"
    """Nobody said where the duration was measured: all are taken to be equally fast."""
    MEASURED = "measured"
    """The duration was measured on just this."""
    LEARNED = "learned"
    """Checkpoints of jobs have shown it."""
    PEAKS = "peaks"
    """It is bounded by published peaks, beside a speed that was measured or learned."""


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast a job is, in multiples of its speed where it was measured: between `slow` and `fast`.

    `jobs` is by how many jobs that was learned, or what it is compared with; `median` is theirs, and `save_seconds` the
    time that a save takes there, None without them.
    """

    slow: float
    fast: float
    basis: SpeedBasis
    jobs: int = 0
    median: float | None = None
    save_seconds: float | None = None

    @property
    def middle(self) -> float:
        """Return what is to be expected: the median, or else the middle of the interval, as ratios have it."""
        return math.sqrt(self.slow * self.fast) if self.median is None else self.median


@dataclass(frozen=True, slots=True)
class LearnedRate:
    """The steps per second of a definition on its accelerators, by the checkpoints of `jobs` jobs.

    A tenth of them were slower than `slow` and a tenth faster than `fast`, with a tenth more on both sides of few jobs
    (core.selection.rates). `save_seconds` is what a save takes, None if none said so.
    """

    slow: float
    middle: float
    fast: float
    jobs: int
    save_seconds: float | None = None


Rates = Mapping[Accelerators, LearnedRate]
NO_RATES: Rates = MappingProxyType({})


SpeedOf = Callable[[InstanceType], Speed | None]

_ASSUMED = Speed(1.0, 1.0, SpeedBasis.ASSUMED)


def same_speed(machine: InstanceType) -> Speed:
    """Return that a job is as fast as anywhere."""
    del machine
    return _ASSUMED


NO_SPEEDS: Mapping[Accelerators, Speed] = MappingProxyType({})


def speed_of(
    measured: MeasuredOn | None,
    required: Requirements,
    peaks: Mapping[str, Peaks],
    learned: Mapping[Accelerators, Speed] = NO_SPEEDS,
) -> SpeedOf:
    """Return a function from an instance type to the speed of the job there; None if its peaks are not known.

    Where the duration was `measured`, the speed is 1, unless jobs have shown that it cannot be.
    """

    def speed(machine: InstanceType) -> Speed | None:
        known = dict(learned)
        if measured is not None:
            on = _measured_on(measured, required, machine)
            shown = compared_speed(on, learned, peaks)
            if shown is None or shown.slow <= 1 <= shown.fast:
                known.setdefault(on, Speed(1.0, 1.0, SpeedBasis.MEASURED))
        return compared_speed(used_accelerators(required, machine), known, peaks)

    return speed


def _measured_on(measured: MeasuredOn, required: Requirements, machine: InstanceType) -> Accelerators:
    if measured.count is not None:
        return Accelerators(measured.model, measured.count)
    return replace(_asked(required, machine), model=measured.model)


def measured_gpus(measured: MeasuredOn | None, required: Requirements) -> Accelerators | None:
    """Return the GPUs on which a duration was measured; None if it says none, or devices that depend on the machine."""
    if measured is None or requires_neuron(required):
        return None
    if measured.count is not None:
        return Accelerators(measured.model, measured.count)
    return _asked_gpus(required, measured.model)


def compared_speed(used: Accelerators, known: Mapping[Accelerators, Speed], peaks: Mapping[str, Peaks]) -> Speed | None:
    """Return the speed on accelerators by what is known; None if there is nothing to compare them with.

    Of several that they are compared with the one counts that leaves the least open.
    """
    if used in known:
        return known[used]
    compared = (_beside(speed, relative_speed(used, each, peaks)) for each, speed in known.items())
    found = [each for each in compared if each is not None]
    return min(found, key=lambda each: (each.fast / each.slow, -each.jobs), default=None)


def _beside(known: Speed, ratio: Speed | None) -> Speed | None:
    if ratio is None:
        return None
    return Speed(known.slow * ratio.slow, known.fast * ratio.fast, SpeedBasis.PEAKS, known.jobs)


def learned_speeds(
    rates: Rates,
    steps_per_second: float | None,
    on: Accelerators | None,
    peaks: Mapping[str, Peaks],
) -> Mapping[Accelerators, Speed]:
    """Return the speeds by the steps per second that jobs have shown, in multiples of the one that a duration says.

    Where it says none, because nobody knows how many steps there are, they are compared with those on the accelerators
    that it was measured `on`, or else of those that most jobs have shown, whose speed peaks bound.
    """
    if steps_per_second is not None:
        return {each: _as_speed(rate, 1 / steps_per_second, 1 / steps_per_second) for each, rate in rates.items()}
    if on is None or not rates:
        return NO_SPEEDS
    base = on if on in rates else best_known(rates)
    at_base = relative_speed(base, on, peaks)
    if at_base is None:
        return NO_SPEEDS
    unit = rates[base].middle
    return {each: _as_speed(rate, at_base.slow / unit, at_base.fast / unit) for each, rate in rates.items()}


def best_known(rates: Rates) -> Accelerators:
    """Return the accelerators that most jobs have shown the rate of."""
    return max(rates, key=lambda each: (rates[each].jobs, each.key))


def _as_speed(rate: LearnedRate, slow: float, fast: float) -> Speed:
    median = rate.middle * math.sqrt(slow * fast)
    return Speed(rate.slow * slow, rate.fast * fast, SpeedBasis.LEARNED, rate.jobs, median, rate.save_seconds)


def _asked(required: Requirements, machine: InstanceType) -> Accelerators:
    """Return what a job asks for: one accelerator if it does not say."""
    model = machine.accelerator_model
    if requires_neuron(required):
        return Accelerators(model, required_devices(required, machine))
    return _asked_gpus(required, model)


def _asked_gpus(required: Requirements, model: str) -> Accelerators:
    if (share := required.share) is not None:
        return Accelerators(model, fraction=share.partition or share.compute_percent / 100 or 1.0)
    return Accelerators(model, required.gpu_count or 1)


def used_accelerators(required: Requirements, machine: InstanceType) -> Accelerators:
    """Return what a job gets of a machine: what it asks for, and all of the machine if it asks for nothing.

    Of Neuron devices it gets one or all (core.selection.neuron_devices), and of a GPU that is divided its part.
    """
    asked = _asked(required, machine)
    if requires_neuron(required):
        return replace(asked, count=machine.neuron_devices if claims_all_devices(required, machine) else 1)
    if machine.is_fractional:
        return replace(asked, fraction=machine.gpu_partition_size)
    if required.share is not None or required.gpu_count:
        return asked
    return replace(asked, count=max(machine.accelerator_count, 1))


def name_alone(definition: JobDefinition, revision: Revision | None, machine: InstanceType) -> str:
    """Return the key of what a job computes on, if its steps say how fast that is; else empty.

    What shares a GPU that is not divided is as fast as its neighbours let it be.
    """
    required = derive_requirements(definition, revision)
    is_shared = required.share is not None and not machine.is_fractional
    return "" if is_shared or not machine.accelerator_model else used_accelerators(required, machine).key


def relative_speed(used: Accelerators, measured: Accelerators, peaks: Mapping[str, Peaks]) -> Speed | None:
    """Return the speed on accelerators, relative to where it was measured; None if the peaks of either are not known.

    It is exactly 1 on the same model, count and fraction.
    """
    if used == measured:
        return Speed(1.0, 1.0, SpeedBasis.MEASURED)
    ratios = (1.0, 1.0) if used.model == measured.model else _ratios(peaks.get(used.model), peaks.get(measured.model))
    if ratios is None:
        return None
    share = used.fraction / measured.fraction
    more = used.count / measured.count
    return Speed(ratios[0] * share * min(more, 1.0), ratios[1] * share * max(more, 1.0), SpeedBasis.PEAKS)


def _ratios(used: Peaks | None, measured: Peaks | None) -> tuple[float, float] | None:
    if used is None or measured is None:
        return None
    pairs = (
        (used.fp16_tflops, measured.fp16_tflops),
        # Whether a job computes FP16 or BF16 is not known. Of TF32 the ratio is between this one and that of FP32, for
        # tensor cores that have both compute TF32 no faster than BF16.
        (used.bf16_tflops, measured.bf16_tflops),
        (used.fp32_tflops, measured.fp32_tflops),
        (used.memory_gb_per_second, measured.memory_gb_per_second),
    )
    slow = min(mine[0] / theirs[1] for mine, theirs in pairs)
    fast = max(mine[1] / theirs[0] for mine, theirs in pairs)
    return slow, fast
