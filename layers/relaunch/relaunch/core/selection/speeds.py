"""How fast a job is on accelerators: as its own jobs have shown, or compared with others on which it is known.

By the roofline model (Williams, Waterman and Patterson, "Roofline: An Insightful Visual Performance Model for Multicore
Architectures", 2009) a program is limited by the throughput of arithmetic or by the bandwidth of the memory. A job that
is limited by one of them on both models is faster by the ratio of that one, and a mixture by something between: the
least and the largest of the ratios are the ends of the interval. It is a bound on what peaks explain, and no proof:

- Peaks are not reached, and by some models, libraries and kernels less than by others: BF16 on what has no tensor cores
  for it may be slower than FP32.
- Loading data, the CPU, the network between GPUs and the memory that a batch fits into are not in them.
- Several accelerators are taken to be between no gain and as many times faster as they are more.

What checkpoints of jobs have shown (core.selection.rates) goes before all of that, and others are compared with it:
what several accelerators have shown says what limits a job, and so what is to be expected of others (`_Mixtures`).
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from itertools import accumulate
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

    `jobs` is by how many jobs that was learned, or what it is compared with. `expected` is the median of theirs, or
    what is to be expected beside them (`_Mixtures`), None if nothing is known but the ends. `save_seconds` is the time
    that a save takes there, None without jobs.
    """

    slow: float
    fast: float
    basis: SpeedBasis
    jobs: int = 0
    expected: float | None = None
    save_seconds: float | None = None

    @property
    def middle(self) -> float:
        """Return what is to be expected: the middle of the interval, as ratios have it, where nothing else says it."""
        return math.sqrt(self.slow * self.fast) if self.expected is None else self.expected


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
    mixtures: dict[Accelerators | None, _Mixtures] = {}

    def known_beside(on: Accelerators | None) -> _Mixtures:
        known = dict(learned)
        if on is not None:
            shown = compared_speed(on, learned, peaks)
            if shown is None or shown.slow <= 1 <= shown.fast:
                known.setdefault(on, Speed(1.0, 1.0, SpeedBasis.MEASURED))
        return _Mixtures(known, peaks)

    def speed(machine: InstanceType) -> Speed | None:
        on = None if measured is None else _measured_on(measured, required, machine)
        if on not in mixtures:
            mixtures[on] = known_beside(on)
        return mixtures[on].speed_on(used_accelerators(required, machine))

    return speed


_SIXTHS = 6
"""In how many parts the time is divided: steps of a tenth say no more, as peaks explain no speed that exactly."""
_SHARES = tuple(
    (tensor / _SIXTHS, fp32 / _SIXTHS, (_SIXTHS - tensor - fp32) / _SIXTHS)
    for tensor in range(_SIXTHS + 1)
    for fp32 in range(_SIXTHS + 1 - tensor)
)
_UNEXPLAINED = 0.2
"""The standard deviation of the logarithm of a speed beside what peaks explain: a fifth more or less."""
_HOPEFUL = 0.65
"""Which part of what could be is slower than what is expected. More than half of it: a try that fails costs one job
more, and who does not try never learns (optimism in the face of uncertainty: Auer, Cesa-Bianchi and Fischer,
"Finite-time Analysis of the Multiarmed Bandit Problem", 2002)."""

_Amounts = tuple[float, float, float]
"""Of tensor cores, of FP32 and of memory: the work of a job, or what accelerators do of it in a unit of time."""


class _Mixtures:
    """What limits a job for which part of its time, by the speeds that are known: tensor cores, FP32 or memory.

    Each part takes as much longer on another model as its published peak is lower. All divisions of the time on the
    accelerators that most jobs have run on are possible at first, in FP16 and in BF16 alike, and count by how well they
    explain the speeds on the others.
    """

    def __init__(self, known: Mapping[Accelerators, Speed], peaks: Mapping[str, Peaks]) -> None:
        self._known = known
        self._peaks = peaks
        self._weighed: list[tuple[float, bool, _Amounts]] | None = None
        """A weight, whether in BF16, and the work where the speed is 1."""
        self._speeds: dict[Accelerators, Speed | None] = {}

    def speed_on(self, used: Accelerators) -> Speed | None:
        """Return the speed on accelerators: as it is known, or else bounded by peaks; None if it cannot be compared."""
        if used not in self._speeds:
            self._speeds[used] = self._compare(used)
        return self._speeds[used]

    def _compare(self, used: Accelerators) -> Speed | None:
        bounded = compared_speed(used, self._known, self._peaks)
        if bounded is None or used in self._known or used.model not in self._peaks:
            return bounded
        if self._weighed is None:
            self._weighed = list(self._weigh())
        amounts = {in_bf16: self._amounts(used, in_bf16=in_bf16) for in_bf16 in (False, True)}
        found = sorted((1 / _time(work, amounts[in_bf16]), weight) for weight, in_bf16, work in self._weighed)
        slower = list(accumulate(weight for _, weight in found))
        speed, _ = found[bisect_left(slower, _HOPEFUL * slower[-1])]
        return replace(bounded, expected=min(max(speed, bounded.slow), bounded.fast))

    def _weigh(self) -> Iterator[tuple[float, bool, _Amounts]]:
        most = sorted(self._known, key=lambda each: (-self._known[each].jobs, each.key))
        comparable = [each for each in most if each.model in self._peaks]
        least = math.inf
        found = []
        for in_bf16 in (False, True):
            shown = [(self._amounts(each, in_bf16=in_bf16), self._known[each].middle) for each in comparable]
            base = shown[0][0]
            for shares in _SHARES:
                work = (shares[0] * base[0], shares[1] * base[1], shares[2] * base[2])
                errors = [math.log(_time(work, amounts) * speed) for amounts, speed in shown]
                mean = sum(errors) / len(errors)
                squares = sum((each - mean) ** 2 for each in errors)
                least = min(least, squares)
                scale = math.exp(-mean)
                found.append((squares, in_bf16, (work[0] * scale, work[1] * scale, work[2] * scale)))
        for squares, in_bf16, work in found:
            yield math.exp((least - squares) / (2 * _UNEXPLAINED**2)), in_bf16, work

    def _amounts(self, used: Accelerators, *, in_bf16: bool) -> _Amounts:
        peaks = self._peaks[used.model]
        # Several are between no gain and as many times faster.
        many = used.fraction * math.sqrt(used.count)
        tensor = peaks.bf16_tflops if in_bf16 else peaks.fp16_tflops
        return (
            many * _middle(tensor),
            many * _middle(peaks.fp32_tflops),
            many * _middle(peaks.memory_gb_per_second),
        )


def _time(work: _Amounts, amounts: _Amounts) -> float:
    return work[0] / amounts[0] + work[1] / amounts[1] + work[2] / amounts[2]


def _middle(ends: tuple[float, float]) -> float:
    return math.sqrt(ends[0] * ends[1])


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
    expected = rate.middle * math.sqrt(slow * fast)
    return Speed(rate.slow * slow, rate.fast * fast, SpeedBasis.LEARNED, rate.jobs, expected, rate.save_seconds)


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
