"""How fast a job is on accelerators that nobody measured it on, compared with those that somebody did.

By the roofline model (Williams, Waterman and Patterson, "Roofline: An Insightful Visual Performance Model for Multicore
Architectures", 2009) a program is limited by the throughput of arithmetic or by the bandwidth of the memory. A job that
is limited by one of them on both models is faster by the ratio of that one, and a mixture by something between: the
least and the largest of the ratios are the ends of the interval. It is a bound on what peaks explain, and no proof:

- Peaks are not reached, and by some models, libraries and kernels less than by others: BF16 on what has no tensor cores
  for it may be slower than FP32.
- Loading data, the CPU, the network between GPUs and the memory that a batch fits into are not in them.
- Several accelerators are taken to be between no gain and as many times faster as they are more.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum

from relaunch.core.definitions.accelerator import MeasuredOn
from relaunch.core.offerings.instance_types import InstanceType
from relaunch.core.offerings.peaks import Peaks
from relaunch.core.records import dataclass
from relaunch.core.selection.neuron_devices import claims_all_devices, required_devices, requires_neuron
from relaunch.core.selection.requirements import Requirements


class SpeedBasis(StrEnum):
    """What a speed rests on."""

    ASSUMED = "assumed"
    """Nobody said where the duration was measured: all are taken to be equally fast."""
    MEASURED = "measured"
    """The duration was measured on just this."""
    PEAKS = "peaks"
    """It is bounded by published peaks."""


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast a job is, in multiples of its speed where it was measured: between `slow` and `fast`."""

    slow: float
    fast: float
    basis: SpeedBasis


@dataclass(frozen=True, slots=True)
class Accelerators:
    """What a job computes on: `count` accelerators of a model, and which `fraction` of each."""

    model: str
    count: int = 1
    fraction: float = 1.0

    def __str__(self) -> str:
        """Return `A10G`, `4x A10G` or `25% of L4`."""
        if self.fraction != 1:
            return f"{self.fraction:.0%} of {self.model}"
        return self.model if self.count == 1 else f"{self.count}x {self.model}"


SpeedOf = Callable[[InstanceType], Speed | None]

_ASSUMED = Speed(1.0, 1.0, SpeedBasis.ASSUMED)


def same_speed(machine: InstanceType) -> Speed:
    """Return that a job is as fast as anywhere."""
    del machine
    return _ASSUMED


def speed_of(measured: MeasuredOn, required: Requirements, peaks: Mapping[str, Peaks]) -> SpeedOf:
    """Return a function from an instance type to the speed of the job there; None if its peaks are not known."""

    def speed(machine: InstanceType) -> Speed | None:
        on = replace(_asked(required, machine), model=measured.model)
        if measured.count is not None:
            on = Accelerators(measured.model, measured.count)
        return relative_speed(used_accelerators(required, machine), on, peaks)

    return speed


def _asked(required: Requirements, machine: InstanceType) -> Accelerators:
    """Return what a job asks for: one accelerator if it does not say."""
    model = machine.accelerator_model
    if requires_neuron(required):
        return Accelerators(model, required_devices(required, machine))
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
